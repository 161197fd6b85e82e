"""What is recorded of a request: its shape, or its bytes and those of its attempts."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from toolwire.client.redact import secrets_of
from toolwire.errors import ConnectionFailed, ToolwireError
from toolwire.messages import Text, Thinking, ToolCall, ToolResult
from toolwire.request import Loss, ServerTool

if TYPE_CHECKING:
    from toolwire.client.http.exchange import Incoming, Outgoing, Transport
    from toolwire.events import Notice
    from toolwire.gateway.parts import Recalled
    from toolwire.messages import Message, Part
    from toolwire.request import AnyTool, ModelRequest

Level: TypeAlias = Literal["off", "meta", "full"]
MOST_BODY = 8 * 1024 * 1024
"""Of one recorded body."""
_MOST_MESSAGES = 200


class PartShape(msgspec.Struct, frozen=True, gc=False):
    """A part without its words."""

    kind: str
    size: int


class MessageShape(msgspec.Struct, frozen=True, gc=False):
    """A message without its words."""

    role: str
    parts: tuple[PartShape, ...]


class ToolShape(msgspec.Struct, frozen=True, gc=False):
    """A tool by its name."""

    name: str
    size: int


class RequestShape(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What may be shown of a request whose words are not recorded."""

    size: int = 0
    system: int = 0
    tools: tuple[ToolShape, ...] = ()
    messages: tuple[MessageShape, ...] = ()


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(RequestShape).decode


class NotedLoss(msgspec.Struct, frozen=True):
    """A loss, and which step of the gateway it happened in."""

    path: str
    what: str
    why: str
    where: str


class Tape:
    """Pieces of a body with the times of their arrival."""

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self.pieces: list[tuple[float, bytes]] = []
        self.size = 0
        self.cut = False
        """Whether the rest was not recorded."""

    def add(self, data: bytes) -> None:
        """Adds a piece, unless the body is too long."""
        if self.size + len(data) > MOST_BODY:
            self.cut = True
            return
        self.size += len(data)
        self.pieces.append((time.perf_counter() - self._begun, data))

    @property
    def data(self) -> bytes:
        """Everything so far."""
        return b"".join([data for _, data in self.pieces])


_NO_TAPE = Tape(0.0)
"""Of requests whose bytes are not recorded."""


class UpstreamAttempt:
    """One request to an upstream, and its answer."""

    def __init__(self, outgoing: Outgoing, begun: float) -> None:
        self.outgoing = outgoing
        self.at = time.perf_counter() - begun
        self.seconds = 0.0
        self.status = 0
        self.fields: tuple[tuple[str, str], ...] = ()
        self.answer = Tape(begun)
        self.ended = ""
        """`complete`, `closed` by the reader, `broken` or `timeout`."""
        self.error = ""


class NotedAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt as far as it is known without its bytes."""

    deployment: str
    status: int | None = None
    error: str = ""


class Capture:
    """What is recorded of one request."""

    # Defaults of the class: most requests leave nearly all of these empty.
    method = ""
    target = ""
    fields: tuple[tuple[str, str], ...] = ()
    body = b""
    secrets: tuple[str, ...] = ()
    _shape: RequestShape | None = None
    _packed = b""
    """The shape of a request that has ended."""
    decoded: ModelRequest | None = None
    """As the client sent it."""
    request: ModelRequest | None = None
    """As the upstream was asked."""
    losses: tuple[NotedLoss, ...] = ()
    attempts: tuple[UpstreamAttempt, ...] = ()
    failed: tuple[NotedAttempt, ...] = ()
    sent = _NO_TAPE
    """The client's answer."""
    status = 0
    reattached = 0

    def __init__(self, level: Level, begun: float) -> None:
        self.level: Level = level
        self._begun = begun
        if level == "full":
            self.sent = Tape(begun)

    @property
    def shape(self) -> RequestShape | None:
        """Names, kinds and sizes of the client's request."""
        return _unpack(self._packed) if self._packed else self._shape

    def end(self, status: int) -> None:
        """The request has ended with this status."""
        self.status = status
        if self._shape is not None:
            self._packed, self._shape = _pack(self._shape), None

    @property
    def size(self) -> int:
        """Bytes that are kept for it."""
        if self.level != "full":
            return 0
        size = len(self.body) + self.sent.size
        for one in self.attempts:
            size += len(one.outgoing.body) + one.answer.size
        return size

    def decoding(self, request: ModelRequest, size: int) -> None:
        """Takes note of the client's request."""
        self._shape = shape_of(request, size)
        if self.level == "full":
            self.decoded = request

    def asking(self, request: ModelRequest, recalled: Recalled, notes: tuple[Loss, ...]) -> None:
        """Takes note of the request that goes to an upstream."""
        self.reattached = recalled.reattached
        found = [_noted(loss, "memory") for loss in recalled.losses]
        self.losses = (*found, *[_noted(loss, "client_note") for loss in notes])
        if self.level == "full":
            self.request = request

    def noticed(self, notice: Notice, deployment: str) -> None:
        """Takes note of a loss or a retry."""
        if notice.loss is not None:
            self.losses = (*self.losses, _noted(notice.loss, "conversion"))
        if notice.retry is not None:
            failed = NotedAttempt(
                deployment=deployment, status=notice.retry.status, error=notice.message
            )
            self.failed = (*self.failed, failed)

    def failing(self, deployment: str, error: ToolwireError) -> None:
        """Takes note of a deployment that did not answer."""
        status = getattr(error, "status", None)
        failed = NotedAttempt(deployment=deployment, status=status, error=str(error))
        self.failed = (*self.failed, failed)

    def attempt(self, outgoing: Outgoing) -> UpstreamAttempt:
        """Begins to record an attempt."""
        found = UpstreamAttempt(outgoing, self._begun)
        self.attempts = (*self.attempts, found)
        self.secrets = (*self.secrets, *secrets_of(outgoing.url, outgoing.headers))
        return found


