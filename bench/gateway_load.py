"""Load on a gateway over bare sockets; a process of its own, one JSON line as the result.

`python -m bench.gateway_load SETTINGS`, a JSON object with the members of `Load`.
"""

import asyncio
import resource
import sys
import time
from statistics import median
from urllib.parse import urlsplit

import msgspec

END = b"0\r\n\r\n"
DELTA = b"event: content_block_delta"
STOP = b"event: message_stop"
CHAT = "/v1/chat/completions"
CHAT_STOP = b"data: [DONE]"


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, how often, on how many connections at once."""

    origin: str
    path: str = "/v1/messages"
    stream: bool
    connections: int = 32
    seconds: float = 0.0
    """Ask until this many seconds have passed; 0 for `times` requests on each connection."""
    times: int = 1
    size: int = 2000
    """Characters of the user's message."""
    key: str = "none"


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """What came back."""

    requests: int
    whole: int
    """Answers with status 200 and their own end."""
    deltas: int
    p50: float
    """Milliseconds to the end of an answer."""
    first: float
    """Milliseconds to the first byte, median."""
    seconds: float


def request(load: Load) -> bytes:
    """Returns the request as bytes."""
    message = {"role": "user", "content": "x" * load.size}
    value: dict[str, object] = {
        "model": "bench-chat-text-fifty",
        "max_tokens": 100,
        "messages": [message],
    }
    if load.path == CHAT and load.stream:
        value["stream_options"] = {"include_usage": True}
    body = msgspec.json.encode({**value, "stream": load.stream})
    head = (
        f"POST {load.path} HTTP/1.1\r\nhost: {urlsplit(load.origin).netloc}\r\n"
        f"x-api-key: {load.key}\r\nauthorization: Bearer {load.key}\r\n"
        f"anthropic-version: 2023-06-01\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Asking(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, load: Load, data: bytes, until: float) -> None:
        self._load = load
        self._data = data
        self._until = until
        self._left = load.times
        self._got = bytearray()
        self._length = -1
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.seconds: list[float] = []
        self.firsts: list[float] = []
        self.whole = self.deltas = self.requests = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Sends the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        self._got.clear()
        self._length = -1
        self.requests += 1
        self._begun = time.perf_counter()
        self._transport.write(self._data)

    def data_received(self, data: bytes) -> None:
        """Collects the answer."""
        if not self._got:
            self.firsts.append(time.perf_counter() - self._begun)
        self._got += data
        if self._length < 0:
            self._length = self._end_of_head()
        if self._length > 0 and len(self._got) < self._length:
            return
        if self._length == 0 and not self._got.endswith(END):
            return
        self._answered()

    def _end_of_head(self) -> int:
        """The length of the answer; 0 if it is chunked, -1 if its head is not there yet."""
        end = self._got.find(b"\r\n\r\n")
        if end < 0:
            return -1
        head = bytes(self._got[:end]).lower()
        at = head.find(b"content-length:")
        return 0 if at < 0 else end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0])

    def _answered(self) -> None:
        self.seconds.append(time.perf_counter() - self._begun)
        found = self._got.count(DELTA)
        self.deltas += found
        stop = CHAT_STOP if self._load.path == CHAT else STOP
        ended = stop in self._got if self._load.stream else True
        self.whole += self._got.startswith(b"HTTP/1.1 200") and ended
        self._left -= 1
        more = time.perf_counter() < self._until if self._until else self._left > 0
        if more:
            self._ask()
        else:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends, also where the gateway hung up."""
        if not self.done.done():
            self.done.set_result(None)


async def put_on(load: Load) -> Answered:
    """Puts the load on and returns what came back."""
    place = urlsplit(load.origin)
    loop = asyncio.get_running_loop()
    data = request(load)
    begun = time.perf_counter()
    until = begun + load.seconds if load.seconds else 0.0
    asking: list[_Asking] = []
    for _ in range(load.connections):
        made = await loop.create_connection(
            lambda: _Asking(load, data, until), place.hostname or "", place.port or 80
        )
        asking.append(made[1])
    await asyncio.gather(*(one.done for one in asking))
    seconds = [taken for one in asking for taken in one.seconds]
    firsts = [taken for one in asking for taken in one.firsts]
    return Answered(
        requests=sum(one.requests for one in asking),
        whole=sum(one.whole for one in asking),
        deltas=sum(one.deltas for one in asking),
        p50=median(seconds or [0.0]) * 1e3,
        first=median(firsts or [0.0]) * 1e3,
        seconds=time.perf_counter() - begun,
    )


if __name__ == "__main__":
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, most), most))
    settings = msgspec.json.decode(sys.argv[1], type=Load)
    print(msgspec.json.encode(asyncio.run(put_on(settings))).decode(), flush=True)
