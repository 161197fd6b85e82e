"""Shortens a conversation: old outputs to files, then a summary, then the mechanical way."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from pkgutil import get_data

import msgspec

from toolwire.agent.events import Emit, HistoryReplaced, Noticed, no_events
from toolwire.agent.usage import Price, cost_from_usage, counted
from toolwire.collect import Collector
from toolwire.compaction.mechanical import shorten_mechanically, weight
from toolwire.compaction.plan import CompressionRules, Plan, front_of, plan, snapshot
from toolwire.compaction.tokens import Tally, of_message, of_part, read_refusal
from toolwire.errors import ErrorKind, ProviderError, ToolwireError
from toolwire.events import Finished, ModelEvent, StopReason
from toolwire.messages import (
    Media,
    Message,
    Part,
    Text,
    ToolResult,
)
from toolwire.model import Model, reading
from toolwire.request import ModelRequest, ToolChoice
from toolwire.tools.spec import capped

KEPT_CHARACTERS = 2_000
"""Of each older output, head and tail together."""
_WORTH_CUTTING = 1_000
"""Tokens from which an output is cut at all."""
_SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "application/pdf": ".pdf",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
}


def with_old_outputs_cut(
    messages: Sequence[Message], *, budget: int, folder: Path
) -> tuple[Message, ...]:
    """The messages, older outputs beyond the budget of tokens in files of `folder`.

    What cannot be written stays where it is. The newest outputs, which the model has not seen yet,
    always do.
    """
    left = budget
    newest = True
    kept = list(messages)
    for position in range(len(kept) - 1, -1, -1):
        message = kept[position]
        if not message.results:
            continue
        left -= sum(of_part(part) for part in message.parts)
        if left < 0 and not newest:
            kept[position] = _cut(message, folder)
        newest = False
    return tuple(kept)


def _cut(message: Message, folder: Path) -> Message:
    parts = tuple(_cut_part(part, folder) for part in message.parts)
    return message if parts == message.parts else msgspec.structs.replace(message, parts=parts)


def _cut_part(part: Part, folder: Path) -> Part:
    if of_part(part) < _WORTH_CUTTING:
        return part
    if isinstance(part, Text | Media):
        return _filed(part, "beside", folder)
    if not isinstance(part, ToolResult):
        return part
    inner = tuple(
        _filed(one, part.call_id, folder)
        if isinstance(one, Text | Media) and of_part(one) >= _WORTH_CUTTING
        else one
        for one in part.parts
    )
    return part if inner == part.parts else msgspec.structs.replace(part, parts=inner, kept=None)


def _filed(part: Text | Media, call_id: str, folder: Path) -> Text | Media:
    try:
        text = _replacement(part, call_id, folder)
    except OSError:
        # A full or read-only disk: the next step shortens more.
        return part
    return part if isinstance(part, Text) and text == part.text else Text(text)


def media_name(part: Media) -> str:
    """The name of a file for what is carried inline; the same content has the same name."""
    digest = hashlib.sha256(part.data).hexdigest()
    return f"{part.kind.value}-{digest[:16]}{_SUFFIXES.get(part.mime, '')}"


def _replacement(part: Text | Media, call_id: str, folder: Path) -> str:
    if isinstance(part, Text):
        if len(part.text) <= 2 * KEPT_CHARACTERS:
            # Cut once already, with its heading, or in a script of heavy letters.
            return part.text
        # Ids repeat from reply to reply, texts do not.
        digest = hashlib.sha256(part.text.encode("utf-8", "surrogatepass")).hexdigest()
        return capped(part.text, KEPT_CHARACTERS, folder, f"{call_id[:60]}-{digest[:16]}")
    if not part.base64:
        raise OSError("nothing is carried inline")
    data = part.data
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / media_name(part)
    file.write_bytes(data)
    return f"[{part.mime or part.kind.value}, {len(data):,} bytes, stored in: {file}]"


QUESTION = "First, reason in your scratchpad. Then, generate the <state_snapshot>."
KEEP = "The user says what the snapshot has to keep in full detail:"
FOLDER = "compressed"
"""Below the project's temp directory."""
_FULL = 0.92
"""Share of the window from which shortening no longer waits for a better moment."""
_AFTER = 0.8
"""Share of the limit to which a conversation is shortened."""
_GROWTH = 0.05
"""Share of the window by which a conversation grows before a failed summary is requested again."""


