"""Recording and replay of raw exchanges as readable lines without secrets."""

from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec

from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.client.redact import Redactor, hide_headers, hide_in_url, secrets_of
from toolwire.errors import BadInput, ConnectionFailed
from toolwire.wire.json_access import dump

_SHOWN = 60


def first_difference(recorded: bytes, now: bytes) -> str:
    """Where a body differs from a recorded one: the JSON path if both are JSON, else the byte."""
    try:
        difference = _json(msgspec.json.decode(recorded), msgspec.json.decode(now), "body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        difference = None
    if difference is not None:
        return difference
    pairs = enumerate(zip(recorded, now, strict=False))
    shorter = min(len(recorded), len(now))
    at = next((position for position, (one, other) in pairs if one != other), shorter)
    one, other = recorded[at : at + _SHOWN], now[at : at + _SHOWN]
    return f"body at byte {at}: {one!r}, now {other!r}"


def _json(recorded: object, now: object, path: str) -> str | None:
    if isinstance(recorded, dict) and isinstance(now, dict):
        old, new = cast(dict[str, Any], recorded), cast(dict[str, Any], now)
        return _members(old, new, path)
    if isinstance(recorded, list) and isinstance(now, list):
        old, new = cast(list[Any], recorded), cast(list[Any], now)
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            if found := _json(one, other, f"{path}[{number}]"):
                return found
        return None if len(old) == len(new) else f"{path} has {len(old)} items, now {len(new)}"
    if type(cast(object, recorded)) is type(now) and recorded == now:
        return None
    if isinstance(recorded, str) and isinstance(now, str):
        return _texts(recorded, now, path)
    return f"{path} is {_short(cast(object, recorded))}, now {_short(now)}"


def _members(recorded: dict[str, Any], now: dict[str, Any], path: str) -> str | None:
    for name in (*recorded, *(name for name in now if name not in recorded)):
        inner = f"{path}.{name}"
        if name not in now:
            return f"{inner} is {_short(recorded[name])}, now missing"
        if name not in recorded:
            return f"{inner} is missing, now {_short(now[name])}"
        if found := _json(recorded[name], now[name], inner):
            return found
    return None


def _texts(recorded: str, now: str, path: str) -> str:
    pairs = enumerate(zip(recorded, now, strict=False))
    shorter = min(len(recorded), len(now))
    at = next((position for position, (one, other) in pairs if one != other), shorter)
    start = max(0, at - 10)
    return f"{path} at character {at} is {_short(recorded[start:])}, now {_short(now[start:])}"


def _short(value: object) -> str:
    text = dump(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


Pairs = tuple[tuple[str, str], ...]


class RecordedBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes: as text where they are UTF-8, else in base64."""

    text: str = ""
    base64: str = ""

    @classmethod
    def of(cls, data: bytes) -> "RecordedBody":
        """The encoded bytes."""
        try:
            return cls(text=data.decode())
        except UnicodeDecodeError:
            return cls(base64=b64encode(data).decode())

    @property
    def data(self) -> bytes:
        """The decoded bytes."""
        return b64decode(self.base64) if self.base64 else self.text.encode()


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request of an exchange."""

    method: str
    url: str
    headers: Pairs
    body: RecordedBody

    @classmethod
    def of(cls, request: Outgoing, redactor: Redactor) -> "RecordedRequest":
        """The request without its secrets."""
        return cls(
            method=request.method,
            url=redactor.text(hide_in_url(request.url)),
            headers=_shown(request.headers, redactor),
            body=RecordedBody.of(redactor.body(request.body)),
        )

    @property
    def path(self) -> str:
        """Path and query; the host may differ in a replay."""
        parts = urlsplit(self.url)
        return f"{parts.path}?{parts.query}" if parts.query else parts.path


class RecordedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The response of an exchange, as far as it was received."""

    status: int
    headers: Pairs
    body: RecordedBody
    chunks: tuple[int, ...]
    """Sizes of the received chunks."""


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    request: RecordedRequest
    response: RecordedResponse | None = None
    """None if there was no response."""
    end: Literal["complete", "closed", "broken", "timeout"] = "complete"
    """`closed`: the reader stopped first."""
    error: str = ""


class RecordingTransport:
    """Passes everything through and sends each finished exchange to `sink` as a line."""

    def __init__(
        self, inner: Transport, sink: Callable[[str], None], *, secrets: Iterable[str] = ()
    ) -> None:
        self._inner = inner
        self._sink = sink
        self._secrets = tuple(secrets)

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """Send and record."""
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
    """One exchange during recording."""

    def __init__(self, request: Outgoing, secrets: Iterable[str]) -> None:
        self._redactor = Redactor((*secrets, *secrets_of(request.url, request.headers)))
        self._request = request
        self._chunks: list[bytes] = []
        self._end: Literal["complete", "closed", "broken", "timeout"] = "closed"
        self._error = ""
        self.incoming: Incoming | None = None

    async def run(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """The chunks, recorded as they pass."""
        try:
            async for chunk in chunks:
                self._chunks.append(chunk)
                yield chunk
        except ConnectionFailed as error:
            self.stop(error)
            raise
        self._end = "complete"

    def stop(self, error: ConnectionFailed) -> None:
        """Record how the connection failed."""
        self._end = "timeout" if error.kind == "timeout" else "broken"
        self._error = self._redactor.text(str(error))

    def exchange(self) -> Exchange:
        """The recorded exchange."""
        answered = None
        if self.incoming is not None:
            headers = tuple(self.incoming.headers.items())
            answered = RecordedResponse(
                status=self.incoming.status,
                headers=_shown(headers, self._redactor),
                # Redacted as a whole: a secret may span two chunks.
                body=RecordedBody.of(self._redactor.body(b"".join(self._chunks))),
                chunks=tuple(map(len, self._chunks)),
            )
        return Exchange(
            request=RecordedRequest.of(self._request, self._redactor),
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
        """Respond as recorded."""
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
        sent = RecordedRequest.of(request, redactor)
        for position, exchange in enumerate(self._left):
            recorded = exchange.request
            if (recorded.method, recorded.path) == (sent.method, sent.path) and (
                recorded.body == sent.body
            ):
                return self._left.pop(position)
        if not self._left:
            raise BadInput(
                f"the recording is used up: all {self._count} of its answers were given, and "
                f"{sent.method} {sent.path} asks for another"
            )
        number = self._count - len(self._left) + 1
        raise BadInput(
            f"the recording has no answer to this request; it differs from recorded request "
            f"{number} of {self._count}: {_difference(self._left[0].request, sent)}"
        )


async def _played(exchange: Exchange, response: RecordedResponse) -> AsyncGenerator[bytes]:
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


def _difference(recorded: RecordedRequest, sent: RecordedRequest) -> str:
    if recorded.method != sent.method:
        return f"method {recorded.method}, now {sent.method}"
    if recorded.path != sent.path:
        return f"path {recorded.path}, now {sent.path}"
    return first_difference(recorded.body.data, sent.body.data)
