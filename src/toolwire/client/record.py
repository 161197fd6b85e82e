"""Raw exchanges written down as readable lines, and played back, without secrets."""

from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from toolwire.client.difference import first_difference
from toolwire.client.redact import Redactor, hide_headers, hide_in_url, secrets_of
from toolwire.client.transport import Incoming, Outgoing, Transport
from toolwire.errors import BadInput, ConnectionFailed

Pairs = tuple[tuple[str, str], ...]


class Body(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes: as text where they are UTF-8, else in base64."""

    text: str = ""
    base64: str = ""

    @classmethod
    def of(cls, data: bytes) -> "Body":
        """The bytes, written."""
        try:
            return cls(text=data.decode())
        except UnicodeDecodeError:
            return cls(base64=b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The bytes, read."""
        return b64decode(self.base64) if self.base64 else self.text.encode()


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The request of an exchange."""

    method: str
    url: str
    headers: Pairs
    body: Body

    @classmethod
    def of(cls, request: Outgoing, redactor: Redactor) -> "Asked":
        """The request without its secrets."""
        return cls(
            method=request.method,
            url=redactor.text(hide_in_url(request.url)),
            headers=_shown(request.headers, redactor),
            body=Body.of(redactor.body(request.body)),
        )

    @property
    def path(self) -> str:
        """Path and query; the host may be another when played back."""
        parts = urlsplit(self.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The response of an exchange, as far as it was read."""

    status: int
    headers: Pairs
    body: Body
    chunks: tuple[int, ...]
    """How many bytes came at a time."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    request: Asked
    response: Answered | None = None
    """None if no answer came."""
    end: Literal["complete", "closed", "broken", "timeout"] = "complete"
    """`closed`: the reader stopped first."""
    error: str = ""


class RecordingTransport:
    """Passes everything through; each exchange becomes a line for `sink` when it is over."""

    def __init__(
        self, inner: Transport, sink: Callable[[str], None], *, secrets: Iterable[str] = ()
    ) -> None:
        self._inner = inner
        self._sink = sink
        self._secrets = tuple(secrets)

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """Send and write down."""
        tape = _Tape(request, self._secrets)
        try:
            async with self._inner.open(request) as incoming:
                tape.incoming = incoming
                yield msgspec.structs.replace(incoming, chunks=tape.run(incoming.chunks))
        except ConnectionFailed as error:
            tape.stop(error)
            raise
        finally:
            self._sink(msgspec.json.encode(tape.exchange()).decode())


class _Tape:
    """One exchange while it happens."""

    def __init__(self, request: Outgoing, secrets: Iterable[str]) -> None:
        self._redactor = Redactor((*secrets, *secrets_of(request.url, request.headers)))
        self._request = request
        self._chunks: list[bytes] = []
        self._end: Literal["complete", "closed", "broken", "timeout"] = "closed"
        self._error = ""
        self.incoming: Incoming | None = None

    async def run(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """The chunks, kept on their way through."""
        try:
            async for chunk in chunks:
                self._chunks.append(chunk)
                yield chunk
        except ConnectionFailed as error:
            self.stop(error)
            raise
        self._end = "complete"

    def stop(self, error: ConnectionFailed) -> None:
        """Note how the connection failed."""
        self._end = "timeout" if error.kind == "timeout" else "broken"
        self._error = self._redactor.text(str(error))

    def exchange(self) -> Exchange:
        """What happened."""
        answered = None
        if self.incoming is not None:
            headers = tuple(self.incoming.headers.items())
            answered = Answered(
                status=self.incoming.status,
                headers=_shown(headers, self._redactor),
                # Redacted whole: a secret may lie across two chunks.
                body=Body.of(self._redactor.body(b"".join(self._chunks))),
                chunks=tuple(map(len, self._chunks)),
            )
        return Exchange(
            request=Asked.of(self._request, self._redactor),
            response=answered,
            end=self._end,
            error=self._error,
        )


class ReplayTransport:
    """Answers from a recording: each request gets the first unused answer to the same request."""

    def __init__(self, lines: Iterable[str], *, secrets: Iterable[str] = ()) -> None:
        self._left = [_read(line, number) for number, line in enumerate(lines, 1) if line.strip()]
        self._count = len(self._left)
        self._secrets = tuple(secrets)

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """Answer as the server once did."""
        exchange = self._take(request)
        response = exchange.response
        if response is None:
            raise _failure(exchange)
        yield Incoming(
            status=response.status,
            headers=dict(response.headers),
            chunks=_played(exchange, response),
        )

    def _take(self, request: Outgoing) -> Exchange:
        redactor = Redactor((*self._secrets, *secrets_of(request.url, request.headers)))
        asked = Asked.of(request, redactor)
        for place, exchange in enumerate(self._left):
            recorded = exchange.request
            if (recorded.method, recorded.path) == (asked.method, asked.path) and (
                recorded.body == asked.body
            ):
                return self._left.pop(place)
        if not self._left:
            raise BadInput(
                f"the recording is used up: all {self._count} of its answers were given, and "
                f"{asked.method} {asked.path} asks for another"
            )
        number = self._count - len(self._left) + 1
        raise BadInput(
            f"the recording has no answer to this request; it differs from recorded request "
            f"{number} of {self._count}: {_difference(self._left[0].request, asked)}"
        )


async def _played(exchange: Exchange, response: Answered) -> AsyncGenerator[bytes]:
    body, at = response.body.data, 0
    for size in response.chunks:
        yield body[at : at + size]
        at += size
    if exchange.end != "complete":
        raise _failure(exchange)


def _failure(exchange: Exchange) -> ConnectionFailed:
    words = exchange.error or "the recording stops here: its reader stopped"
    return ConnectionFailed(words, timed_out=exchange.end == "timeout")


def _read(line: str, number: int) -> Exchange:
    try:
        return msgspec.json.decode(line, type=Exchange)
    except msgspec.MsgspecError as error:
        raise BadInput(f"line {number} of the recording cannot be read: {error}") from error


def _shown(headers: Pairs, redactor: Redactor) -> Pairs:
    return tuple((name, redactor.text(value)) for name, value in hide_headers(headers))


def _difference(recorded: Asked, asked: Asked) -> str:
    if recorded.method != asked.method:
        return f"method {recorded.method}, now {asked.method}"
    if recorded.path != asked.path:
        return f"path {recorded.path}, now {asked.path}"
    return first_difference(recorded.body.data, asked.body.data)
