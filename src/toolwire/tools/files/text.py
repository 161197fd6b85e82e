"""Text files read by line and written whole: huge ones in pieces, changes by others noticed."""

import codecs
import hashlib
import os
import threading
import time
from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from toolwire.platform import pread
from toolwire.tools.files.encodings import UTF8, Encoding, detect, printable
from toolwire.tools.files.paths import open_file
from toolwire.tools.spec import EditorFiles, ToolContext, ToolFailed, Workspace

STEP = 1 << 20
"""Bytes between two notes; smaller files are not worth one."""
_KEPT = 32
# A change within one tick of the system's clock leaves no trace in a file's times.
_TICK = 50_000_000

_Version = tuple[int, int, int]


class LineIndex(msgspec.Struct, frozen=True, kw_only=True):
    """What one read of a whole file learned."""

    ends: int
    """Of lines, in the whole file."""
    before: "array[int]"
    """Number of them before each step."""
    digest: str
    """Of the contents; empty if it was not taken."""

    def position(self, line: int) -> tuple[int, int]:
        """A byte before the start of a line, and how many lines end before that byte."""
        step = max(bisect_left(self.before, line) - 1, 0)
        return step * STEP, self.before[step]


class LineIndexes:
    """The files read last, each known as long as it does not change."""

    def __init__(self, tick: int = _TICK) -> None:
        self._tick = tick
        self._known: OrderedDict[tuple[int, int], tuple[_Version, LineIndex]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, found: os.stat_result) -> LineIndex | None:
        """What is known of a file as it is now."""
        with self._lock:
            version, index = self._known.get((found.st_dev, found.st_ino), (None, None))
            return index if version == _version(found) else None

    def keep(self, found: os.stat_result, begun: int, index: LineIndex) -> None:
        """Store the index of a file as it was when reading began, with the time in nanoseconds."""
        if found.st_size <= STEP or begun - max(found.st_mtime_ns, found.st_ctime_ns) < self._tick:
            return
        with self._lock:
            self._known[found.st_dev, found.st_ino] = (_version(found), index)
            self._known.move_to_end((found.st_dev, found.st_ino))
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)

    def forget(self) -> None:
        """Clear the index."""
        with self._lock:
            self._known.clear()


INDEXES = LineIndexes()
"""Of this process: what a file holds is the same for every session."""


def now() -> int:
    """The current time on the clock of file times."""
    return time.time_ns()


def _version(found: os.stat_result) -> _Version:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


MOST_LINES = 2000
LONGEST_LINE = 2000
"""In UTF-16 units, as the original counts."""
CUT = "... [truncated]"
LARGEST = 20 * 1024 * 1024
"""Bytes of a file that is read without offset and limit."""

_CHUNK = 1 << 18
_HEAD = 1 << 16
# More bytes than any line that is shown whole can have.
_LINE_BYTES = 4 * LONGEST_LINE + 4
_SURELY_SHORT = LONGEST_LINE // 2


class Lines(msgspec.Struct, frozen=True, kw_only=True):
    """A range of a text file."""

    text: str
    first: int
    """Counting from 0; the number of lines if there are fewer."""
    end: int
    total: int
    cut: bool
    """Whether a line was too long to be shown whole."""

    @property
    def partial(self) -> bool:
        """Whether the file has more than is shown."""
        return self.cut or self.first > 0 or self.end < self.total


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A text file read whole, to be written again byte for byte where it does not change."""

    text: str
    encoding: Encoding
    stamp: str
    digest: str


def stamp_of(found: os.stat_result) -> str:
    """What changes whenever the file does, cheaply."""
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}"


def digest_of(data: bytes) -> str:
    """Stamp that distinguishes two contents."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def remember(context: ToolContext, path: Path, stamp: str, digest: str) -> None:
    """Record that the model has seen the file as it is now."""
    context.seen[str(path)] = f"{stamp} {digest}"


def refuse_if_changed(context: ToolContext, path: Path, stamp: str, digest: str) -> None:
    """ToolFailed if the file is not as the model last saw it; one never seen is fine."""
    stamp_then, _, digest_then = context.seen.get(str(path), "").partition(" ")
    if not stamp_then or stamp_then == stamp or (digest_then and digest_then == digest):
        return
    raise ToolFailed(
        f"File has changed since it was last read: {path}. No edits made. "
        "Use read_file to see what it holds now, then try again.",
        type="file_changed",
    )


