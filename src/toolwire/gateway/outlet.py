"""Answers on their way to a client: streamed with heartbeats, or whole."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import msgspec

from toolwire.collect import Collector
from toolwire.dialects import AnswerOptions, Dialect, Encoder
from toolwire.dialects.openai_responses.encode_answer import response_id
from toolwire.errors import ProviderError
from toolwire.events import Finished, ModelEvent
from toolwire.gateway.deadlines import Deadlines
from toolwire.http_server.exchange import Answering, ClientGone
from toolwire.ids import new_id
from toolwire.messages import Message
from toolwire.wire.sse import Frame, SseEncoder

Headers = Sequence[tuple[str, str]]
STREAM = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)
JSON = (("content-type", "application/json"),)


class _LastFrame(msgspec.Struct):
    response: msgspec.Raw = msgspec.Raw(b"{}")


_last_frame = msgspec.json.Decoder(_LastFrame)
_OPENING = frozenset({"response.created", "response.in_progress"})


def last_response(stream: bytes) -> bytes:
    """The response object of the last frame of a stream; empty if it has none."""
    line = stream.rstrip().rpartition(b"\n")[2]
    try:
        return bytes(_last_frame.decode(line.removeprefix(b"data:")).response)
    except msgspec.MsgspecError:
        return b""


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """When a streamed answer begins without an event, and how often it beats."""

    hold_seconds: float
    heartbeat_seconds: float


class AnswerWriter(Protocol):
    """One answer; events in, bytes to the client out."""

    @property
    def begun(self) -> bool:
        """Whether the head has gone out: errors can no longer be a status."""
        ...

    @property
    def response_id(self) -> str:
        """The id of the answer."""
        ...

    def begin(self) -> None:
        """Called at the first event."""
        ...

    def feed(self, events: Sequence[ModelEvent], *, last: bool = False) -> None:
        """Events that arrived together, but not the end; it follows soon after the `last`."""
        ...

    def body(self) -> bytes:
        """The complete answer as one object, for the store; valid after `end`."""
        ...

    def message(self) -> Message:
        """The answer as a message, for the store."""
        ...

    def end(self, finished: Finished) -> None:
        """Prepares the end; separate from `send`, so that the answer can be stored between."""
        ...

    async def send(self) -> None:
        """Sends the end."""
        ...

    def fail(self, error: ProviderError) -> None:
        """An error after the beginning: the answer stays incomplete."""
        ...

    def close(self) -> None:
        """Stops what still runs."""
        ...


class StreamedAnswer:
    """Server-sent events, or Gemini's JSON array.

    The head waits for the first event, at most `hold_seconds`: until then an error can still be an
    HTTP status. After that a heartbeat ends every long silence.
    """

    def __init__(
        self,
        out: Answering,
        dialect: Dialect,
        model: str,
        options: AnswerOptions,
        *,
        headers: Callable[[], Headers],
        pace: Pace,
        deadlines: Deadlines,
        array: bool = False,
    ) -> None:
        self._collector = Collector() if options.store else None
        self._out = out
        self._new_encoder = partial(dialect.encoder, model, new_id, options)
        self._made: Encoder | None = None
        self._headers = headers
        self._pace = pace
        self._array = array
        self._sse = SseEncoder()
        self._loop = asyncio.get_running_loop()
        self._written_at = self._loop.time()
        self._first = True
        self._last: Sequence[Frame] = ()
        self._deadlines = deadlines
        deadlines.set(self, pace.hold_seconds, self._due)
        self.begun = False

    @property
    def response_id(self) -> str:
        """The id of the answer."""
        return self._encoder.response_id

    @property
    def _encoder(self) -> Encoder:
        """Made when it is first needed: bytes that pass need none."""
        if self._made is None:
            self._made = self._new_encoder()
        return self._made

    def begin(self) -> None:
        """Sends the head, unless it has gone out."""
        if not self.begun:
            self.begun = True
            self._out.put_head(200, (*(JSON if self._array else STREAM), *self._headers()))
            self._deadlines.set(self, self._pace.heartbeat_seconds, self._due)

    def feed(self, events: Sequence[ModelEvent], *, last: bool = False) -> None:
        """Sends the frames of the events as one piece; the last ones go out with the end."""
        if self._collector is not None:
            self._collector.add_all(events)
        encode = self._encoder.feed
        self._put([frame for event in events for frame in encode(event)], held=last)

    def body(self) -> bytes:
        """The response object of the last frame."""
        return bytes(_last_frame.decode(self._last[-1].data).response)

    def message(self) -> Message:
        """The answer as a message; empty if it is not stored."""
        return (self._collector or Collector()).message()

    def end(self, finished: Finished) -> None:
        """Prepares the last frames."""
        self._deadlines.remove(self)
        self._last = (*self._encoder.feed(finished), *self._encoder.close())

    async def send(self) -> None:
        """Sends the last frames and the end mark."""
        data = self._bytes(self._last)
        self._out.put(data + b"]" if self._array else data, last=True)
        if self._out.full:
            await self._out.drained()

    def fail(self, error: ProviderError) -> None:
        """Sends the error and cuts the connection: nothing may look like an end."""
        self._deadlines.remove(self)
        self._put(self._encoder.fail(error))
        self._out.cut()

    def failure(self, error: ProviderError) -> bytes:
        """The frames of an error in an answer that was begun without this writer."""
        frames = [one for one in self._encoder.fail(error) if one.event not in _OPENING]
        return self._bytes(frames)

    def close(self) -> None:
        """Stops the heartbeats."""
        self._deadlines.remove(self)

    def _put(self, frames: Sequence[Frame], *, held: bool = False) -> None:
        if frames:
            self._written_at = self._loop.time()
            self._out.put(self._bytes(frames), held=held)

    def _bytes(self, frames: Sequence[Frame]) -> bytes:
        if not self._array:
            return self._sse.encode_all(frames)
        data = b",\r\n".join([frame.data for frame in frames])
        opening, self._first = (b"[" if self._first else b",\r\n" if frames else b""), False
        return opening + data

    def _due(self) -> None:
        """The hold is over, or the silence may have been long."""
        wait = self._pace.heartbeat_seconds
        try:
            if not self.begun:
                self.begin()
                self._put(self._encoder.beat())
                return
            silent = self._loop.time() - self._written_at
            if silent < wait:
                wait -= silent
            elif not self._out.full:
                self._put(self._encoder.beat())
        except ClientGone:
            return
        self._deadlines.set(self, wait, self._due)


class OneBody:
    """An answer that is sent as one body when it is complete."""

    def __init__(self, out: Answering, response_id: str, *, headers: Callable[[], Headers]) -> None:
        self._out = out
        self._headers = headers
        self._collector = Collector()
        self._body = b""
        self.begun = False
        self.response_id = response_id

    def begin(self) -> None:
        """Nothing is sent before the end."""

    def feed(self, events: Sequence[ModelEvent], *, last: bool = False) -> None:
        """Adds events."""
        self._collector.add_all(events)

    def body(self) -> bytes:
        """The body."""
        return self._body

    def message(self) -> Message:
        """The answer as a message."""
        return self._collector.message()

    def end(self, finished: Finished) -> None:
        """Writes the body."""
        self._body = self._encoded(finished)

    @abstractmethod
    def _encoded(self, finished: Finished) -> bytes:
        """The body of what was collected."""

    async def send(self) -> None:
        """Sends the body."""
        await self._out.whole(200, (*JSON, *self._headers()), self._body, held=True)

    def fail(self, error: ProviderError) -> None:
        """Never called: the head has not gone out."""
        raise AssertionError(error)

    def close(self) -> None:
        """Nothing is running."""


class WholeAnswer(OneBody):
    """An answer in the client's format."""

    def __init__(
        self,
        out: Answering,
        dialect: Dialect,
        model: str,
        options: AnswerOptions,
        *,
        headers: Callable[[], Headers],
    ) -> None:
        own = response_id(new_id) if dialect.name == "openai-responses" else ""
        super().__init__(out, own, headers=headers)
        self._dialect = dialect
        self._model = model
        self._options = options

    def _encoded(self, finished: Finished) -> bytes:
        if self.response_id:
            finished = msgspec.structs.replace(finished, response_id=self.response_id)
        return self._dialect.encode_whole(
            self.message(), finished, self._model, new_id, self._options
        )
