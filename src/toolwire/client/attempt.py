"""One request and its answer: sends the bytes, yields lists of events."""

from asyncio import timeout
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from toolwire.client.http.exchange import (
    MAX_ANSWER,
    MAX_BLANK,
    MAX_ERROR_BODY,
    MAX_ERROR_SECONDS,
    MAX_QUIET,
)
from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.client.redact import hide_in_url
from toolwire.client.text_runs import TextRuns
from toolwire.dialects import DecodeOptions, Decoder, Dialect
from toolwire.errors import (
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    MalformedStream,
    ProviderError,
    ToolwireError,
)
from toolwire.events import UNMARKED_END, Finished, ModelEvent, Notice, Usage
from toolwire.request import AnswerTap
from toolwire.wire.sse import MAX_FRAME

_LINGER = 0.5
_SPACE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


class Attempt:
    """One attempt at an answer, with the state that a failure leaves."""

    _decoder: Decoder | None = None
    _usage: Usage | None = None
    should_retry: bool | None = None
    """The server's `x-should-retry`, if it sent one."""

    def __init__(
        self,
        transport: Transport,
        dialect: Dialect,
        outgoing: Outgoing,
        reading: DecodeOptions,
        tap: AnswerTap | None = None,
    ) -> None:
        self._transport = transport
        self._dialect = dialect
        self._outgoing = outgoing
        self._reading = reading
        self._tap = tap

    async def events(self) -> AsyncGenerator[Sequence[ModelEvent]]:
        """The events of each chunk of the answer, in order; raises when it breaks."""
        try:
            async with self._transport.open(self._outgoing) as incoming:
                if not 200 <= incoming.status < 300:
                    raise await self._refusal(incoming)
                chunks = incoming.chunks
                if self._tap is not None:
                    self._tap.begin(incoming.headers)
                    chunks = _Tapped(chunks, self._tap)
                head, whole = await _head(chunks)
                if whole:
                    events, failed = await self._whole(head, chunks)
                    if events or failed is None:
                        yield events
                    if failed is not None:
                        raise failed
                    return
                batches = self._streamed(head, chunks)
                try:
                    async for batch in batches:
                        yield batch
                finally:
                    await batches.aclose()
        except ToolwireError as error:
            error.usage = self._usage = error.usage or self.usage()
            raise

    def pending(self) -> Sequence[ModelEvent]:
        """Events decoded but not yet emitted when the stream broke."""
        return () if self._decoder is None else self._decoder.pending()

    def usage(self) -> Usage | None:
        """What the answer has used, as far as the vendor has reported it."""
        return self._usage if self._decoder is None else self._decoder.usage()

    async def _streamed(
        self, head: bytes, chunks: AsyncIterator[bytes]
    ) -> AsyncGenerator[Sequence[ModelEvent]]:
        frames = self._dialect.frames()
        decoder = self._decoder = self._dialect.decoder(self._reading)
        feed, decode = frames.feed, decoder.feed
        tap, runs = self._tap, None
        if tap is not None and not self._reading.quirks.think_tag:
            runs = TextRuns(decode, tap)
        chunk = head
        events: list[ModelEvent] = []
        size = quiet = 0
        try:
            while True:
                size += len(chunk)
                quiet += len(chunk)
                if runs is not None:
                    runs.decode(feed(chunk), events)
                else:
                    for frame in feed(chunk):
                        events += decode(frame)
                if events:
                    quiet = 0
                    ended = isinstance(events[-1], Finished)
                    if ended and tap is not None:
                        # Whoever passes the bytes on needs those after the end first.
                        tap.ending = True
                        await _drained(chunks)
                    yield events
                    if ended:
                        await _drained(chunks)
                        return
                    events = []
                elif quiet > MAX_QUIET and quiet - frames.pending > MAX_QUIET:
                    raise MalformedStream(f"the stream has no event in {MAX_QUIET} bytes")
                elif tap is not None and tap.decoded is not None:
                    tap.decoded()
                if size > MAX_ANSWER:
                    raise MalformedStream(f"the answer is longer than {MAX_ANSWER} bytes")
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    break
            for frame in frames.close():
                events += decode(frame)
            events += decoder.close()
            if tap is not None:
                tap.ending = True
        except ConnectionFailed as broken:
            yield self._ended_by(broken, decoder)
            return
        except ToolwireError:
            # Events before the error in the same chunk are still valid.
            if events:
                yield events
            raise
        yield events

    def _ended_by(self, broken: ConnectionFailed, decoder: Decoder) -> Sequence[ModelEvent]:
        """The last events, if the answer was complete before the connection broke."""
        try:
            last = decoder.close()
        except ToolwireError:
            raise IncompleteStream(str(broken)) from broken
        if any(isinstance(event, Notice) and event.kind == UNMARKED_END for event in last):
            raise IncompleteStream(str(broken)) from broken
        return (Notice("broken_end", f"{broken}, but after the answer's end"), *last)

    async def _whole(
        self, head: bytes, chunks: AsyncIterator[bytes]
    ) -> tuple[Sequence[ModelEvent], ToolwireError | None]:
        """The events of a whole answer, and the error that ends them."""
        pieces, size = [head], len(head)
        try:
            while not getattr(chunks, "at_end", False):
                chunk = await anext(chunks, None)
                if chunk is None:
                    break
                pieces.append(chunk)
                size += len(chunk)
                if size > MAX_FRAME:
                    raise MalformedStream(f"the answer is longer than {MAX_FRAME} bytes")
        except ConnectionFailed as broken:
            raise IncompleteStream(str(broken)) from broken
        events: list[ModelEvent] = []
        try:
            for event in self._dialect.decode_whole(b"".join(pieces), self._reading):
                events.append(event)
            if self._tap is not None:
                self._tap.ending = True
        except ToolwireError as error:
            return events, error
        return events, None

    async def _refusal(self, incoming: Incoming) -> ProviderError:
        body = bytearray()
        try:
            async with timeout(MAX_ERROR_SECONDS):
                async for chunk in incoming.chunks:
                    body += chunk
                    if len(body) >= MAX_ERROR_BODY:
                        break
        except (ConnectionFailed, TimeoutError):
            # The status is sufficient; the body was cut.
            pass
        word = incoming.headers.get("x-should-retry", "").lower()
        self.should_retry = {"true": True, "false": False}.get(word)
        status = incoming.status
        if 300 <= status < 400:
            return _redirected(status, self._outgoing.url, incoming.headers.get("location", ""))
        return self._dialect.error(status, incoming.headers, bytes(body[:MAX_ERROR_BODY]))