HELD = "|editor:"
"""In a stamp: what follows is the digest of the text that an editor holds."""


def read_document(
    path: Path, workspace: Workspace, *, largest: int = LARGEST, files: EditorFiles | None = None
) -> Document:
    """A whole text file for editing; OSError if it is not there, ToolFailed if it is too large.

    The text is the one of the editor, if it has the file.
    """
    try:
        document = _on_disk(path, workspace, largest)
    except FileNotFoundError:
        document = Document(text="", encoding=UTF8, stamp="", digest="")
        text = None if files is None else files.read(path)
        if text is None:
            raise
    else:
        text = None if files is None else files.read(path)
    if text is None:
        return document
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > largest:
        raise _too_large(path, len(data), largest)
    digest = digest_of(data)
    stamp = f"{document.stamp}{HELD}{digest}"
    return Document(text=text, encoding=document.encoding, stamp=stamp, digest=digest)


def _too_large(path: Path, size: int, largest: int) -> ToolFailed:
    return ToolFailed(
        f"File is too large to be edited: {path} ({size / (1 << 20):.1f} MB, at most "
        f"{largest / (1 << 20):g} MB). No edits made. Change it with a command instead.",
        type="file_too_large",
    )


def _on_disk(path: Path, workspace: Workspace, largest: int) -> Document:
    with open(open_file(path, workspace), "rb") as file:  # noqa: PTH123 - a descriptor
        found = os.fstat(file.fileno())
        stamp = stamp_of(found)
        # It may grow while it is read.
        data = file.read(largest + 1) if found.st_size <= largest else b""
    if max(len(data), found.st_size) > largest:
        raise _too_large(path, found.st_size, largest)
    encoding = detect(data)
    text = encoding.decode(data)
    if not _returns(encoding, text, data):
        encoding = Encoding("latin-1")
        text = encoding.decode(data)
    return Document(text=text, encoding=encoding, stamp=stamp, digest=digest_of(data))


def _returns(encoding: Encoding, text: str, data: bytes) -> bool:
    try:
        return encoding.encode(text) == data
    except UnicodeEncodeError:
        return False


def encoded(text: str, encoding: Encoding, path: Path) -> bytes:
    """The bytes to write; ToolFailed names a character that the file's encoding lacks."""
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        lacking = text[error.start : error.start + 1]
        raise ToolFailed(
            f"File is encoded in {encoding.name}, which has no {lacking!a}: {path}. "
            "No edits made. Use only characters of that encoding, or convert the file first.",
            type="encoding_error",
        ) from error


def read_lines(
    file: int,
    start: int,
    count: int,
    context: ToolContext,
    path: Path,
    indexes: LineIndexes = INDEXES,
) -> Lines:
    """Lines of an open text file, from `start`; only what is shown is held in memory."""
    begun, found = now(), os.fstat(file)
    head = pread(file, _HEAD, 0)
    encoding = detect(head, whole=len(head) == found.st_size)
    known = None if encoding.wide else indexes.get(found)
    if known is not None:
        offset, before = known.position(start)
        reader = _LineReader(start, count, encoding, offset, before)
        for chunk in _chunks(file, offset):
            reader.feed(chunk)
            if reader.done:
                break
    else:
        reader = _LineReader(start, count, encoding)
        known = _read_all(file, reader, digested=found.st_size <= LARGEST)
        if not encoding.wide and stamp_of(os.fstat(file)) == stamp_of(found):
            indexes.keep(found, begun, known)
    remember(context, path, stamp_of(found), known.digest)
    return reader.close(known.ends)


def held_lines(text: str, start: int, count: int, context: ToolContext, path: Path) -> Lines:
    """Lines of a text that an editor holds, from `start`."""
    data = text.encode("utf-8", "surrogateescape")
    reader = _LineReader(start, count, UTF8)
    reader.feed(data)
    digest = digest_of(data)
    remember(context, path, f"{HELD}{digest}", digest)
    return reader.close(reader.ends)