_capture: ContextVar[Capture | None] = ContextVar("capture", default=None)


def capturing() -> Capture | None:
    """Where the request of this task is recorded."""
    return _capture.get()


def set_capture(capture: Capture | None) -> None:
    """From now on the request of this task is recorded there; None: nowhere."""
    _capture.set(capture)


@contextmanager
def capture_here(capture: Capture) -> Generator[None]:
    """Records the requests of this task, which no client sent."""
    before = _capture.set(capture)
    try:
        yield
    finally:
        _capture.reset(before)


def _noted(loss: Loss, where: str) -> NotedLoss:
    return NotedLoss(loss.path, loss.what, loss.why, where)


def shape_of(request: ModelRequest, size: int) -> RequestShape:
    """The names, kinds and sizes of a request."""
    return RequestShape(
        size=size,
        system=sum([len(text.text) for text in request.system]),
        tools=tuple(map(_tool_shape, request.tools[:_MOST_MESSAGES])),
        messages=tuple(map(_message_shape, request.messages[-_MOST_MESSAGES:])),
    )


def _tool_shape(tool: AnyTool) -> ToolShape:
    if isinstance(tool, ServerTool):
        return ToolShape(tool.kind, len(tool.data))
    return ToolShape(tool.name, len(tool.description))


def _message_shape(message: Message) -> MessageShape:
    return MessageShape(message.role, tuple(map(_part_shape, message.parts)))


def _part_shape(part: Part) -> PartShape:
    # Text first, and no union type, which is slow to look into: a request may have hundreds.
    if isinstance(part, Text):
        return PartShape("text", len(part.text))
    if isinstance(part, ToolCall):
        return PartShape("tool_call", len(part.arguments))
    if isinstance(part, ToolResult):
        size = sum([len(one.text) for one in part.parts if isinstance(one, Text)])
        return PartShape("tool_result", size)
    if isinstance(part, Thinking):
        return PartShape("thinking", len(part.text))
    return PartShape(str(part.__struct_config__.tag), 0)


class WatchedTransport:
    """Records the exchanges of requests that are recorded in full."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    def open(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Sends the request."""
        capture = _capture.get()
        if capture is None or capture.level != "full":
            return self._inner.open(request)
        return self._recorded(request, capture)

    @asynccontextmanager
    async def _recorded(self, request: Outgoing, capture: Capture) -> AsyncGenerator[Incoming]:
        attempt = capture.attempt(request)
        begun = time.perf_counter()
        try:
            async with self._inner.open(request) as incoming:
                attempt.status = incoming.status
                attempt.fields = tuple(incoming.headers.items())
                yield msgspec.structs.replace(incoming, chunks=_taped(incoming.chunks, attempt))
        except ConnectionFailed as error:
            attempt.ended = "timeout" if error.kind == "timeout" else "broken"
            attempt.error = str(error)
            raise
        finally:
            attempt.ended = attempt.ended or "closed"
            attempt.seconds = time.perf_counter() - begun

    async def aclose(self) -> None:
        """Closes the connections."""
        close = getattr(self._inner, "aclose", None)
        if close is not None:
            await close()


async def _taped(chunks: AsyncIterator[bytes], attempt: UpstreamAttempt) -> AsyncGenerator[bytes]:
    async for chunk in chunks:
        attempt.answer.add(chunk)
        yield chunk
    attempt.ended = "complete"
