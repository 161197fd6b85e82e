"""What a handler sees: one request, and the answer it writes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from toolwire.wire.http1 import LAST_CHUNK, RequestHead, inflated, write_chunk, write_head

Fields: TypeAlias = Sequence[tuple[str, str]]
_WITHOUT_BODY = (204, 304)


class ClientGone(Exception):
    """The client closed the connection, or stopped reading."""


class Ends(msgspec.Struct, frozen=True):
    """Both ends of a connection, as IP addresses; empty where there is none."""

    client: str = ""
    server: str = ""
    port: int = 0
    """The server's."""


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer that closes the connection, because the request is not read."""

    status: int
    fields: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def plain_refusal(status: int, words: str) -> Refusal:
    """A refusal as a line of text."""
    fields = (("content-type", "text/plain; charset=utf-8"),)
    return Refusal(status=status, fields=fields, body=f"{words}\n".encode())


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, its body complete."""

    head: RequestHead
    method: str
    """In capitals, as sent."""
    path: str
    """The target without its query."""
    body: bytes
    """As it was sent; `plain_body` is without its content coding."""
    address: str = ""
    """The IP address of the client's end of the connection."""

    @classmethod
    def of(cls, head: RequestHead, body: bytes, address: str = "") -> "Asked":
        """The request of a head."""
        target = head.target
        path = target.partition("?")[0] if "?" in target else target
        return cls(head=head, method=head.method, path=path, body=body, address=address)

    @property
    def query(self) -> str:
        """What follows the question mark; empty without one."""
        return self.head.target.partition("?")[2]

    def plain_body(self, most: int) -> bytes:
        """The body inflated; RefusedRequest if it is longer or its coding is not known."""
        return inflated(self.head, self.body, most)

    def field(self, name: str) -> str:
        """The value of a header; empty without it."""
        return self.head.field(name)

    def has(self, name: str) -> bool:
        """Whether a header was sent."""
        return name in self.head.by_name


class Outlet(Protocol):
    """Where an answer's bytes go."""

    @property
    def full(self) -> bool:
        """Whether the client reads slowly."""
        ...

    def put(self, data: bytes, *, held: bool = False) -> None:
        """Writes without waiting; raises ClientGone without a client.

        What is `held` goes out with what is written next.
        """
        ...

    async def drained(self) -> None:
        """Waits while the client reads slowly; raises ClientGone if it stops."""
        ...


class Answering:
    """The answer to one request: `whole`, or `begin`, `send` as often as needed, `end` or `cut`.

    `put_head` and `put` are `begin` and `send` that never wait, for callers that look at `full`.
    What is written in one turn of the event loop goes out as one piece.
    """

    _chunked = False
    begun = False
    ended = False
    is_cut = False
    left = False
    """Whether the client has closed the connection."""
    _gone: asyncio.Event | None = None
    when_gone: Callable[[], object] | None = None
    """Called when the client has closed the connection, if the answer is not complete."""
    sent = 0
    """Bytes of the body so far."""
    added: Fields = ()
    """Fields of every answer to this request."""
    tap: Callable[[bytes], object] | None = None
    """Receives the pieces of the body too."""

    def __init__(self, head: RequestHead, outlet: Outlet) -> None:
        self._head = head
        self._outlet = outlet
        self._silent = head.method == "HEAD"
        self.keeps = head.keeps
        """Whether the connection stays open afterwards."""

    async def whole(
        self, status: int, fields: Fields = (), body: bytes = b"", *, held: bool = False
    ) -> None:
        """The whole answer at once; `held` until the handler returns, if that is soon."""
        silent = self._silent
        if status in _WITHOUT_BODY:
            silent = True
        else:
            fields = (*fields, ("content-length", str(len(body))))
        head = self._written(status, fields)
        self.begun = True
        if not silent:
            self.sent = len(body)
        if self.tap is not None:
            self.tap(body)
        self._outlet.put(head if silent else head + body, held=held)
        self.ended = True
        if self._outlet.full:
            await self._outlet.drained()

    @property
    def gone(self) -> asyncio.Event:
        """Set when the client has closed the connection; made for those that wait for that."""
        if self._gone is None:
            self._gone = asyncio.Event()
            if self.left:
                self._gone.set()
        return self._gone

    def leave(self) -> None:
        """Takes note that the client has closed the connection."""
        self.left = True
        if self._gone is not None:
            self._gone.set()

    @property
    def full(self) -> bool:
        """Whether the client reads slowly."""
        return self._outlet.full

    async def drained(self) -> None:
        """Waits while the client reads slowly; raises ClientGone if it stops."""
        await self._outlet.drained()

    async def refuse(self, refusal: Refusal) -> None:
        """A refusal as the whole answer."""
        await self.whole(refusal.status, refusal.fields, refusal.body)

    async def begin(self, status: int, fields: Fields = ()) -> None:
        """The head of an answer whose length is not known."""
        self.put_head(status, fields)
        if self._outlet.full:
            await self._outlet.drained()

    def put_head(self, status: int, fields: Fields = ()) -> None:
        """The same without waiting."""
        # A client of HTTP/1.0 knows no chunks: the end of the connection ends the body.
        self._chunked = self._head.minor == 1
        self.keeps = self.keeps and self._chunked
        coding = (("transfer-encoding", "chunked"),) if self._chunked else ()
        self.begun = True
        self._outlet.put(self._written(status, (*fields, *coding)))

    async def send(self, data: bytes) -> None:
        """A piece of the body."""
        self.put(data)
        if self._outlet.full:
            await self._outlet.drained()

    def put(self, data: bytes, *, last: bool = False, held: bool = False) -> None:
        """A piece of the body, with the end of the body if it is the `last`, without waiting.

        A piece that is `held` goes out with the next one.
        """
        if data and not self._silent:
            self.sent += len(data)
            if self.tap is not None:
                self.tap(data)
            framed = write_chunk(data) if self._chunked else data
            whole = framed + LAST_CHUNK if last and self._chunked else framed
            self._outlet.put(whole, held=held)
        elif last and self._chunked and not self._silent:
            self._outlet.put(LAST_CHUNK)
        self.ended = last

    async def end(self) -> None:
        """The end of the body."""
        self.put(b"", last=True)
        if self._outlet.full:
            await self._outlet.drained()

    def cut(self) -> None:
        """Closes the connection after what was sent, without the end of the body."""
        self.is_cut = True

    def _written(self, status: int, fields: Fields) -> bytes:
        if self.added:
            fields = (*fields, *self.added)
        if not self.keeps:
            fields = (*fields, ("connection", "close"))
        return write_head(status, fields)


Handle: TypeAlias = Callable[[Asked, Answering], Awaitable[None]]
"""Answers one request; what it raises becomes a 500, or cuts an answer that has begun."""
