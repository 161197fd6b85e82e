"""One reply of the model: streamed past, counted, asked for again when it breaks off."""

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import msgspec

from toolwire.agent.events import (
    Emit,
    ModelAsked,
    Noticed,
    Retrying,
    Streaming,
    Thought,
    UsageCounted,
)
from toolwire.agent.limits import Spent
from toolwire.agent.loops import Suspicion, TextLoops
from toolwire.collect import Collector
from toolwire.errors import (
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    ToolwireError,
)
from toolwire.events import Finished, ModelEvent, Notice, TextDelta, ThinkingDelta, Usage
from toolwire.messages import Message
from toolwire.model import Model, reading
from toolwire.request import ModelRequest

Price: TypeAlias = Callable[[Usage], float | None]
KeepPartial: TypeAlias = Callable[[Message], Awaitable[None]]

WAITS = (0.5, 1.0)
"""Seconds before a reply that broke off is asked for again."""
_PASSING = (ErrorKind.OVERLOADED, ErrorKind.SERVER, ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT)
_HEADLINE = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)


class Reply(msgspec.Struct, frozen=True):
    """A whole reply: it came to its own end."""

    message: Message
    finished: Finished


class Repeating(Exception):
    """The model says the same over and over; the stream was left."""

    def __init__(self, suspicion: Suspicion, partial: Message) -> None:
        super().__init__(suspicion.what)
        self.suspicion = suspicion
        self.partial = partial


def cost_from_usage(usage: Usage) -> float | None:
    """Where no price is known."""
    return usage.cost


class Asking:
    """Asks the model for replies and counts what they cost."""

    def __init__(
        self,
        model: Model,
        *,
        emit: Emit,
        price: Price,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self._model = model
        self._emit = emit
        self._price = price
        self._clock = clock
        self._sleep = sleep
        self._told: set[str] = set()
        self.spent = Spent()

    async def reply(self, request: ModelRequest, keep_partial: KeepPartial) -> Reply:
        """The reply, whole; what a last failed try leaves goes to `keep_partial`.

        A try that broke off after it began is made again: none of its calls has run. Before that
        the client has tried often enough; only garbled words it takes as they are.
        """
        for wait in (*WAITS, None):
            stream = _Stream(self._emit, self._told)
            try:
                return await self._try(request, stream)
            except ToolwireError as error:
                begun = stream.heard or isinstance(error, MalformedStream)
                if wait is None or not begun or not _passing(error):
                    await keep_partial(stream.collector.message())
                    raise
                words = f"{error}; asking again in {wait:g} s"
                await self._emit(Retrying(message=words, void=stream.spoke))
                await self._sleep(wait)
            except BaseException as stopped:
                # Cancelled, or out of time: what was said so far is kept.
                if not isinstance(stopped, Repeating):
                    await keep_partial(stream.collector.message())
                raise
        raise AssertionError  # pragma: no cover - the last try returns or raises

    async def _try(self, request: ModelRequest, stream: "_Stream") -> Reply:
        self.spent.requests += 1
        await self._emit(ModelAsked(model=request.model))
        began = self._clock()
        try:
            async with reading(self._model(request)) as events:
                async for event in events:
                    await stream.take(event)
            await stream.flush()
        finally:
            await self._count(request.model, stream.collector.finished, self._clock() - began)
        finished = stream.collector.finished
        if finished is None:
            raise IncompleteStream("the answer stopped before its end")
        return Reply(stream.collector.message(), finished)

    async def _count(self, model: str, finished: Finished | None, seconds: float) -> None:
        usage = finished.usage if finished is not None else Usage()
        cost = self._price(usage)
        self.spent.add(usage, cost)
        await self._emit(
            UsageCounted(
                model=model, usage=usage, cost=cost, seconds=seconds, failed=finished is None
            )
        )


class _Stream:
    """One try, on its way to the screen."""

    def __init__(self, emit: Emit, told: set[str]) -> None:
        self._emit = emit
        self._told = told
        self._loops = TextLoops()
        self._thought: list[str] = []
        self.collector = Collector()
        self.heard = False
        self.spoke = False

    async def take(self, event: ModelEvent) -> None:
        """Passes an event on, and looks at what it adds up to."""
        self.collector.add(event)
        if isinstance(event, Notice):
            await self._notice(event)
            return
        self.heard = True
        if isinstance(event, ThinkingDelta):
            if event.text.startswith("**"):
                await self.flush()
            self._thought.append(event.text)
        elif self._thought:
            await self.flush()
        await self._emit(Streaming(event))
        if isinstance(event, TextDelta):
            self.spoke = True
            suspicion = self._loops.add(event.text)
            if suspicion is not None:
                raise Repeating(suspicion, self.collector.message())

    async def flush(self) -> None:
        """Tells the thought that has come to its end."""
        text = "".join(self._thought).strip()
        self._thought.clear()
        if not text:
            return
        headline = _HEADLINE.search(text)
        subject = headline.group(1).strip() if headline else ""
        rest = text if headline is None else text[: headline.start()] + text[headline.end() :]
        await self._emit(Thought(subject=subject, description=rest.strip()))

    async def _notice(self, notice: Notice) -> None:
        """Retries are told each time, all else once a turn; a loss once, wherever it happens.

        How far a slow model has read is a passing thing, like its words while they stream.
        """
        if notice.kind == "reading":
            await self._emit(Streaming(notice))
            return
        if notice.kind == "retry":
            await self._emit(Retrying(message=notice.message))
            return
        words = notice.message.partition(": ")[2] if notice.kind == "loss" else notice.message
        if words not in self._told:
            self._told.add(words)
            await self._emit(Noticed(kind=notice.kind, message=notice.message))


def _passing(error: ToolwireError) -> bool:
    """Whether another try may meet a better moment."""
    if isinstance(error, ProviderError):
        return error.kind in _PASSING
    return isinstance(error, IncompleteStream | MalformedStream)
