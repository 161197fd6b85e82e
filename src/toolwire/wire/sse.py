"""Server-sent events: bytes to frames and back, in any chunking."""

from collections.abc import Sequence
from typing import NoReturn

import msgspec

from toolwire.errors import IncompleteStream, MalformedStream
from toolwire.wire.json_stream import JsonSplitter

MAX_FRAME = 64 * 1024 * 1024
MAX_LINES = 1_000_000
"""Lines of one frame; each costs more memory than it has bytes."""
_BOM = b"\xef\xbb\xbf"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One server-sent event: its data and, where the server named it, its name."""

    data: bytes
    event: str = ""
    cut: bool = False
    """The input ended before the blank line that closes a frame."""


class SseDecoder:
    """Decodes one response. Chunks may be cut anywhere; the cost per byte is constant.

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
        """The possible beginning of a byte order mark; None once decided."""
        self._json: JsonSplitter | None = None
        self._names: dict[bytes, str] = {}
        """The names of events, by the lines that give them."""

    @property
    def pending(self) -> int:
        """Bytes of the incomplete last frame."""
        return self._size if self._json is None else self._json.pending

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that this chunk completes."""
        if not self._unready and not self._rest and len(chunk) <= self._max_frame:
            frame = self._alone(chunk)
            if frame is not None:
                return [frame]
        return self._split(chunk)

    def _alone(self, chunk: bytes) -> Frame | None:
        """The frame of a chunk that is exactly one frame, as in a live stream."""
        if chunk[:6] == b"data: ":
            end = -4 if chunk[-4:] == b"\r\n\r\n" else -2
            if chunk[end:] == b"\n\n" or end == -4:
                data = chunk[6:end]
                return Frame(data) if data and b"\n" not in data and b"\r" not in data else None
            return None
        line, _, rest = chunk.partition(b"\n")
        name = self._names.get(line)
        if name is None or rest[:6] != b"data: " or b"\r" in rest:
            return None
        data, _, rest = rest.partition(b"\n")
        return Frame(data[6:], name) if rest == b"\n" and len(data) > 6 else None

    def _split(self, chunk: bytes) -> list[Frame]:
        if self._unready:
            chunk = self._ready(chunk)
            if self._json is not None:
                return self._feed_json(self._json, chunk)
        if b"\r" in chunk:
            chunk = self._with_newlines(chunk)
        if self._rest:
            if b"\n\n" not in chunk and not (self._after_newline and chunk[:1] == b"\n"):
                if chunk:
                    self._hold(chunk)
                return []
            chunk = b"".join((*self._rest, chunk))
            self._rest.clear()
            self._size = 0
            if len(chunk) > MAX_LINES and chunk.count(b"\n") > MAX_LINES:
                raise MalformedStream(f"a frame has more than {MAX_LINES} lines")
        if len(chunk) > self._max_frame:
            self._check_sizes(chunk.split(b"\n\n")[:-1])
        lines = chunk.split(b"\n")
        # The rest after the last blank line is incomplete.
        last = len(lines) - 2
        while last >= 0 and lines[last]:
            last -= 1
        rest = lines.pop() if last == len(lines) - 2 else b"\n".join(lines[last + 1 :])
        if rest:
            self._hold(rest)
            del lines[last + 1 :]
        return self._read(lines)

    def _read(self, lines: list[bytes]) -> list[Frame]:
        """The frames of these lines, the last of which is blank."""
        frames: list[Frame] = []
        names = self._names
        rows = iter(lines)
        for line in rows:
            if line[:6] == b"data: ":
                after = next(rows)
                if not after:
                    if len(line) > 6:
                        frames.append(Frame(line[6:]))
                    continue
                block = [line, after]
            elif not line:
                continue
            elif line[:1] == b":":
                # A comment, usually alone: servers send them as keep-alive.
                after = next(rows)
                if not after:
                    continue
                block = [line, after]
            else:
                name = names.get(line)
                if name is None:
                    name = self._name(line)
                data = next(rows)
                if name is not None and data[:6] == b"data: ":
                    after = next(rows)
                    if not after:
                        if len(data) > 6:
                            frames.append(Frame(data[6:], name))
                        continue
                    block = [line, data, after]
                else:
                    block = [line, data]
            if block[-1]:
                # Up to the blank line that ends this block.
                block += iter(rows.__next__, b"")
            else:
                block.pop()
            frames += self._block(block)
        return frames

    def close(self) -> list[Frame]:
        """The frame of an unterminated end, if any."""
        if self._json is not None:
            if self._json.open:
                raise IncompleteStream("the body ended inside a JSON value")
            return []
        frames = self._block(b"".join(self._rest).split(b"\n"))
        self._rest.clear()
        if frames:
            frames[-1] = Frame(frames[-1].data, frames[-1].event, cut=True)
        return frames

    def _ready(self, chunk: bytes) -> bytes:
        if not self._started:
            chunk = self._start(chunk)
        if self._skip_newline and chunk:
            self._skip_newline = False
            chunk = chunk.removeprefix(b"\n")
        self._unready = not self._started or self._skip_newline or self._json is not None
        return chunk

    def _start(self, chunk: bytes) -> bytes:
        # A byte order mark and blank lines may precede the first field; both may be cut.
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
        # The first half of the blank line that ends a frame may have arrived.
        if self._size > self._max_frame + 1:
            self._refuse()

    def _check_sizes(self, frames: list[bytes]) -> None:
        if any(len(frame) > self._max_frame for frame in frames):
            self._refuse()

    def _refuse(self) -> NoReturn:
        raise MalformedStream(f"a frame is longer than {self._max_frame} bytes")

    def _with_newlines(self, chunk: bytes) -> bytes:
        self._unready = self._skip_newline = chunk[-1] == 0x0D
        if chunk.count(b"\r\n") == chunk.count(b"\r"):
            return chunk.replace(b"\r", b"")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _block(self, block: list[bytes]) -> list[Frame]:
        """The frame of any lines; several if blank lines between them are missing."""
        data: list[bytes] = []
        names: list[str] = []
        name = ""
        for at, line in enumerate(block):
            field, _, value = line.lstrip(b" ").partition(b":")
            if value[:1] == b" ":
                value = value[1:]
            if field == b"data":
                data.append(value)
                names.append(name)
            elif field == b"event":
                name = value.decode("utf-8", "replace")
            elif field[:1] in (b"{", b"[") and not data:
                # An error object written into the stream without its field name.
                return [Frame(b"\n".join(block[at:]), name)]
        if len(data) > 1 and all(map(_is_frame, data)):
            # No JSON value continues after `}` and a line end: each line is a frame.
            return [*map(Frame, data, names)]
        # Empty data is a keep-alive.
        text = b"\n".join(data)
        return [Frame(text, name)] if text else []

    def _name(self, line: bytes) -> str | None:
        if line[:7] != b"event: ":
            return None
        name = line[7:].decode("utf-8", "replace")
        if len(self._names) < 256:
            self._names[line] = name
        return name


def _is_frame(line: bytes) -> bool:
    return (line[:1] == b"{" and line.rstrip()[-1:] == b"}") or line[:6] == b"[DONE]"


# Some client SDKs split lines at these too; JSON allows to escape them.
_ODD_LINE_ENDS = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
    ("\u0085".encode(), b"\\u0085"),
)


def _has_odd_ends(data: bytes) -> bool:
    return any(raw in data for raw, _ in _ODD_LINE_ENDS)


class SseEncoder:
    """Encodes the frames of one answer as bytes that every client reads the same way."""

    def __init__(self) -> None:
        self._starts = {"": b"data: "}
        """What precedes the data, by the name of the event."""

    def encode_all(self, frames: Sequence[Frame]) -> bytes:
        """Several frames; most have nothing to escape, which is looked for in all at once."""
        data = b"".join([frame.data for frame in frames])
        if b"\n" in data or b"\r" in data or (not data.isascii() and _has_odd_ends(data)):
            return b"".join(map(self.encode, frames))
        starts, pieces = self._starts, list[bytes]()
        for frame in frames:
            start = starts.get(frame.event)
            pieces += (start or self._start(frame.event), frame.data, b"\n\n")
        return b"".join(pieces)

    def _start(self, name: str) -> bytes:
        start = self._starts[name] = b"event: %b\ndata: " % name.encode()
        return start

    def encode(self, frame: Frame) -> bytes:
        """The frame with its blank line."""
        data = frame.data
        if not data.isascii():
            for raw, escaped in _ODD_LINE_ENDS:
                data = data.replace(raw, escaped)
        if b"\n" in data or b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
        return (self._starts.get(frame.event) or self._start(frame.event)) + data + b"\n\n"