class _Tapped:
    """The chunks of an answer, which also go to a tap."""

    def __init__(self, chunks: AsyncIterator[bytes], tap: AnswerTap) -> None:
        self._chunks = chunks
        self._tap = tap

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    @property
    def at_end(self) -> bool:
        """Whether all chunks were read."""
        return getattr(self._chunks, "at_end", False)

    async def __anext__(self) -> bytes:
        chunk = await anext(self._chunks)
        self._tap.add(chunk)
        return chunk


async def _drained(chunks: AsyncIterator[bytes]) -> None:
    """Reads to the end of the body, so that the connection can be reused.

    Does not wait for servers that leave it open after the answer.
    """
    if getattr(chunks, "at_end", False):
        return
    with suppress(TimeoutError, ConnectionFailed):
        async with timeout(_LINGER):
            async for _ in chunks:
                pass


async def _head(chunks: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    """The first bytes, and whether they start one JSON object instead of a stream.

    Headers are not reliable: servers answer streams with JSON and label streams as JSON.
    """
    head, blank = b"", 0
    try:
        async for chunk in chunks:
            head += chunk
            content = head.removeprefix(_BOM).lstrip(_SPACE)
            if content:
                return head, content[:1] == b"{"
            if len(head) > len(_BOM):
                # Whitespace is skipped, up to a limit.
                blank += len(head)
                head = b""
            if blank > MAX_BLANK:
                raise MalformedStream(f"the answer begins with more than {MAX_BLANK} blank bytes")
    except ConnectionFailed as broken:
        raise IncompleteStream(str(broken)) from broken
    return head, False


def _redirected(status: int, url: str, location: str) -> ProviderError:
    host = urlsplit(url).hostname
    target = hide_in_url(location) if location else "nowhere"
    return ProviderError(
        ErrorKind.BAD_REQUEST,
        f"{host} answers {status} and points to {target}; credentials are not sent along, "
        "set the base address to the right one",
        status=status,
    )