class Compressor:
    """Shortens one session's conversation when necessary."""

    def __init__(
        self,
        model: Model,
        *,
        window: int,
        temp: Path,
        emit: Emit = no_events,
        rules: CompressionRules | None = None,
        price: Price = cost_from_usage,
        clock: Callable[[], float] = time.monotonic,
        weigh: Callable[[Message], int] = of_message,
    ) -> None:
        self._model = model
        self.window = window
        """Tokens the model accepts; 0 while unknown."""
        self._folder = temp / FOLDER
        self._emit = emit
        self._rules = rules or CompressionRules()
        self._price = price
        self._clock = clock
        self._tally = Tally(weigh)
        self.allowed: Callable[[], Awaitable[bool]] | None = None
        """Asked before the conversation is shortened."""
        self._gave_up = False
        """A summary was larger than what it replaced: no other is requested until forced."""
        self._not_before = 0

    def watching(self, model: Model) -> Model:
        """The model, wrapped: learns from the vendor's counts and from refusals for length."""

        async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
            try:
                async with reading(model(request)) as events:
                    async for event in events:
                        if isinstance(event, Finished):
                            self._tally.counted(request, event.usage)
                        yield event
            except ProviderError as error:
                if error.kind == ErrorKind.CONTEXT_TOO_LONG:
                    self.too_long(request, error)
                raise

        return ask

    def size(self, request: ModelRequest) -> int:
        """Tokens of a request, as far as they are known."""
        return self._tally.size(request)

    def too_long(self, request: ModelRequest, error: ProviderError) -> None:
        """Learn the model's limit, and the size of this request, from a refusal."""
        refusal = read_refusal(f"{error}\n{error.body}")
        size = refusal.requested or max(self._tally.size(request), self.window)
        self.window = refusal.window or self.window or size
        self._tally.anchor(request, size)

    async def __call__(
        self,
        request: ModelRequest,
        *,
        force: bool = False,
        keep: str = "",
        emit: Emit | None = None,
    ) -> HistoryReplaced | None:
        """The shorter conversation; None if it need not be shorter, or cannot be.

        `emit` receives its events, by default the session's. Forced, the model is asked whatever
        the size. `keep` are the user's words about what the summary has to contain. Where the
        model cannot help, a conversation that leaves no room is shortened without it.
        """
        size = self._tally.size(request)
        window = self.window or (size if force else 0)
        limits = _Limits.of(request, window, self._rules.threshold)
        if not force and (not self._rules.enabled or not window or not self._is_due(size, limits)):
            return None
        if self.allowed is not None and not await self.allowed():
            return None
        self._gave_up = self._gave_up and not force
        job = _Job(request, size, limits, self._tally, emit or self._emit, keep)
        budget = min(self._rules.outputs, int(self._rules.keep * window))
        job.messages = await asyncio.to_thread(
            with_old_outputs_cut, request.messages, budget=budget, folder=self._folder
        )
        if not force and job.size < limits.start:
            return job.replaced(job.messages, "outputs")
        if not self._gave_up:
            replaced = await self._summarised(job)
            if replaced is not None:
                return replaced
        if size >= (limits.start if force else limits.full):
            target = job.target(int(limits.start * _AFTER))
            messages = shorten_mechanically(
                job.messages, target=target, context=self._rules.context
            )
            return job.replaced(messages, "mechanical")
        return job.replaced(job.messages, "outputs")

    def _is_due(self, size: int, limits: "_Limits") -> bool:
        if size >= limits.full:
            return True
        return size >= max(limits.start, self._not_before) and not self._gave_up

    async def _summarised(self, job: "_Job") -> HistoryReplaced | None:
        """The conversation with a summary instead of its old part; None if there is no summary."""
        rules = self._rules
        planned = plan(
            job.messages, size=1, window=1, threshold=0, keep=rules.keep, context=rules.context
        )
        if planned is None:
            return None
        try:
            words = await self._requested(job, planned)
        except ToolwireError as error:
            self._not_before = job.before + int(_GROWTH * self.window)
            await job.notice(f"the conversation could not be summarised: {error}")
            return None
        messages = planned.joined(words)
        if weight(messages) >= weight(job.request.messages):
            self._gave_up = True
            await job.notice(
                "the summary was longer than the conversation and is not used; request one "
                "when there is more to summarise"
            )
            return None
        self._not_before = 0
        if job.size_of(messages) >= job.limits.start:
            # The unchanged part is too long by itself.
            context = len(planned.front) - front_of(planned.front, 0) + 2
            messages = shorten_mechanically(
                messages, target=job.target(job.limits.start), context=context
            )
        return job.replaced(messages, "summary")

    async def _requested(self, job: "_Job", planned: Plan) -> str:
        """The model's snapshot of the old part; one too long to be read is cut, then cut again."""
        room = int(job.limits.full * _AFTER)
        # Twice at most: a second refusal for length means that the figures are wrong.
        for share in (1.0, 0.5):
            target = job.target(int(room * share))
            request = _question(job.request, planned, target, self._rules, job.keep)
            try:
                return await self._answer(request, job.emit)
            except ProviderError as error:
                if error.kind != ErrorKind.CONTEXT_TOO_LONG or share < 1:
                    raise
        raise AssertionError  # pragma: no cover - the last round returns or raises

    async def _answer(self, request: ModelRequest, emit: Emit) -> str:
        collector = Collector()
        model = counted(
            self._model, emit=emit, price=self._price, clock=self._clock, purpose="compression"
        )
        async with reading(model(request)) as events:
            async for event in events:
                collector.add(event)
        finished = collector.finished
        if finished is None or finished.reason is not StopReason.END:
            how = "broke off" if finished is None else f"ended with {finished.reason.value}"
            raise ToolwireError(f"the model's answer {how}")
        found = snapshot(collector.message().text)
        if found is None:
            raise ToolwireError("the model's answer contains no complete <state_snapshot>")
        return found


