"""Asks again: the same model after an unusable answer, another one if it does not answer."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from toolwire.errors import (
    BadInput,
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    ToolwireError,
)
from toolwire.events import (
    Finished,
    MediaAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
    Retry,
    ServerBlockAdded,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.request import ModelRequest

EMPTY_NOTE = (
    "Your last answer was empty. Go on with the task: call a tool, or answer in words. "
    "If you are done, say so."
)
MALFORMED_NOTE = (
    "Your last tool call could not be read and was not run. Make the call again, with its "
    "arguments as one valid JSON object that fits the tool's parameters."
)
_SPOKEN = (RefusalDelta, ToolCallStarted, MediaAdded, ServerBlockAdded)
_NOTHING_SAID = frozenset(
    {
        StopReason.END,
        StopReason.TOOL_CALLS,
        StopReason.MALFORMED_CALL,
        StopReason.CONTENT_FILTER,
    }
)
"""Stop reasons that count as a failure after an empty answer."""


def with_reask(model: Model, tries: int = 2) -> Model:
    """The model, current up to `tries` more times with a note after an unusable answer.

    Only notices and thoughts of an unusable answer are passed on. After a content filter, the
    request is repeated unchanged: answers are sampled, and so is the filter's result.
    """

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        current = request
        for left in range(tries, -1, -1):
            answer = _Answer()
            try:
                async with reading(model(current)) as events:
                    async for event in events:
                        for passed in answer.take(event):
                            yield passed
            except ProviderError as error:
                if error.kind != ErrorKind.MALFORMED_CALL or answer.started:
                    raise
                answer.failure = error
            if not answer.failed:
                return
            if not left and answer.filtered:
                for event in answer.pending():
                    yield event
                return
            if request.meter is not None and answer.failure is None:
                request.meter.add(answer.usage)
            if not left:
                raise answer.error(tries + 1)
            if answer.thought:
                # Keep thoughts of two answers apart: the seal of the second signs only its own.
                yield ThinkingEnded()
            yield Notice(
                "retry",
                f"{answer.fault}; retrying ({left} of {tries} tries left)",
                retry=Retry(status=answer.status, attempt=tries - left + 2),
            )
            current = request if answer.filtered else _with_note(request, answer.note)

    return ask


class _Answer:
    """One answer, until it is known to be usable."""

    def __init__(self) -> None:
        self._held: list[ModelEvent] = []
        self._finished: Finished | None = None
        self.started = False
        self.thought = False
        """Whether thoughts were passed on and not closed."""
        self.failure: ProviderError | None = None

    def take(self, event: ModelEvent) -> list[ModelEvent]:
        """The events that can be passed on."""
        if self.started or isinstance(event, Notice):
            return [event]
        if isinstance(event, Finished):
            return self._end(event)
        if isinstance(event, _SPOKEN) or (isinstance(event, TextDelta) and event.text.strip()):
            self.started = True
            return self._release(event)
        if isinstance(event, ThinkingDelta) and not self._held:
            self.thought = True
            return [event]
        self._held.append(event)
        return []

    def _end(self, event: Finished) -> list[ModelEvent]:
        if event.reason in _NOTHING_SAID:
            self._finished = event
            return []
        return self._release(event)

    def pending(self) -> list[ModelEvent]:
        """The pending events, including the end."""
        return self._release(self._finished) if self._finished is not None else []

    def _release(self, event: ModelEvent) -> list[ModelEvent]:
        events, self._held = [*self._held, event], []
        return events

    @property
    def failed(self) -> bool:
        """Whether the answer is unusable."""
        return self.failure is not None or self._finished is not None

    @property
    def filtered(self) -> bool:
        """Whether a content filter removed the complete answer."""
        return self._ended_by(StopReason.CONTENT_FILTER)

    @property
    def _malformed(self) -> bool:
        return self.failure is not None or self._ended_by(StopReason.MALFORMED_CALL)

    def _ended_by(self, reason: StopReason) -> bool:
        return self._finished is not None and self._finished.reason is reason

    @property
    def usage(self) -> Usage | None:
        """What an answer that ended used."""
        return None if self._finished is None else self._finished.usage

    @property
    def status(self) -> int | None:
        """HTTP status of the failure, if it has one."""
        return None if self.failure is None else self.failure.status

    @property
    def note(self) -> str:
        """The note for the model."""
        return MALFORMED_NOTE if self._malformed else EMPTY_NOTE

    @property
    def fault(self) -> str:
        """The failure, for users."""
        detail = self._detail()
        if self._malformed:
            return f"the model made a call that cannot be read{f': {detail}' if detail else ''}"
        if self.filtered:
            return f"a content filter removed the whole answer{f': {detail}' if detail else ''}"
        return "the model returned only thinking" if self.thought else "the model returned nothing"

    def error(self, times: int) -> ProviderError:
        """The error after the last attempt."""
        words = f"{self.fault} ({times} times in a row); rephrase the request, or use another model"
        kind = ErrorKind.MALFORMED_CALL if self._malformed else ErrorKind.SERVER
        failure = self.failure
        if failure is None:
            return ProviderError(kind, words)
        return ProviderError(
            kind, words, status=failure.status, code=failure.code, body=failure.body
        )

    def _detail(self) -> str:
        if self.failure is not None:
            return str(self.failure)
        return self._finished.detail if self._finished is not None else ""


def _with_note(request: ModelRequest, note: str) -> ModelRequest:
    message = Message(role="user", parts=(Text(note),))
    return msgspec.structs.replace(request, messages=(*request.messages, message))


_ELSEWHERE = frozenset(
    {
        ErrorKind.QUOTA,
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.SERVER,
        ErrorKind.TIMEOUT,
        ErrorKind.MALFORMED_CALL,
    }
)
_LOCKED_OUT = frozenset({ErrorKind.AUTH, ErrorKind.PERMISSION})


def falling_back(models: Sequence[tuple[str, Model]], *, on_auth: bool = False) -> Model:
    """The first model that answers; there is no fallback after its first event. Raises the error of
    the last one.

    `on_auth` also skips a model whose credentials are refused; by default that is an error.
    """
    models = tuple(models)
    if not models:
        raise BadInput("no models to fall back on; name at least one")
    kinds = _ELSEWHERE | _LOCKED_OUT if on_auth else _ELSEWHERE

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        followers = (*(name for name, _ in models[1:]), "")
        for (name, model), following in zip(models, followers, strict=True):
            answered = False
            try:
                async with reading(model(request)) as events:
                    async for event in events:
                        answered = answered or not isinstance(event, Notice)
                        yield event
                return
            except ToolwireError as error:
                if answered or not following or not _helps(error, kinds):
                    raise
                words = " ".join(str(error).split())
            yield Notice("fallback", f"{name} does not answer: {words}; asking {following}")

    return ask


def asks_elsewhere(error: ToolwireError) -> bool:
    """Whether another deployment may answer a request that failed so, also with another key."""
    return _helps(error, _ELSEWHERE | _LOCKED_OUT)


def _helps(error: ToolwireError, kinds: frozenset[ErrorKind]) -> bool:
    if isinstance(error, ProviderError):
        return error.kind in kinds
    return isinstance(error, ConnectionFailed | IncompleteStream | MalformedStream)
