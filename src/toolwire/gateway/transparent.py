"""Answers of the client's own format, whose bytes pass as their maker's server sent them."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from toolwire.app.model_stack import Opened
from toolwire.collect import Collector
from toolwire.errors import ProviderError
from toolwire.events import Finished, ModelEvent
from toolwire.gateway.incoming import ClientRequest
from toolwire.gateway.outlet import JSON, STREAM, AnswerWriter, StreamedAnswer, last_response
from toolwire.gateway.record import RequestRecord
from toolwire.http_server.exchange import Answering, ClientGone
from toolwire.messages import Message
from toolwire.prompted import ToolStyle
from toolwire.request import AnswerTap

Headers = Sequence[tuple[str, str]]
_PASSED = ("x-ratelimit-", "anthropic-ratelimit-")
"""Headers that a client of the vendor reads."""
_MOST_STORED = 4 * 1024 * 1024
_frame_ends = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)").split
_no_choices = re.compile(rb'"choices"\s*:\s*\[\s*\]').search
_ENDS = (b"\n\n", b"\r\n\r\n")


def passes(opened: Opened, request: ClientRequest, client_format: str) -> bool:
    """Whether an answer of this model may reach the client byte for byte."""
    provider = opened.provider
    if not provider.faithful or provider.dialect != client_format or request.array:
        return False
    return opened.style.style is ToolStyle.NATIVE or not request.request.tools


class PassedAnswer:
    """One answer; `own` writes it where its bytes cannot pass."""

    def __init__(
        self,
        out: Answering,
        own: AnswerWriter,
        tap: AnswerTap,
        request: ClientRequest,
        record: RequestRecord,
        headers: Callable[[], Headers],
    ) -> None:
        self._out = out
        self._own = own
        self._tap = tap
        self._record = record
        self._headers = headers
        self._streamed = record.streamed
        self._hides_usage = not request.usage_chunk
        self._collector = Collector() if request.stored else None
        self._kept = bytearray()
        """The answer so far, if it is stored."""
        self._rest = b""
        """The beginning of a frame."""
        self._passes = False
        self._begun = False
        self._last = b""
        self._tail = b""
        """The last bytes that were sent."""
        tap.decoded = self._decoded

    @property
    def begun(self) -> bool:
        """Whether the head has gone out."""
        return self._begun or self._own.begun

    @property
    def response_id(self) -> str:
        """The id of the answer: the upstream's."""
        return self._record.upstream_id if self._passes else self._own.response_id

    def begin(self) -> None:
        """Decides whether the bytes pass; sends the head of a stream."""
        tap = self._tap
        kind = tap.headers.get("content-type", "").partition(";")[0].strip().lower()
        expected = "text/event-stream" if self._streamed else "application/json"
        if self._own.begun or tap.renamed or kind != expected:
            tap.stop()
            self._own.begin()
            return
        self._own.close()
        self._passes = True
        if self._streamed:
            self._begun = True
            self._out.put_head(200, (*STREAM, *self._headers(), *self._vendors()))

    def feed(self, events: Sequence[ModelEvent], *, last: bool = False) -> None:
        """Sends the bytes up to these events."""
        if not self._passes:
            self._own.feed(events, last=last)
            return
        if self._collector is not None:
            self._collector.add_all(events)
        tap = self._tap
        self._record.events += tap.joined
        tap.joined = 0
        if tap.pending:
            self._flush()

    def body(self) -> bytes:
        """The complete answer as one object, for the store."""
        if not self._passes:
            return self._own.body()
        return last_response(bytes(self._kept)) if self._streamed else self._last

    def message(self) -> Message:
        """The answer as a message, for the store."""
        if not self._passes:
            return self._own.message()
        return (self._collector or Collector()).message()

    def end(self, finished: Finished) -> None:
        """Takes the last bytes, which are sent once the answer is stored."""
        if not self._passes:
            self._own.end(finished)
            return
        self._last = self._taken(whole=True)

    async def send(self) -> None:
        """Sends the last bytes."""
        if not self._passes:
            await self._own.send()
        elif self._streamed:
            self._out.put(self._last, last=True)
            if self._out.full:
                await self._out.drained()
        else:
            await self._out.whole(200, (*JSON, *self._headers(), *self._vendors()), self._last)

    def fail(self, error: ProviderError) -> None:
        """Sends what arrived, the error unless the vendor sent one, and cuts the connection."""
        if not self._passes:
            self._own.fail(error)
            return
        with suppress(ClientGone):
            self._put(self._taken(whole=True))
            if self._tail.endswith(_ENDS) and b'"error"' not in self._tail:
                self._put(self._failure(error))
        self._out.cut()

    def close(self) -> None:
        """Stops what still runs."""
        self._tap.stop()
        self._own.close()

    def _decoded(self) -> None:
        """Sends bytes without an event, such as the vendor's heartbeats."""
        if self._begun and self._tap.pending:
            with suppress(ClientGone):
                self._flush()

    def _flush(self) -> None:
        if not self._tap.ending and self._streamed:
            self._put(self._taken())

    def _put(self, data: bytes) -> None:
        if data:
            self._tail = data
            self._out.put(data)

    def _taken(self, *, whole: bool = False) -> bytes:
        """What has arrived; without the counts that the client did not request."""
        data = self._tap.take()
        if self._hides_usage and self._streamed:
            *frames, self._rest = _frame_ends(self._rest + data)
            if whole:
                frames.append(self._rest)
            data = b"".join(frame for frame in frames if not _is_usage(frame))
        if self._collector is not None and len(self._kept) < _MOST_STORED:
            self._kept += data
        return data

    def _failure(self, error: ProviderError) -> bytes:
        own = self._own
        return own.failure(error) if isinstance(own, StreamedAnswer) else b""

    def _vendors(self) -> Headers:
        """The vendor's headers that its clients read."""
        headers = self._tap.headers
        return [(name, value) for name, value in headers.items() if name.startswith(_PASSED)]


def _is_usage(frame: bytes) -> bool:
    """Whether a chat frame has only token counts, which break clients that did not request them."""
    return b'"usage"' in frame and _no_choices(frame) is not None
