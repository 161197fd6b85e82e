"""A provider on loopback that costs next to nothing: prebuilt answers, chosen by the model's name.

Run as `python -m bench.upstream`; it prints its port. A model is named `bench-STREAM-PACE`:
`burst` writes 16 KB at a time, `paced` one frame per TCP segment, `brief` a few words at once,
`fifty` 50 frames at once and `slow` 50 frames over seconds. A request that names neither a stream
nor an address that streams gets a whole answer.
"""

import asyncio
import re

from bench import streams

GAPS = {"paced": 0.001, "slow": 0.05}
_BURST = 16384
_MODEL = re.compile(rb"bench-([a-z]+-[a-z]+)-(burst|paced|brief|fifty|slow)")
_STREAMS = re.compile(rb'"stream": ?true|streamGenerateContent')
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\nx-request-id: req_bench\r\nrequest-id: req_bench\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
_WHOLE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_WHOLE = b"""{"id":"chatcmpl-bench","object":"chat.completion","created":1700000000,\
"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":\
"A stream of events is read once.","refusal":null},"logprobs":null,"finish_reason":"stop"}],\
"usage":{"prompt_tokens":100,"completion_tokens":8,"total_tokens":108}}"""
EVENTS = {"burst": streams.EVENTS, "paced": 200, "brief": 4, "fifty": 48, "slow": 48}
_AT_ONCE = frozenset({"brief", "fifty"})


def model_name(stream: str, pace: str) -> str:
    """The model to ask for."""
    return f"bench-{stream}-{pace}"


def _segments(stream: str, pace: str) -> list[bytes]:
    frames = streams.build(stream, EVENTS[pace]).frames
    chunks = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in frames]
    chunks.append(b"0\r\n\r\n")
    if pace in GAPS:
        return chunks
    body = b"".join(chunks)
    if pace in _AT_ONCE:
        return [body]
    return [body[at : at + _BURST] for at in range(0, len(body), _BURST)]


class Provider(asyncio.Protocol):
    """One connection; answers one request after another."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop writing to nobody."""
        if self._answer is not None:
            self._answer.cancel()

    def pause_writing(self) -> None:
        """Wait for the client."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Answer every whole request."""
        self._received += data
        while (size := _request_size(self._received)) > 0:
            request, self._received = self._received[:size], self._received[size:]
            self._reply(request)

    def _reply(self, request: bytes) -> None:
        found = _MODEL.search(request)
        if found is None:
            self._transport.write(_UNKNOWN)
            return
        if _STREAMS.search(request) is None:
            self._transport.write(_WHOLE_HEAD % len(_WHOLE) + _WHOLE)
            return
        stream, pace = found.group(1).decode(), found.group(2).decode()
        segments = _PREBUILT[stream, pace]
        if pace in _AT_ONCE:
            self._transport.write(_HEAD + segments[0])
            return
        self._answer = asyncio.ensure_future(self._stream(segments, GAPS.get(pace, 0)))

    async def _stream(self, segments: list[bytes], gap: float) -> None:
        self._transport.write(_HEAD)
        for segment in segments:
            self._transport.write(segment)
            if gap:
                await asyncio.sleep(gap)
            await self._writable.wait()


def _request_size(received: bytes) -> int:
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return 0
    head = received[:end].lower()
    size = end + 4
    length = re.search(rb"content-length: *(\d+)", head)
    if length is not None:
        size += int(length.group(1))
    elif b"transfer-encoding: chunked" in head:
        last = received.find(b"0\r\n\r\n", size)
        if last < 0:
            return 0
        size = last + 5
    return size if len(received) >= size else 0


_PREBUILT: dict[tuple[str, str], list[bytes]] = {}


async def _serve() -> None:
    for stream in streams.NAMES:
        for pace in EVENTS:
            _PREBUILT[stream, pace] = _segments(stream, pace)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Provider, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
