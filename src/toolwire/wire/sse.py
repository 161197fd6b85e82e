"""Server-sent events: bytes to frames and back, whatever the chunking."""

from typing import NoReturn

import msgspec

from toolwire.errors import IncompleteStream, MalformedStream
from toolwire.wire.json_stream import JsonSplitter

MAX_FRAME = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One server-sent event: its data and, where the server named it, its name."""

    data: bytes
    event: str = ""
    cut: bool = False
    """The input ended before the blank line that closes a frame."""


class SseDecoder:
    """One per response. Takes chunks cut anywhere; every byte is looked at a fixed number of times.

    A body that is JSON instead (an error object, Gemini's array stream) gives one frame per object.
    """

    def __init__(self, max_frame: int = MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._rest: list[bytes] = []
        self._size = 0
        self._after_newline = True
        self._skip_newline = False
        self._unready = True
        """Whether the next chunk needs more than splitting: the first, JSON, or after a CR."""
        self._started = False
        self._head: bytes | None = b""
        """What may still become a byte order mark; None once that is settled."""
        self._json: JsonSplitter | None = None
        self._names: dict[bytes, str] = {}
        self._early: list[Frame] = []
        """Frames whose blank line is missing, found with the one that has it."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes."""
        if not self._unready and not self._rest and len(chunk) <= self._max_frame:
            frame = self._alone(chunk)
            if frame is not None:
                return [frame]
        return self._split(chunk)

    def _alone(self, chunk: bytes) -> Frame | None:
        """The frame, where a chunk is just that: the way a live stream comes."""
        line, _, rest = chunk.partition(b"\n")
        if b"\r" in line:
            if rest != b"\r\n" or line.find(b"\r") != len(line) - 1:
                return None
            line, rest = line[:-1], b"\n"
        if rest == b"\n":
            return Frame(line[6:]) if line[:6] == b"data: " and len(line) > 6 else None
        if line[:7] == b"event: " and rest[:6] == b"data: ":
            data, _, rest = rest.partition(b"\n")
            if rest == b"\n" and len(data) > 6 and b"\r" not in data:
                return Frame(data[6:], self._name(line[7:]))
        return None

    def _split(self, chunk: bytes) -> list[Frame]:
        if self._unready:
            chunk = self._ready(chunk)
            if self._json is not None:
                return self._feed_json(self._json, chunk)
        end = b"\n\n"
        if b"\r" in chunk:
            ends = chunk.count(b"\r\n\r\n")
            if ends and chunk.count(b"\r") == chunk.count(b"\n") == 2 * ends:
                # Frames of one line each, as Gemini writes them: nothing to rewrite.
                end = b"\r\n\r\n"
            else:
                self._unready = self._skip_newline = chunk[-1] == 0x0D
                chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        held = self._rest
        if held:
            if end not in chunk and not (self._after_newline and chunk[:1] == b"\n"):
                if chunk:
                    self._hold(chunk)
                return []
            held.append(chunk)
            chunk = b"".join(held)
            held.clear()
            self._size = 0
        blocks = chunk.split(end)
        rest = blocks.pop()
        if len(chunk) > self._max_frame:
            self._check_sizes(blocks)
        if rest:
            self._hold(rest)
        frames: list[Frame] = []
        for block in blocks:
            if block[:6] == b"data: " and b"\n" not in block:
                if len(block) > 6:
                    frames.append(Frame(block[6:]))
                continue
            frame = self._named(block)
            if self._early:
                frames += self._early
                self._early.clear()
            if frame is not None:
                frames.append(frame)
        return frames

    def close(self) -> list[Frame]:
        """The frame an unterminated end leaves, if any."""
        if self._json is not None:
            if self._json.open:
                raise IncompleteStream("the body ended inside a JSON value")
            return []
        block = b"".join(self._rest)
        self._rest.clear()
        frame = self._named(block)
        early = self._early
        return early if frame is None else [*early, Frame(frame.data, frame.event, cut=True)]

    def _ready(self, chunk: bytes) -> bytes:
        if not self._started:
            chunk = self._start(chunk)
        if self._skip_newline and chunk:
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        self._unready = not self._started or self._skip_newline or self._json is not None
        return chunk

    def _start(self, chunk: bytes) -> bytes:
        # A byte order mark and blank lines may stand before the first field; both may be cut.
        if self._head is not None:
            chunk = self._head + chunk
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._head = chunk
                return b""
            self._head = None
            chunk = chunk.removeprefix(_BOM)
        body = chunk.lstrip(b" \t\r\n")
        if body:
            self._started = True
            if body[:1] in (b"{", b"["):
                self._json = JsonSplitter()
        return body

    def _feed_json(self, splitter: JsonSplitter, chunk: bytes) -> list[Frame]:
        objects = splitter.feed(chunk)
        self._check_sizes(objects)
        if splitter.pending > self._max_frame:
            self._refuse()
        return [Frame(data) for data in objects]

    def _hold(self, piece: bytes) -> None:
        self._rest.append(piece)
        self._after_newline = piece[-1] == 0x0A
        self._size += len(piece)
        # The first half of the blank line that ends a frame may be here already.
        if self._size > self._max_frame + 1:
            self._refuse()

    def _check_sizes(self, frames: list[bytes]) -> None:
        if any(len(frame) > self._max_frame for frame in frames):
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise MalformedStream(f"a frame is longer than {self._max_frame} bytes")

    def _named(self, block: bytes) -> Frame | None:
        if block[:7] == b"event: ":
            cut = block.find(b"\n")
            if block[cut + 1 : cut + 7] == b"data: " and cut > 0 and block.find(b"\n", cut + 1) < 0:
                data = block[cut + 7 :]
                return Frame(data, self._name(block[7:cut])) if data else None
        return self._lines(block)

    def _lines(self, block: bytes) -> Frame | None:
        data: list[bytes] = []
        names: list[str] = []
        name = ""
        lines = iter(block.split(b"\n"))
        for line in lines:
            field, _, value = line.lstrip(b" ").partition(b":")
            if value[:1] == b" ":
                value = value[1:]
            if field == b"data":
                data.append(value)
                names.append(name)
            elif field == b"event":
                name = self._name(value)
            elif field[:1] in (b"{", b"[") and not data:
                # An error object written into the stream without its field name.
                rest = [line, *lines]
                return Frame(b"\n".join(rest), name)
        if len(data) > 1 and all(map(_is_frame, data)):
            # No JSON value goes on after `}` and a line end: each line is a frame.
            self._early += map(Frame, data[:-1], names[:-1])
            return Frame(data[-1], names[-1])
        # Data without a byte in it is a keep-alive.
        text = b"\n".join(data)
        return Frame(text, name) if text else None

    def _name(self, raw: bytes) -> str:
        name = self._names.get(raw)
        if name is None:
            name = raw.decode("utf-8", "replace")
            if len(self._names) < 256:
                self._names[raw] = name
        return name


def _is_frame(line: bytes) -> bool:
    return (line[:1] == b"{" and line.rstrip()[-1:] == b"}") or line[:6] == b"[DONE]"


# Some client SDKs cut lines at these too; inside JSON they may always be escaped instead.
_ODD_LINE_ENDS = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\u0085".encode(), b"\\u0085"),
)


class SseEncoder:
    """Frames to bytes that every client reads the same way."""

    def encode(self, frame: Frame) -> bytes:
        """The frame with its blank line."""
        data = frame.data
        if not data.isascii():
            for raw, escaped in _ODD_LINE_ENDS:
                data = data.replace(raw, escaped)
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
        if frame.event:
            return b"event: %b\ndata: %b\n\n" % (frame.event.encode(), data)
        return b"data: %b\n\n" % data
