"""HTTP/1.1 heads: requests without smuggling, strictly parsed answers."""

import re
from functools import lru_cache

import msgspec

from toolwire import __version__
from toolwire.client.http.exchange import Address, Outgoing
from toolwire.client.redact import hide_in_url
from toolwire.errors import BadInput

MAX_HEAD = 65536
MAX_BEFORE_BODY = 4 * MAX_HEAD
"""Bytes of all heads of one answer, those of 100 and 103 included."""

_MOST_KNOWN = 4096
"""Bytes of a head that is kept for the next equal one."""

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - a grammar's word, not a password
_is_token = re.compile(_TOKEN).fullmatch
_breaks_line = re.compile(r"[\r\n\0]").search
_is_half = re.compile(r"[\ud800-\udfff]").search
_status = re.compile(r"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n\0]*)?\r?\n").match
_fields = re.compile(rf"(?:{_TOKEN}:[^\r\n\0]*\r?\n)*").match
_each_field = re.compile(rf"({_TOKEN}):([^\r\n\0]*)\r?\n").findall
_end = re.compile(rb"\n\r?\n").search
_DEFAULTS = {
    "accept": "*/*",
    # Compressed streams are delayed: the compressor buffers its input.
    "accept-encoding": "identity",
    "user-agent": f"toolwire/{__version__}",
}
_FRAMING = frozenset({"content-length", "transfer-encoding"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Unreadable(Exception):
    """The server sent something that is not HTTP."""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The status and the headers of an answer."""

    status: int
    headers: dict[str, str]
    """Names in lower case; of several with one name the last."""
    lengths: tuple[str, ...] = ()
    """Every `content-length`."""
    codings: tuple[str, ...] = ()
    """Every `transfer-encoding`, in order."""
    keeps: bool = False
    """Whether the connection can be reused after the body."""
    idle: float | None = None
    """Seconds that the server keeps an idle connection open, if it says so."""


def write_request(request: Outgoing, address: Address) -> bytes:
    """The head of the request; raises BadInput if it cannot be sent as it is."""
    body, method = request.body, request.method
    start = _start(method, request.url, address, request.headers, typed=not body)
    if body or method in _WITH_BODY:
        return b"%bcontent-length: %d\r\n\r\n" % (start, len(body))
    return start + b"\r\n"


@lru_cache(maxsize=64)
def _start(
    method: str, url: str, address: Address, headers: tuple[tuple[str, str], ...], *, typed: bool
) -> bytes:
    """The head without the length of the body, the only line that differs between requests.

    `typed`: the body needs no type.
    """
    if not _is_token(method):
        raise BadInput(f"{method!r} is not an HTTP method")
    given = [(name.lower(), name, value) for name, value in headers]
    known = {lower for lower, _, _ in given}
    lines = [f"{method} {address.target} HTTP/1.1"]
    if "host" not in known:
        lines.append(f"host: {address.authority}")
    lines += [f"{name}: {value}" for name, value in _DEFAULTS.items() if name not in known]
    if address.login:
        if "authorization" in known:
            raise BadInput(
                f"the address {hide_in_url(url)} contains a login, and there is a key as "
                "well; remove one of them"
            )
        lines.append(f"authorization: {address.login}")
    for lower, name, value in given:
        _check(name, value)
        # The length of the body is set in one place only.
        if lower not in _FRAMING:
            lines.append(f"{name}: {value}")
    if not typed and "content-type" not in known:
        lines.append("content-type: application/octet-stream")
    lines.append("")
    return "\r\n".join(lines).encode()


def _check(name: str, value: str) -> None:
    if _breaks_line(name) or _breaks_line(value):
        raise BadInput(f"the header {name!r} contains a line break; a key was copied with one")
    if not _is_token(name):
        raise BadInput(f"{name!r} is not a valid header name")
    if _is_half(value):
        raise BadInput(f"the header {name!r} contains a lone surrogate")


def end_of_head(received: bytes | bytearray, looked_at: int) -> int:
    """Offset of the body; 0 while the head is incomplete."""
    # The blank line may start in earlier bytes.
    found = _end(received, max(0, looked_at - 2))
    return found.end() if found is not None else 0


def begins_like_http(received: bytes | bytearray) -> bool:
    """Whether the first bytes can be those of an HTTP answer."""
    return received[:7] == b"HTTP/1."[: len(received)]


def read_head(received: bytes) -> Head:
    """Parse the head of an answer, including its blank line."""
    # Servers without ids and dates in their heads send the same ones again and again.
    return _read_again(received) if len(received) <= _MOST_KNOWN else _read(received)


def _read(received: bytes) -> Head:
    text = received.decode("utf-8", "surrogateescape")
    line = _status(text)
    if line is None:
        raise Unreadable(f"it began with {received[:40]!r}")
    headers: dict[str, str] = {}
    lengths: list[str] = []
    codings: list[str] = []
    connection: list[str] = []
    at = line.end()
    read = _fields(text, at)
    end = 0 if read is None else read.end()
    if text[end:] not in ("\r\n", "\n"):
        # A folded header line is refused here too: parsers differ on its meaning.
        raise Unreadable(f"a header line cannot be read: {text[end : end + 40]!r}")
    for name, value in _each_field(text, at):
        name, value = name.lower(), value.strip(" \t")
        headers[name] = value
        if name == "content-length":
            lengths += _members(value)
        elif name == "transfer-encoding":
            codings += _members(value)
        elif name == "connection":
            connection += _members(value)
    version, status = line[1], int(line[2])
    keeps = "close" not in connection if version == "1" else "keep-alive" in connection
    return Head(
        status=status,
        headers=headers,
        lengths=tuple(lengths),
        codings=tuple(codings),
        keeps=keeps,
        idle=_idle(headers["keep-alive"]) if "keep-alive" in headers else None,
    )


_read_again = lru_cache(maxsize=64)(_read)


def _idle(value: str) -> float | None:
    for member in value.split(","):
        name, _, seconds = member.strip().partition("=")
        if name == "timeout" and seconds.isdecimal():
            return float(seconds[:9])
    return None


def _members(value: str) -> list[str]:
    return [member.strip(" \t").lower() for member in value.split(",")]
