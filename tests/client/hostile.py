"""A server on loopback, in a thread of its own, that sends whatever an attack writes."""

import gzip
import re
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

Attack = Callable[[], Iterator[bytes]]
"""The bytes of one connection after its request; without end if the client does not stop it."""
MEGABYTE = 1024 * 1024


@contextmanager
def hostile(attack: Attack) -> Generator[str]:
    """The origin of a server that answers every request with the attack."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=_answer, args=(connection, attack), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.close()


def _answer(connection: socket.socket, attack: Attack) -> None:
    with suppress(OSError), connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        length = re.search(rb"content-length: (\d+)", head)
        left = int(length[1]) - len(head.partition(b"\r\n\r\n")[2]) if length else 0
        while left > 0:
            left -= len(connection.recv(65536))
        for piece in attack():
            connection.sendall(piece)


def head(*headers: str, status: int = 200, kind: str = "text/event-stream") -> bytes:
    lines = (f"HTTP/1.1 {status} X", f"content-type: {kind}", "connection: close", *headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def endless(piece: bytes, *headers: str, first: bytes = b"", **more: Any) -> Attack:
    """A body of one piece again and again."""
    block = piece * max(1, 65536 // len(piece))

    def attack() -> Iterator[bytes]:
        yield head(*headers, **more) + first
        while True:
            yield block

    return attack


def bomb(piece: bytes, **more: Any) -> Attack:
    """Gzip members without end, each of which holds 64 MB; made when it is sent."""

    def attack() -> Iterator[bytes]:
        member = gzip.compress(piece * (64 * MEGABYTE // len(piece)), 9)
        yield from endless(member, "content-encoding: gzip", **more)()

    return attack


def once(body: bytes, *headers: str, **more: Any) -> Attack:
    def attack() -> Iterator[bytes]:
        yield head(*headers, **more)
        yield body

    return attack


def raw(*pieces: bytes, last: bytes = b"") -> Attack:
    """Exactly these bytes, then the last without end."""

    def attack() -> Iterator[bytes]:
        yield from pieces
        while last:
            yield last * max(1, 65536 // len(last))

    return attack


def frame(value: object) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"


def fragment(index: int, **call: object) -> bytes:
    """A chat chunk with one piece of one call."""
    members = {name: value for name, value in call.items() if name == "id"}
    function = {name: value for name, value in call.items() if name != "id"}
    one = {"index": index, **members, "function": function}
    return frame({"choices": [{"delta": {"tool_calls": [one]}}]})


CHAT_END = frame({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}) + b"data: [DONE]\n\n"
