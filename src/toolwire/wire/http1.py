"""HTTP/1.1 as a server reads and writes it: strict, in one meaning only, without IO."""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache
from http import HTTPStatus

import msgspec

MAX_HEAD = 65536
_MOST_KNOWN = 4096
"""Bytes of a head that is kept for the next one of its connection."""
_MAX_FIELDS = 100
_MAX_TARGET = 8192
_MAX_LINE = 4096
"""Bytes of a chunk's size line, and of all trailers."""
_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_request_line = re.compile(rb"(" + _TOKEN + rb"{1,32}) ([\x21-\x7e]+) HTTP/1\.([01])\r\n").match
_FIELD = _TOKEN + rb"{1,256}+:[^\x00-\x08\x0a-\x1f\x7f]*+\r\n"
_field = re.compile(_FIELD).match
_fields = re.compile(rb"(?:" + _FIELD + rb")*+").match
_length_line = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE).search
_bare = re.compile(rb"(?<!\r)\n|\r(?!\n)(?=.)", re.DOTALL).search
_size = re.compile(rb"([0-9a-fA-F]{1,15})(?:;[^\x00-\x08\x0a-\x1f\x7f]*)?").fullmatch
_breaks_line = re.compile(r"[\r\n\0]").search
_host = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.~-]*)(?::[0-9]{0,5})?").fullmatch
_origin = re.compile(r"https?://([^/?#@]+)([/?].*)?").fullmatch
_CODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""The window bits with which zlib reads each content coding."""
_RAW_DEFLATE = -15
_MOST_MEMBERS = 8
"""Each member of a gzip body costs a copy of what follows it."""


class RefusedRequest(Exception):
    """A request that is answered with a status and closes its connection."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class RequestHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line and the fields of a request."""

    method: str
    target: str
    """Path and query, as they were sent."""
    host: str
    fields: tuple[tuple[str, str], ...]
    """In order, names in lower case."""
    length: int | None
    """Bytes of the body; None if it is chunked."""
    keeps: bool
    """Whether the connection may be used again."""
    minor: int
    waits: bool
    """Whether the client waits for `100 Continue` before it sends the body."""
    by_name: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """The fields once more; several of one name are joined by commas."""

    def __post_init__(self) -> None:
        """Fills `by_name`: a request's fields are looked up more often than there are fields."""
        by_name = self.by_name
        if by_name:
            return
        for name, value in self.fields:
            by_name[name] = f"{by_name[name]}, {value}" if name in by_name else value

    def field(self, name: str) -> str:
        """The value; several are joined by commas, none is empty."""
        return self.by_name.get(name, "")


def end_of_head(received: bytearray, looked_at: int) -> int:
    """Offset of the body; 0 while the head is incomplete, refused if it never can be complete."""
    end = received.find(b"\r\n\r\n", max(0, looked_at - 3))
    stop = end + 4 if end >= 0 else len(received)
    ends = received.count(b"\r\n", 0, stop)
    # Counting is faster than the search, which finds no CR that may still get its LF.
    if ends != received.count(b"\n", 0, stop) or ends != received.count(b"\r", 0, stop):
        _check_ends(received, looked_at, stop)
    if stop > MAX_HEAD:
        raise RefusedRequest(431, f"the head is longer than {MAX_HEAD} bytes")
    return stop if end >= 0 else 0


def _check_ends(received: bytearray, looked_at: int, stop: int) -> None:
    if _bare(received, max(0, looked_at - 1), stop):
        raise RefusedRequest(400, "a line of the head does not end in CR LF")


