"""HTTP/1.1 bodies: framing and decompression."""

import re
from collections.abc import Generator

from toolwire.client.http.head import Head, Unreadable

_EXTENSIONS = rb"[ \t]*(?:;[^\r\n\0]*)?"
_next_chunk = re.compile(rb"\r?\n([0-9a-fA-F]{1,16})" + _EXTENSIONS + rb"\r?\n").match
_may_become_chunk = re.compile(
    rb"\r?(?:\n(?:[0-9a-fA-F]{1,16}" + _EXTENSIONS + rb"\r?)?)?"
).fullmatch
_TRAILERS = rb"(?:[^\r\n\0:]+:[^\r\n\0]*\r?\n)*"
_trailers = re.compile(_TRAILERS + rb"\r?\n").match
_may_become_trailers = re.compile(_TRAILERS + rb"[^\r\n\0]*\r?").fullmatch
_BETWEEN = b"\r\n"
"""What separates a chunk's content from the next size."""
_MAX_LINES = 16384
"""Limit of a chunk's size line, and of the trailers."""
_MAX_PIECE = 262144
_LONGEST_KNOWN = 10
_MOST_KNOWN = 4096
_sizes: dict[bytes, int] = {}
"""Sizes of chunks by their line and the line end before it: most chunks have the size of others."""
_WITHOUT_BODY = frozenset({204, 304})


class Sized:
    """A body with a content length."""

    def __init__(self, length: int) -> None:
        self._left = length
        self.ended = not length
        self.surplus = False
        """More bytes arrived than belong to this body."""
        self.ends_with_connection = False

    def feed(self, data: bytes) -> bytes:
        """The bytes that belong to the body."""
        left = self._left - len(data)
        if left > 0:
            self._left = left
            return data
        self._left = 0
        self.ended = True
        if left:
            self.surplus = True
            return data[:left]
        return data


class UntilClose:
    """A body that ends with its connection."""

    def __init__(self) -> None:
        self.ended = False
        self.surplus = False
        self.ends_with_connection = True

    def feed(self, data: bytes) -> bytes:
        """All of it."""
        return data


class Chunked:
    """A body in chunked transfer encoding."""

    def __init__(self) -> None:
        self._left: int = 0
        """Missing bytes of the current chunk."""
        # As if a chunk had just ended: then every size is between two line ends.
        self._rest = _BETWEEN
        self._last = False
        self.ended = False
        self.surplus = False
        self.ends_with_connection = False

    def feed(self, data: bytes) -> bytes:
        """The content of the chunks in the data, complete or partial."""
        left: int = self._left
        if left > len(data):
            self._left = left - len(data)
            return data
        if self._rest == _BETWEEN:
            alone = _alone(data)
            if alone is not None:
                return alone
        if self._rest:
            data = self._rest + data
            self._rest = b""
        if self._last:
            self._finish(data)
            return b""
        pieces: list[bytes] = []
        at, size = 0, len(data)
        while True:
            if left:
                stop = at + left
                if stop > size:
                    pieces.append(data[at:])
                    self._left = stop - size
                    break
                pieces.append(data[at:stop])
                at, left = stop, 0
            # The line of a size that was read before needs no match.
            end = data.find(b"\r\n", at + 2, at + _LONGEST_KNOWN)
            known = _sizes.get(data[at:end]) if end > 0 else None
            if known is not None:
                left, at = known, end + 2
                continue
            found = _next_chunk(data, at)
            if found is None:
                self._left = 0
                self._rest = _unfinished(data[at:])
                break
            left, at = int(found[1], 16), found.end()
            if left and end > 0 and len(_sizes) < _MOST_KNOWN and found.end() == end + 2:
                _sizes[data[found.start() : end]] = left
            if not left:
                self._left = 0
                self._last = True
                self._finish(data[at:])
                break
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _finish(self, data: bytes) -> None:
        """Skips the trailers and the blank line after the last chunk."""
        found = _trailers(data)
        if found is not None:
            self.ended = True
            self.surplus = found.end() < len(data)
        elif len(data) > _MAX_LINES or not _may_become_trailers(data):
            raise Unreadable("what follows the last chunk cannot be read")
        else:
            self._rest = data


Body = Sized | UntilClose | Chunked


def body_of(head: Head, method: str) -> Body:
    """The framing of the body after this head."""
    if method == "HEAD" or head.status in _WITHOUT_BODY:
        return Sized(0)
    if head.codings:
        if head.codings != ("chunked",):
            raise Unreadable(f"the transfer encoding {', '.join(head.codings)!r} is unknown")
        return Chunked()
    if not head.lengths:
        return UntilClose()
    length = head.lengths[0]
    if len(set(head.lengths)) > 1 or not (length.isascii() and length.isdigit()):
        raise Unreadable(f"the content length {', '.join(head.lengths)[:40]!r} makes no sense")
    # No body is that long, and int raises its own error for thousands of digits.
    if len(length) > 18:
        raise Unreadable("the content length makes no sense")
    return Sized(int(length))


def _alone(data: bytes) -> bytes | None:
    """The content if the data is exactly one chunk, as in most streams."""
    at = data.find(b"\r\n")
    size = len(data) - at - 4
    # Content of the right length after a size in canonical form.
    if size > 0 and data[-2:] == b"\r\n" and data[:at] == b"%x" % size:
        return data[at + 2 : -2]
    return None


def _unfinished(rest: bytes) -> bytes:
    if rest == _BETWEEN or (len(rest) <= _MAX_LINES and _may_become_chunk(rest)):
        return rest
    raise Unreadable(f"the size of a chunk cannot be read: {rest[:20]!r}")


class Inflater:
    """Decompresses an answer that a server compressed without request."""

    def __init__(self, coding: str) -> None:
        import zlib  # noqa: PLC0415 - hardly any server compresses streams

        if coding not in ("gzip", "x-gzip", "deflate"):
            raise Unreadable(f"it compressed the answer as {coding[:40]!r} without request")
        self._coding = coding
        self._error = zlib.error
        self._new = zlib.decompressobj
        # 15 is the largest window; 32 more detects a gzip or zlib header.
        self._inner = zlib.decompressobj(15 + 32)
        self._first: bytes | None = b""
        """The first two bytes, which show whether there is a zlib header."""

    def feed(self, data: bytes) -> Generator[bytes]:
        """The content, in pieces of bounded size."""
        if self._first is not None:
            data = self._first + data
            if len(data) < 2:
                self._first = data
                return
            self._first = None
            if self._coding == "deflate" and not _has_zlib_head(data):
                # Some servers omit the zlib header of deflate.
                self._inner = self._new(-15)
        piece = b""
        while data or len(piece) == _MAX_PIECE:
            if self._inner.eof:
                # Padding after the end is ignored; another gzip member may follow.
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._inner = self._new(15 + 32)
            try:
                piece = self._inner.decompress(data, _MAX_PIECE)
            except self._error as error:
                raise Unreadable("its compressed answer cannot be read") from error
            data = self._inner.unused_data if self._inner.eof else self._inner.unconsumed_tail
            if piece:
                yield piece

    def is_whole(self) -> bool:
        """Whether the compressed content is complete; an empty one is."""
        return self._inner.eof or self._first == b""


def _has_zlib_head(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