class _Limits(msgspec.Struct, frozen=True):
    """Tokens from which the conversation is shortened."""

    start: int
    full: int

    @classmethod
    def of(cls, request: ModelRequest, window: int, threshold: float) -> "_Limits":
        # Most vendors count the room for the answer in.
        room = window - min(request.max_output_tokens or 0, window // 2)
        return cls(min(int(threshold * window), room), min(int(_FULL * window), room))


class _Job:
    """State of one shortening."""

    def __init__(
        self,
        request: ModelRequest,
        size: int,
        limits: _Limits,
        tally: Tally,
        emit: Emit,
        keep: str,
    ) -> None:
        self.request = request
        self.keep = keep
        self.emit = emit
        self.before = size
        self.limits = limits
        self.messages = request.messages
        self._head = tally.head(request)
        self._was = weight(request.messages)
        self._scale = max(size, 1) / max(self._head + self._was, 1)

    async def notice(self, message: str) -> None:
        """Emit a notice for the user."""
        await self.emit(Noticed(kind="compression", message=message))

    @property
    def size(self) -> int:
        """Tokens now."""
        return self.size_of(self.messages)

    def size_of(self, messages: tuple[Message, ...]) -> int:
        """Tokens the request would have with these messages."""
        return int((self._head + weight(messages)) * self._scale)

    def target(self, limit: int) -> int:
        """Tokens that messages may have in a request within the limit."""
        return int(limit / self._scale) - self._head

    def replaced(self, messages: tuple[Message, ...], method: str) -> HistoryReplaced | None:
        """The event to emit, if anything was gained."""
        if weight(messages) >= self._was:
            return None
        return HistoryReplaced(
            messages=messages, method=method, before=self.before, after=self.size_of(messages)
        )


def _question(
    request: ModelRequest, planned: Plan, target: int, rules: CompressionRules, keep: str
) -> ModelRequest:
    """The request for a summary: the old part, as far as it fits, and the instruction."""
    old = shorten_mechanically((*planned.front, *planned.old), target=target, context=rules.context)
    has_calls = any(message.calls for message in old)
    question = f"{QUESTION}\n\n{KEEP}\n{keep}" if keep else QUESTION
    return msgspec.structs.replace(
        request,
        system=(Text((get_data("toolwire.compaction", "compression.md") or b"").decode()),),
        messages=(*old, Message(role="user", parts=(Text(question),))),
        # Vendors refuse calls of tools that are not declared.
        tools=request.tools if has_calls else (),
        tool_choice=ToolChoice(mode="none") if has_calls and request.tools else None,
        parallel_calls=None,
        output=None,
        stop=(),
        previous_response_id="",
        kept=None,
    )