def read_head(received: bytes) -> RequestHead:
    """Parses a whole head, its blank line included."""
    line = _request_line(received)
    if line is None:
        raise RefusedRequest(400, "the request line cannot be read")
    read = _fields(received, line.end())
    if read is None or received[read.end() :] != b"\r\n":
        # Also a folded or spaced line.
        raise RefusedRequest(400, "a header line cannot be read")
    fields: list[tuple[str, str]] = []
    by_name: dict[str, str] = {}
    # Latin-1 keeps every byte, and no value contains a line end.
    for one in read[0].decode("latin-1").split("\r\n")[:-1]:
        name, _, value = one.partition(":")
        name, value = name.lower(), value.strip(" \t")
        fields.append((name, value))
        if name not in by_name:
            by_name[name] = value
        else:
            by_name[name] += f", {value}"
    if len(fields) > _MAX_FIELDS:
        raise RefusedRequest(431, f"the head has more than {_MAX_FIELDS} fields")
    if len(line[2]) > _MAX_TARGET:
        raise RefusedRequest(414, f"the target is longer than {_MAX_TARGET} bytes")
    minor = int(line[3])
    target, host = _addressed(line[2].decode("ascii"), by_name.get("host"), minor)
    connection = _members(by_name["connection"]) if "connection" in by_name else ()
    expected = _members(by_name["expect"]) if "expect" in by_name else ()
    if expected and any(each != "100-continue" for each in expected):
        raise RefusedRequest(417, "only the expectation 100-continue is known")
    return RequestHead(
        method=line[1].decode("ascii"),
        target=target,
        host=host,
        fields=tuple(fields),
        length=_length(by_name, minor),
        keeps="close" not in connection if minor else "keep-alive" in connection,
        minor=minor,
        waits=minor == 1 and bool(expected),
        by_name=by_name,
    )


class HeadReader:
    """Reads the heads of one connection.

    A client's next head mostly is the last one again, or differs in the length of the body alone.
    """

    def __init__(self) -> None:
        self._received = self._before = self._after = b""
        self._head: RequestHead | None = None

    def read(self, received: bytes) -> RequestHead:
        """Parses a whole head, its blank line included."""
        head = self._head
        if head is not None:
            if received == self._received:
                return head
            if self._before and received.startswith(self._before):
                end = received.find(b"\r", len(self._before))
                length = received[len(self._before) : end]
                if length.isdigit() and received[end:] == self._after:
                    return self._with_length(head, received, length.decode())
        head = read_head(received)
        if len(received) > _MOST_KNOWN:
            self._head = None
            return head
        line = _length_line(received)
        self._before = received[: line.start(1)] if line else b""
        self._after = received[line.end(1) :] if line else b""
        self._received, self._head = received, head
        return head

    def _with_length(self, head: RequestHead, received: bytes, length: str) -> RequestHead:
        by_name = {**head.by_name, "content-length": length}
        fields = [
            (name, length if name == "content-length" else value) for name, value in head.fields
        ]
        size = _length(by_name, head.minor)
        self._received = received
        self._head = msgspec.structs.replace(
            head, length=size, fields=tuple(fields), by_name=by_name
        )
        return self._head


def _addressed(target: str, given: str | None, minor: int) -> tuple[str, str]:
    """The target in origin form, and the host; a whole address names the host itself.

    Several `given` are joined by commas, which none contains.
    """
    if (given is None and minor) or (given is not None and "," in given):
        raise RefusedRequest(400, "the request needs exactly one Host")
    host = given or ""
    if not target.startswith("/") and target != "*":
        whole = _origin(target)
        if whole is None:
            raise RefusedRequest(400, "the target of the request cannot be read")
        if given is not None and host.lower() != whole[1].lower():
            # A proxy that goes by one of them would check another host than is used here.
            raise RefusedRequest(400, "the target and the Host name two servers")
        host, target = whole[1], whole[2] or "/"
        if target.startswith("?"):
            target = f"/{target}"
    if not _host(host):
        raise RefusedRequest(400, "the Host cannot be read")
    return target, host


def _length(by_name: dict[str, str], minor: int) -> int | None:
    """The bytes of the body; several lengths are joined by commas, which no number contains."""
    length, coding = by_name.get("content-length"), by_name.get("transfer-encoding")
    if coding is not None:
        # Two readers that disagree on the end of a body see different requests.
        if length is not None or not minor:
            raise RefusedRequest(400, "a chunked body must not have a length")
        if coding.lower() != "chunked":
            raise RefusedRequest(501, "only the transfer encoding chunked is known")
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit()) or len(length) > 15:
        raise RefusedRequest(400, "the Content-Length cannot be read")
    return int(length)


def _members(value: str) -> list[str]:
    return [each.strip(" \t").lower() for each in value.split(",")]