def _read_all(file: int, reader: "_LineReader", *, digested: bool) -> LineIndex:
    digest = hashlib.blake2b(digest_size=16)
    before = array("Q")
    position = 0
    for chunk in _chunks(file):
        if position % STEP == 0:
            before.append(reader.ends)
        position += len(chunk)
        reader.feed(chunk)
        if digested:
            digest.update(chunk)
    return LineIndex(
        ends=reader.ends,
        before=before or array("Q", [0]),
        digest=digest.hexdigest() if digested else "",
    )


def _chunks(file: int, position: int = 0) -> Iterator[bytes]:
    while chunk := pread(file, _CHUNK, position):
        # A read may return less than requested; each step of the index begins with a chunk.
        while len(chunk) < _CHUNK and (
            more := pread(file, _CHUNK - len(chunk), position + len(chunk))
        ):
            chunk += more
        position += len(chunk)
        yield chunk


class _LineReader:
    """Counts every line, collects the requested ones, and cuts long ones."""

    def __init__(
        self, start: int, count: int, encoding: Encoding, offset: int = 0, before: int = 0
    ) -> None:
        """From a byte that `before` line ends precede, and the requested lines follow."""
        self._start = start
        self._end = start + count
        self._encoding = encoding
        self._narrow = None
        self._mark = 0 if offset else len(encoding.bom)
        if encoding.wide:
            # Line ends are found in bytes, so wide text is read as UTF-8.
            self._narrow = codecs.getincrementaldecoder(encoding.name)("replace")
            self._encoding = UTF8
        self._line = before
        self._kept: list[bytes] = []
        self._open = bytearray()

    @property
    def ends(self) -> int:
        """Of lines, so far."""
        return self._line

    @property
    def done(self) -> bool:
        """Whether all requested lines were read."""
        return self._line >= self._end

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the file."""
        if self._mark:
            # The first chunk is never shorter than the mark, which was read from it.
            chunk, self._mark = chunk[self._mark :], 0
        if self._narrow is not None:
            chunk = self._narrow.decode(chunk).encode("utf-8", "replace")
        ends = chunk.count(b"\n")
        if self._line >= self._end or self._line + ends < self._start:
            self._line += ends
            return
        self._keep(chunk, ends)

    def _keep(self, chunk: bytes, ends: int) -> None:
        position = 0
        while self._line < self._start:
            position = chunk.index(b"\n", position) + 1
            self._line += 1
            ends -= 1
        left = self._end - self._line
        first, *rest = chunk[position:].split(b"\n", left)
        self._add(first)
        if rest:
            self._kept.append(bytes(self._open))
            self._open.clear()
            *whole, last = rest
            self._kept += [line[:_LINE_BYTES] for line in whole]
            self._add(last)
        self._line += ends

    def _add(self, piece: bytes) -> None:
        room = _LINE_BYTES - len(self._open)
        self._open += piece[:room] if room > 0 else b""

    def close(self, ends: int) -> Lines:
        """The requested lines of a file with this many line ends."""
        total = ends + 1
        if self._start <= self._line < self._end:
            self._kept.append(bytes(self._open))
        text, cut = self._text()
        return Lines(
            text=text,
            first=min(self._start, total),
            end=min(self._end, total),
            total=total,
            cut=cut,
        )

    def _text(self) -> tuple[str, bool]:
        """The requested lines, and whether one of them was cut."""
        if self._encoding.name == "utf-8" and max(map(len, self._kept), default=0) <= _SURELY_SHORT:
            data = b"\n".join(self._kept)
            return printable(data.decode("utf-8", "surrogateescape")), False
        lines = [printable(self._encoding.decode(line)) for line in self._kept]
        shown = [_shortened(line) for line in lines]
        return "\n".join(shown), shown != lines


def _shortened(line: str) -> str:
    if len(line) <= _SURELY_SHORT:
        return line
    units = line.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * LONGEST_LINE:
        return line
    # Half a character at the cut would not survive as JSON.
    return units[: 2 * LONGEST_LINE].decode("utf-16-le", "ignore") + CUT
