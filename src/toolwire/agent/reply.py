"""One reply of the model: streamed, counted, and requested again if it breaks off."""

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from toolwire.agent.events import (
    Emit,
    ModelAsked,
    Noticed,
    RequestBuilt,
    Retrying,
    Streaming,
    Thought,
)
from toolwire.agent.loops import Suspicion, TextLoops
from toolwire.agent.usage import Price, RequestCount, Spent
from toolwire.collect import Collector
from toolwire.errors import (
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    ToolwireError,
)
from toolwire.events import (
    UNMARKED_END,
    Finished,
    ModelEvent,
    Notice,
    Retry,
    TextDelta,
    ThinkingDelta,
)
from toolwire.messages import Message
from toolwire.model import Model, reading
from toolwire.request import ModelRequest

RecordPartial: TypeAlias = Callable[[Message], Awaitable[None]]

WAITS = (0.5, 1.0)
"""Seconds before a reply that broke off is requested again."""
_PASSING = (ErrorKind.OVERLOADED, ErrorKind.SERVER, ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT)
_HEADLINE = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)


class Reply(msgspec.Struct, frozen=True):
    """A complete reply."""

    message: Message
    finished: Finished


class Repeating(Exception):
    """The model repeats itself; the stream was closed."""

    def __init__(self, suspicion: Suspicion, partial: Message) -> None:
        super().__init__(suspicion.what)
        self.suspicion = suspicion
        self.partial = partial


class Replies:
    """Requests replies from the model and counts their cost."""

    def __init__(
        self,
        model: Model,
        *,
        emit: Emit,
        spent: Spent,
        price: Price,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._model = model
        self._emit = emit
        self._spent = spent
        self._price = price
        self._clock = clock
        self._sleep = sleep
        self._reported: set[str] = set()

    async def reply(self, request: ModelRequest, record_partial: RecordPartial) -> Reply:
        """The complete reply; what the last failed attempt leaves goes to `record_partial`.

        An attempt that broke off after it began is repeated: none of its calls has run. Before that
        the client has retried often enough, except malformed answers. Text without the vendor's end
        mark is requested once more and then accepted.
        """
        for attempt, wait in enumerate((*WAITS, None), 2):
            stream = _Stream(self._emit, self._reported)
            try:
                reply = await self._try(request, stream)
                if stream.unmarked and attempt == 2 and not reply.message.calls:
                    raise IncompleteStream(stream.unmarked)
                return reply
            except ToolwireError as error:
                begun = stream.received or isinstance(error, MalformedStream)
                if wait is None or not begun or not _passing(error):
                    await record_partial(stream.collector.message())
                    raise
                await self._emit(
                    Retrying(
                        message=f"{error}; retrying in {wait:g} s",
                        void=stream.shown,
                        status=error.status if isinstance(error, ProviderError) else None,
                        attempt=attempt,
                        wait=wait,
                    )
                )
                await self._sleep(wait)
            except BaseException as stopped:
                # Cancelled, or out of time: the partial reply is stored.
                if not isinstance(stopped, Repeating):
                    await record_partial(stream.collector.message())
                raise
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    async def _try(self, request: ModelRequest, stream: "_Stream") -> Reply:
        self._spent.requests += 1
        await self._emit(RequestBuilt(request))
        await self._emit(ModelAsked(model=request.model))
        count = RequestCount(request, emit=self._emit, price=self._price, clock=self._clock)
        failure: BaseException | None = None
        try:
            async with reading(self._model(count.request)) as events:
                async for event in events:
                    if isinstance(event, Notice):
                        self._spent.requests += await count.failures(event.retry)
                    await stream.take(event)
            await stream.flush()
        except BaseException as error:
            failure = error
            raise
        finally:
            await count.end(stream.collector.finished, failure)
        finished = stream.collector.finished
        if finished is None:
            raise IncompleteStream("the answer stopped before its end")
        return Reply(stream.collector.message(), finished)


class _Stream:
    """One attempt at a reply, emitted as it streams."""

    def __init__(self, emit: Emit, reported: set[str]) -> None:
        self._emit = emit
        self._reported = reported
        self._loops = TextLoops()
        self._thought: list[str] = []
        self.collector = Collector()
        self.received = False
        self.shown = False
        self.unmarked = ""
        """Why it is not sure that the reply is whole."""

    async def take(self, event: ModelEvent) -> None:
        """Emits an event, and checks for thoughts and loops."""
        self.collector.add(event)
        if isinstance(event, Notice):
            if event.kind == UNMARKED_END:
                self.unmarked = event.message
            await self._notice(event)
            return
        self.received = True
        if isinstance(event, ThinkingDelta):
            if event.text.startswith("**"):
                await self.flush()
            self._thought.append(event.text)
        elif self._thought:
            await self.flush()
        await self._emit(Streaming(event))
        if isinstance(event, TextDelta):
            self.shown = True
            suspicion = self._loops.add(event.text)
            if suspicion is not None:
                raise Repeating(suspicion, self.collector.message())

    async def flush(self) -> None:
        """Emits the thought that has ended."""
        text = "".join(self._thought).strip()
        self._thought.clear()
        if not text:
            return
        headline = _HEADLINE.search(text)
        subject = headline.group(1).strip() if headline else ""
        rest = text if headline is None else text[: headline.start()] + text[headline.end() :]
        await self._emit(Thought(subject=subject, description=rest.strip()))

    async def _notice(self, notice: Notice) -> None:
        """Emits every retry, and other notices once per turn; a loss once, wherever it happens.

        Prompt progress of a slow model is streamed and not stored, like its text.
        """
        if notice.kind == "reading":
            await self._emit(Streaming(notice))
            return
        if notice.kind == "retry":
            retry = notice.retry or Retry(attempt=0)
            await self._emit(
                Retrying(
                    message=notice.message,
                    status=retry.status,
                    attempt=retry.attempt,
                    wait=retry.wait,
                )
            )
            return
        loss = notice.loss
        text = notice.message if loss is None else f"{loss.what}: {loss.why}"
        if text not in self._reported:
            self._reported.add(text)
            await self._emit(Noticed(kind=notice.kind, message=notice.message, loss=loss))


def _passing(error: ToolwireError) -> bool:
    """Whether the error may be temporary."""
    if isinstance(error, ProviderError):
        return error.kind in _PASSING
    return isinstance(error, IncompleteStream | MalformedStream)
