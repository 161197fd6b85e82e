"""JSON-RPC 2.0: messages, and a lenient reader of newline-delimited ones."""

import json
from typing import Any, TypeAlias, cast

import msgspec

from toolwire.request import JsonObject
from toolwire.wire.json_access import encode
from toolwire.wire.surrogates import without_halves

LONGEST_LINE = 64 * 1024 * 1024

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


class BrokenLine(Exception):
    """A line that ends the connection: too long, or JSON spread over several lines."""


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


def _message(value: Any) -> RpcMessage | None:
    if not isinstance(value, dict):
        return None
    body = cast(JsonObject, value)
    method, number = body.get("method"), body.get("id")
    known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    if isinstance(method, str):
        params = body.get("params")
        given = cast(JsonObject, params) if isinstance(params, dict) else {}
        return RpcNotification(method, given) if known is None else RpcRequest(known, method, given)
    if body.get("error") is not None:
        return _failure(known, body["error"])
    if known is None or "result" not in body:
        return None
    return RpcResult(known, body["result"])


def _failure(number: Id | None, error: Any) -> RpcFailure:
    if not isinstance(error, dict):
        return RpcFailure(number, INTERNAL_ERROR, str(error))
    body = cast(JsonObject, error)
    code, message = body.get("code"), body.get("message")
    return RpcFailure(
        number,
        int(code) if isinstance(code, int | float) else INTERNAL_ERROR,
        message if isinstance(message, str) else "",
        body.get("data"),
    )


def _lenient(body: bytes) -> Any:
    """The JSON value, NaN, broken UTF-8 and half surrogate pairs accepted; None without one."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        value = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return without_halves(value)


def _no_number(word: str) -> None:
    """Null for NaN and the infinities, which JSON does not have."""


class LineReader:
    """Cuts standard output of a server into messages; what is not a message is skipped."""

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._longest = longest
        self._open = b""
        self.skipped: list[str] = []
        """Lines that were no message, cut to 200 characters each; the last twenty."""

    def feed(self, data: bytes) -> list[RpcMessage]:
        """The messages that end in this data; linear in it."""
        found: list[RpcMessage] = []
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._pieces.append(line)
            found += self._line(b"".join(self._pieces))
            self._pieces, self._size = [], 0
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > self._longest:
            raise BrokenLine(f"a line of more than {self._longest // (1024 * 1024)} MB")
        return found

    def close(self) -> list[RpcMessage]:
        """The message of a last line without an end."""
        line, self._pieces = b"".join(self._pieces), []
        return self._line(line)

    def _line(self, line: bytes) -> list[RpcMessage]:
        line = line.removesuffix(b"\r")
        if not line.strip():
            return []
        found = read(line)
        if found:
            self._open = b""
            return found
        self._spread(line)
        self.skipped = [*self.skipped[-19:], line[:200].decode("utf-8", "replace")]
        return []

    def _spread(self, line: bytes) -> None:
        """Raises if this line and those before it are one message over several lines."""
        if line.strip() in (b"{", b"["):
            self._open = line
        elif self._open:
            self._open += b"\n" + line
            if len(self._open) > self._longest:
                self._open = b""
            elif line.rstrip() in (b"}", b"]") and read(self._open):
                raise BrokenLine("JSON spread over several lines; a message must be on one line")