class ReceivedBody:
    """A body as it arrives, whole at its end."""

    def __init__(self, length: int | None, most: int) -> None:
        if length is not None and length > most:
            raise RefusedRequest(413, f"the body is longer than {most} bytes")
        self._content = bytearray()
        self._rest = bytearray()
        self._chunked = length is None
        self._left = length or 0
        self._between = False
        """Whether the line end after a chunk is due."""
        self._last = False
        self._trailers = 0
        self._most = most
        self.ended = length == 0

    @property
    def content(self) -> bytes:
        """What has arrived."""
        return bytes(self._content)

    @property
    def size(self) -> int:
        """Bytes that have arrived."""
        return len(self._content) + len(self._rest)

    def feed(self, data: bytes | bytearray) -> bytes:
        """Takes more of the connection; returns what follows the end of the body."""
        if not self._chunked:
            surplus = bytes(data[self._left :])
            self._content += data[: self._left] if surplus else data
            self._left = max(0, self._left - len(data))
            self.ended = not self._left
            return surplus
        self._rest += data
        while not self.ended and self._step():
            pass
        if not self.ended:
            return b""
        surplus, self._rest = bytes(self._rest), bytearray()
        return surplus

    def _step(self) -> bool:
        """Whether anything could be read."""
        if self._left:
            piece = self._rest[: self._left]
            del self._rest[: self._left]
            self._content += piece
            self._left -= len(piece)
            self._between = not self._left
            return bool(piece)
        end = self._rest.find(b"\r\n")
        line = bytes(self._rest[:end] if end >= 0 else self._rest)
        if len(line) > _MAX_LINE or _bare(line):
            raise RefusedRequest(400, "the framing of a chunk cannot be read")
        if end < 0:
            return False
        del self._rest[: end + 2]
        self._line(line)
        return True

    def _line(self, line: bytes) -> None:
        if self._between:
            if line:
                raise RefusedRequest(400, "a chunk is longer than its size")
            self._between = False
        elif self._last:
            self._trailers += len(line)
            if self._trailers > _MAX_LINE:
                raise RefusedRequest(431, "the trailers are too long")
            if line and not _field(line + b"\r\n"):
                raise RefusedRequest(400, "a trailer cannot be read")
            self.ended = not line
        else:
            size = _size(line)
            if size is None:
                raise RefusedRequest(400, "the size of a chunk cannot be read")
            self._left = int(size[1], 16)
            self._last = not self._left
            if len(self._content) + self._left > self._most:
                raise RefusedRequest(413, f"the body is longer than {self._most} bytes")


def inflated(head: RequestHead, body: bytes, most: int) -> bytes:
    """The body without its content coding."""
    coding = head.field("content-encoding")
    if not coding:
        return body
    codings = [each for each in _members(coding) if each]
    if not codings or codings == ["identity"]:
        return body
    bits = _CODINGS.get(codings[0]) if len(codings) == 1 else None
    if bits is None:
        raise RefusedRequest(415, "the content encoding is not known; send gzip, deflate or none")
    if bits == _CODINGS["deflate"] and not _has_zlib_head(body):
        # What several clients send as deflate.
        bits = _RAW_DEFLATE
    content = bytearray()
    for _ in range(_MOST_MEMBERS):
        reader = zlib.decompressobj(bits)
        try:
            # One byte more than allowed shows that there is more.
            content += reader.decompress(body, most + 1 - len(content))
        except zlib.error:
            raise RefusedRequest(400, "the compressed body cannot be read") from None
        if len(content) > most:
            raise RefusedRequest(413, f"the body is longer than {most} bytes")
        if not reader.eof or (reader.unused_data and bits != _CODINGS["gzip"]):
            raise RefusedRequest(400, "the compressed body is cut or has a tail")
        body = reader.unused_data
        if not body:
            return bytes(content)
    raise RefusedRequest(400, f"the compressed body has more than {_MOST_MEMBERS} members")


def _has_zlib_head(body: bytes) -> bool:
    return len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0


def write_head(status: int, fields: Sequence[tuple[str, str]]) -> bytes:
    """The head of an answer; a line break in a field is an error of ours."""
    head = "\n".join([_status_line(status), *map(": ".join, fields)])
    if "\r" in head or "\0" in head or head.count("\n") > len(fields):
        broken = next(name for name, value in fields if _breaks_line(f"{name}{value}"))
        raise ValueError(f"the header {broken!r} contains a line break")
    return head.replace("\n", "\r\n").encode("latin-1", "replace") + b"\r\n\r\n"


@lru_cache(maxsize=128)
def _status_line(status: int) -> str:
    try:
        return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP/1.1 {status} "


def write_chunk(data: bytes) -> bytes:
    """One chunk of an answer; nothing for no data, which would end it."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


LAST_CHUNK = b"0\r\n\r\n"
