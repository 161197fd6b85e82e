"""HTTP headers of the modern era: version, method and name of a request, and marked arguments."""

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, cast

from toolwire.request import JsonObject

PARAM = "mcp-param-"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_MARK = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_NESTED = (
    *("items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else"),
    *("unevaluatedItems", "unevaluatedProperties", "contentSchema"),
)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_TABLES = ("patternProperties", "dependentSchemas", "$defs", "definitions")
Path = tuple[str, ...]


def of_request(method: str, params: JsonObject, version: str) -> dict[str, str]:
    """The headers that repeat what the body says."""
    found = {"mcp-protocol-version": version, "mcp-method": method}
    name = params.get(_NAMED.get(method, ""))
    if isinstance(name, str):
        found["mcp-name"] = written(name)
    return found


def of_arguments(schema: JsonObject, arguments: JsonObject) -> dict[str, str]:
    """A header for each argument that the schema marks and the call has."""
    found: dict[str, str] = {}
    for path, node in _positions(schema):
        mark = node.get(_MARK)
        if path and isinstance(mark, str):
            value = _at(arguments, path)
            if isinstance(value, bool):
                value = "true" if value else "false"
            if isinstance(value, str | int | float):
                found[f"{PARAM}{mark.lower()}"] = written(str(value))
    return found


def marks(schema: JsonObject) -> dict[str, str]:
    """The type of each marked argument by the name of its header, in lower case."""
    return {
        node[_MARK].lower(): str(node.get("type", ""))
        for path, node in _positions(schema)
        if path and isinstance(node.get(_MARK), str)
    }


def fault(schema: JsonObject) -> str:
    """Why the marks of a schema are not valid; empty if they are."""
    seen: set[str] = set()
    for path, node in _positions(schema):
        if _MARK not in node:
            continue
        mark, kind = node[_MARK], node.get("type")
        if not path:
            return f"{_MARK} is on something other than a property"
        where = ".".join(path)
        if not isinstance(mark, str) or not _TOKEN.fullmatch(mark):
            return f"{_MARK} of {where} is not the name of a header"
        if kind not in ("string", "integer", "boolean"):
            return f"{_MARK} of {where} is not on a string, an integer or a boolean"
        if mark.lower() in seen:
            return f"{_MARK} {mark} is used twice"
        seen.add(mark.lower())
    return ""


def written(value: str) -> str:
    """The value as a header: as it is where that is safe, else in Base64 between marks."""
    if not value or (_PLAIN.fullmatch(value) and not _WRAPPED.fullmatch(value)):
        return value
    return f"=?base64?{b64encode(value.encode('utf-8', 'replace')).decode('ascii')}?="


def _positions(schema: Any) -> Iterator[tuple[Path | None, JsonObject]]:
    """Every schema inside a schema; the path is None where it is not made of properties alone."""
    waiting: list[tuple[Path | None, Any]] = [((), schema)]
    while waiting:
        path, value = waiting.pop()
        if not isinstance(value, dict):
            continue
        node = cast(JsonObject, value)
        yield path, node
        properties = node.get("properties")
        if isinstance(properties, dict):
            for name, inner in cast(JsonObject, properties).items():
                waiting.append((None if path is None else (*path, name), inner))
        waiting += [(None, node.get(name)) for name in _NESTED]
        for name in _LISTS:
            inner = node.get(name)
            if isinstance(inner, list):
                waiting += [(None, each) for each in cast(list[Any], inner)]
        for name in _TABLES:
            inner = node.get(name)
            if isinstance(inner, dict):
                waiting += [(None, each) for each in cast(JsonObject, inner).values()]


def _at(arguments: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = cast(JsonObject, arguments).get(name)
    return arguments
