"""JSON-RPC 2.0: messages, and a lenient reader of newline-delimited ones."""

import json
import math
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import msgspec

from toolwire.errors import ToolwireError
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode
from toolwire.wire.surrogates import without_halves

LONGEST_LINE = 64 * 1024 * 1024
_SHORTEST = len('{"method":"x"}')
_LONGEST_SPREAD = 1024 * 1024
"""Bytes of a message over several lines within which it is recognised as one."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id: TypeAlias = str | int


class RpcRequest(msgspec.Struct, frozen=True):
    """A request of either side."""

    id: Id
    method: str
    params: JsonObject = {}


class RpcNotification(msgspec.Struct, frozen=True):
    """A message that is not answered."""

    method: str
    params: JsonObject = {}


class RpcResult(msgspec.Struct, frozen=True):
    """The answer to a request."""

    id: Id
    result: Any = None


class RpcFailure(msgspec.Struct, frozen=True):
    """The error that answers a request; without an id if the request could not be read."""

    id: Id | None
    code: int
    message: str
    data: Any = None


RpcMessage: TypeAlias = RpcRequest | RpcNotification | RpcResult | RpcFailure


class BrokenLine(ToolwireError):
    """A line that ends the connection: too long, too deep, or JSON spread over several lines."""

    kind = "mcp_line"


def write(message: RpcMessage) -> bytes:
    """The message as compact JSON without a line end."""
    body: JsonObject = {"jsonrpc": "2.0"}
    match message:
        case RpcRequest():
            body |= {"id": message.id, "method": message.method, "params": message.params}
        case RpcNotification():
            body["method"] = message.method
            if message.params:
                body["params"] = message.params
        case RpcResult():
            body |= {"id": message.id, "result": message.result}
        case RpcFailure():
            error: JsonObject = {"code": message.code, "message": message.message}
            if message.data is not None:
                error["data"] = message.data
            body |= {"id": message.id, "error": error}
    return encode(body)


def read(body: bytes) -> list[RpcMessage]:
    """The messages in a body or a line, a batch included; empty if it contains none."""
    value = _lenient(body)
    if isinstance(value, list):
        return [read for each in cast(list[Any], value) if (read := _message(each)) is not None]
    found = _message(value)
    return [] if found is None else [found]


def read_body(body: bytes) -> list[RpcMessage]:
    """The messages in an HTTP body or an event, where other lines may stand beside them."""
    found = read(body)
    if found or b"\n" not in body.strip():
        return found
    reader = LineReader()
    return [*reader.feed(body), *reader.close()]


def _message(value: Any) -> RpcMessage | None:
    if not isinstance(value, dict):
        return None
    body = cast(JsonObject, value)
    method, known = body.get("method"), read_id(body.get("id"))
    if isinstance(method, str):
        params = body.get("params")
        given = cast(JsonObject, params) if isinstance(params, dict) else {}
        return RpcNotification(method, given) if known is None else RpcRequest(known, method, given)
    if body.get("error") is not None:
        return _failure(known, body["error"])
    if known is None or "result" not in body:
        return None
    return RpcResult(known, body["result"])


def read_id(value: Any) -> Id | None:
    """The id of a message; a whole number may be written as a fraction."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _failure(number: Id | None, error: Any) -> RpcFailure:
    if not isinstance(error, dict):
        return RpcFailure(number, INTERNAL_ERROR, str(error))
    body = cast(JsonObject, error)
    code, message = body.get("code"), body.get("message")
    return RpcFailure(
        number,
        int(code) if isinstance(code, int | float) and math.isfinite(code) else INTERNAL_ERROR,
        message if isinstance(message, str) else "",
        body.get("data"),
    )


def _lenient(body: bytes) -> Any:
    """The JSON value, NaN, broken UTF-8 and half surrogate pairs accepted; None without one."""
    try:
        return msgspec.json.decode(body)
    except RecursionError:
        raise BrokenLine("JSON that is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeError):
        pass
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        return without_halves(json.loads(text, parse_constant=_no_number))
    except ValueError:
        return None
    except RecursionError:
        raise BrokenLine("JSON that is nested too deeply") from None


def _no_number(word: str) -> None:
    """Null for NaN and the infinities, which JSON does not have."""


class LineReader:
    """Cuts standard output of a server into messages; what is not a message is skipped."""

    def __init__(
        self, longest: int = LONGEST_LINE, skip: Callable[[str], None] = lambda line: None
    ) -> None:
        self._skip = skip
        self._pieces: list[bytes] = []
        self._size = 0
        self._longest = longest
        self._open: list[bytes] = []
        """Lines since one that may begin a message over several lines."""
        self._open_size = 0
        self._skipped: deque[bytes] = deque(maxlen=20)

    @property
    def skipped(self) -> list[str]:
        """Lines that were not a message, cut to 200 bytes each; the last twenty."""
        return [line.decode("utf-8", "replace") for line in self._skipped]

    def feed(self, data: bytes) -> Iterator[RpcMessage]:
        """The messages that end in this data; linear in it."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._pieces.append(line)
            whole, self._pieces, self._size = b"".join(self._pieces), [], 0
            yield from self._line(whole)
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > self._longest:
            self._pieces, self._size = [], 0
            raise BrokenLine(f"a line of more than {self._longest // (1024 * 1024)} MB")

    def close(self) -> list[RpcMessage]:
        """The message of a last line without an end."""
        line, self._pieces = b"".join(self._pieces), []
        return self._line(line)

    def _line(self, line: bytes) -> list[RpcMessage]:
        bare = line.strip().removeprefix(BOM_UTF8)
        if not bare:
            return []
        # A flood of other lines is not worth two attempts to read each.
        if len(bare) >= _SHORTEST and bare[:1] in (b"{", b"["):
            found = read(bare)
            if found:
                self._open, self._open_size = [], 0
                return found
        self._spread(line)
        self._skipped.append(line[:200])
        self._skip(line[:200].decode("utf-8", "replace"))
        return []

    def _spread(self, line: bytes) -> None:
        """Raises if this line and those before it are one message over several lines."""
        if line[:1] in (b"{", b"["):
            self._open, self._open_size = [], 0
        elif not self._open:
            return
        self._open.append(line)
        self._open_size += len(line)
        if self._open_size > _LONGEST_SPREAD:
            self._open = []
        elif line[:1] in (b"}", b"]"):
            # The first unindented bracket ends it, so that each line is read at most twice.
            whole, self._open = b"\n".join(self._open), []
            if read(whole):
                raise BrokenLine("JSON spread over several lines; a message must be on one line")
