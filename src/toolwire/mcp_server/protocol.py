"""Names, versions and error codes of the protocol, and the checks of a stateless request."""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from toolwire.mcp import headers as marked
from toolwire.mcp.client import LEGACY, MODERN, VERSION_REFUSED
from toolwire.mcp.lists import members
from toolwire.mcp.peer import RpcError
from toolwire.request import JsonObject
from toolwire.wire.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, PARSE_ERROR, RpcRequest

HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
META = "io.modelcontextprotocol/"
VERSION = f"{META}protocolVersion"
CAPABILITIES = f"{META}clientCapabilities"
CLIENT = f"{META}clientInfo"
SERVER = f"{META}serverInfo"
LOG_LEVEL = f"{META}logLevel"
SUBSCRIPTION = f"{META}subscriptionId"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
SUPPORTED = (*MODERN, *reversed(LEGACY))
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUS = {
    METHOD_NOT_FOUND: 404,
    PARSE_ERROR: 400,
    -32600: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    VERSION_REFUSED: 400,
}
_wrapped = re.compile(r"=\?base64\?(.*)\?=").fullmatch
_decimal = re.compile(r"(-?[0-9]{1,400})(?:\.(0+))?").fullmatch


def status_of(code: int) -> int:
    """The HTTP status that goes with an error of a stateless request."""
    return _STATUS.get(code, 200)


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The client of a request."""

    version: str
    name: str = ""
    capabilities: JsonObject = {}
    level: str = ""
    """The least severe log message it takes; empty for none."""

    @property
    def modern(self) -> bool:
        """Whether it speaks without sessions."""
        return self.version in MODERN

    def has(self, capability: str) -> bool:
        """Whether it declares a capability."""
        return isinstance(self.capabilities.get(capability), dict)


def is_modern(request: RpcRequest) -> bool:
    """Whether a request carries its own version, or can only be meant so."""
    named = VERSION in members(request.params.get("_meta"))
    return named or request.method == "server/discover"


def modern_caller(request: RpcRequest, fields: Mapping[str, str] | None = None) -> Caller:
    """The client of a stateless request; RpcError names the first fault.

    `fields` are the HTTP headers, which must repeat what the body contains; None on stdio.
    """
    meta = request.params.get("_meta")
    known = members(meta)
    missing = [key for key in (VERSION, CAPABILITIES) if key not in known]
    if not isinstance(meta, dict) or missing:
        raise RpcError(INVALID_PARAMS, f"params._meta lacks {', '.join(missing)}")
    version: Any = known[VERSION]
    if fields is not None:
        _check_fields(request, version, fields)
    if not isinstance(version, str):
        raise RpcError(INVALID_PARAMS, f"{VERSION} in params._meta is not a string")
    if version not in MODERN:
        raise unsupported(version)
    level = known.get(LOG_LEVEL)
    return Caller(
        version=version,
        name=_name(known.get(CLIENT)),
        capabilities=members(known[CAPABILITIES]),
        level=level if level in LEVELS else "",
    )


def unsupported(version: str) -> RpcError:
    """The error for a version that is not spoken here."""
    data = {"supported": list(SUPPORTED), "requested": version}
    return RpcError(VERSION_REFUSED, "Unsupported protocol version", data)


def legacy_caller(params: JsonObject) -> Caller:
    """The client of a handshake: its version, or the newest one that we both may speak."""
    asked = params.get("protocolVersion")
    return Caller(
        version=asked if isinstance(asked, str) and asked in LEGACY else LEGACY[-1],
        name=_name(params.get("clientInfo")),
        capabilities=members(params.get("capabilities")),
        level="info",
    )


def _name(info: Any) -> str:
    known = members(info)
    parts = (known.get("title") or known.get("name"), known.get("version"))
    return " ".join(each for each in parts if isinstance(each, str) and each)


def _check_fields(request: RpcRequest, version: Any, fields: Mapping[str, str]) -> None:
    given = fields.get("mcp-protocol-version")
    if given is None or given != version:
        raise _mismatch("MCP-Protocol-Version", "the version in params._meta")
    if fields.get("mcp-method") != request.method:
        raise _mismatch("Mcp-Method", "the method")
    name = request.params.get(_NAMED.get(request.method, ""))
    if name is not None and unwrapped(fields.get("mcp-name")) != name:
        raise _mismatch("Mcp-Name", f"params.{_NAMED[request.method]}")


def _mismatch(header: str, what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"the header {header} is missing or differs from {what}")


def unwrapped(value: str | None) -> str | None:
    """The value of a header, taken out of its Base64 form; None if that cannot be read."""
    found = _wrapped(value) if value is not None else None
    if found is None:
        return value
    try:
        data = b64decode(found[1], validate=True)
        # One value has one form: bits that no encoder sets are refused.
        return data.decode() if b64encode(data).decode() == found[1] else None
    except ValueError:
        return None


def check_marked(schema: JsonObject, arguments: Any, fields: Mapping[str, str]) -> None:
    """Raises if a header of a marked argument differs from the argument, or only one is there."""
    if marked.fault(schema):
        return
    expected = marked.of_arguments(schema, members(arguments))
    for name, kind in marked.marks(schema).items():
        key = f"{marked.PARAM}{name}"
        wanted, given = unwrapped(expected.get(key)), unwrapped(fields.get(key))
        if (key in expected) != (key in fields) or not _same(kind, wanted, given):
            raise _mismatch(f"Mcp-Param-{name}", "its argument")


def _same(kind: str, wanted: str | None, given: str | None) -> bool:
    if kind != "integer" or wanted is None or given is None:
        return wanted == given
    one, other = _decimal(wanted), _decimal(given)
    return wanted == given or (one is not None and other is not None and one[1] == other[1])


def texts(value: Any) -> list[str]:
    """The strings in a list."""
    listed = cast(list[Any], value) if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, str)]
