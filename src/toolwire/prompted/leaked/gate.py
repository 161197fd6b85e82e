"""Accepts printed calls of offered tools whose arguments fit the schema."""

import json
from collections.abc import Iterable
from typing import Any, cast

import msgspec

from toolwire.prompted.leaked.cursor import Field, Spelled
from toolwire.prompted.leaked.notations import literal
from toolwire.request import JsonObject, ToolChoice, ToolSpec
from toolwire.schema import Profile, convert
from toolwire.wire.names import ToolNames

_decode = msgspec.json.Decoder().decode
_DEEPEST = 8
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_NULLS = ("null", "None")
_KINDS: dict[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def read_field(field: Field, schema: Any, root: JsonObject) -> bytes:
    """The value as JSON of the type that the schema requires; raises ValueError."""
    if field.kind == "text":
        return _text(field.text)
    if field.kind == "json":
        return _json(field.text)
    kinds = _kinds(schema, root, _DEEPEST)
    word = field.text.strip()
    if "null" in kinds and word in _NULLS:
        return b"null"
    if "string" in kinds:
        return _structure(word, kinds) or _text(field.text)
    if "boolean" in kinds and word.lower() in ("true", "false"):
        return word.lower().encode()
    if not kinds:
        return _json_or_text(field.text)
    return _structure(word, kinds) or _json(word)


def _text(text: str) -> bytes:
    return msgspec.json.encode(text)


def _json(text: str) -> bytes:
    try:
        _decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"not JSON: {error}") from error
    return text.strip().encode()


def _json_or_text(text: str) -> bytes:
    try:
        return _json(text)
    except ValueError:
        return _text(text)


def _structure(word: str, kinds: frozenset[str]) -> bytes | None:
    """An object or a list where the schema requires one, in JSON or Python notation."""
    opening = word[:1]
    if (opening == "{" and "object" in kinds) or (opening == "[" and "array" in kinds):
        try:
            return _json(word)
        except ValueError:
            if "string" in kinds:
                return None
            return _dump(literal(word)).encode()
    return None


def _kinds(schema: Any, root: JsonObject, depth: int) -> frozenset[str]:
    """The JSON types a schema allows; empty for any."""
    if not isinstance(schema, dict) or not depth:
        return frozenset()
    node = cast(JsonObject, schema)
    reference = node.get("$ref")
    if isinstance(reference, str):
        return _kinds(_target(reference, root), root, depth - 1)
    named = node.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(map(str, cast(list[Any], named)))
    values = node.get("enum", [node["const"]] if "const" in node else None)
    if isinstance(values, list):
        return frozenset(_kind(value) for value in cast(list[Any], values))
    found: set[str] = set()
    for word in ("anyOf", "oneOf", "allOf"):
        for branch in cast(list[Any], node.get(word) or []):
            kinds = _kinds(branch, root, depth - 1)
            if not kinds and word != "allOf":
                return frozenset()
            found |= kinds
    return frozenset(found)


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "array" if isinstance(value, list) else "object")


def _target(reference: str, root: JsonObject) -> Any:
    if reference == "#":
        return root
    definitions = root.get("$defs")
    if not isinstance(definitions, dict):
        return None
    return cast(JsonObject, definitions).get(reference.removeprefix("#/$defs/"))


_decode = msgspec.json.Decoder().decode
_LONGEST_REASON = 300


class FittedCall(msgspec.Struct, frozen=True):
    """An accepted call."""

    tool: ToolSpec
    arguments: str


class RefusedCall(Exception):
    """A printed call that is not accepted; the text is the reason."""


class Gate:
    """Checks printed calls against the tools of one request."""

    def __init__(self, tools: Iterable[object], choice: ToolChoice | None = None) -> None:
        only = choice.names if choice is not None else ()
        barred = choice is not None and choice.mode == "none"
        offered = [
            tool
            for tool in tools
            if isinstance(tool, ToolSpec) and not barred and (not only or tool.name in only)
        ]
        names = ToolNames(offered)
        self._tools: dict[str, ToolSpec] = {}
        for tool in offered:
            # The model may use a tool's wire name or its real name.
            self._tools.setdefault(tool.name, tool)
            self._tools[names.wire_name(tool.name, tool.namespace)] = tool
        self._schemas: dict[tuple[str, str], _Schema] = {}

    def __bool__(self) -> bool:
        return bool(self._tools)

    def fit(self, spelled: Spelled) -> FittedCall:
        """The call, its arguments in JSON; raises Refused."""
        tool = self._tools.get(spelled.name)
        if tool is None:
            raise RefusedCall(f'no tool "{spelled.name}" is offered')
        schema = self._schema(tool)
        text = spelled.arguments
        if spelled.fields is not None:
            text = _joined(spelled.fields, schema.clean)
        try:
            value = _decode(text)
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise RefusedCall(f'the arguments of "{tool.name}" are not JSON: {error}') from error
        reason = schema.misfit(value)
        if reason:
            raise RefusedCall(f'the arguments do not fit "{tool.name}": {reason[:_LONGEST_REASON]}')
        return FittedCall(tool, text)

    def _schema(self, tool: ToolSpec) -> "_Schema":
        key = (tool.namespace, tool.name)
        if key not in self._schemas:
            self._schemas[key] = _Schema(tool.parameters)
        return self._schemas[key]


class _Schema:
    """A tool's schema, compiled for the first call of it."""

    def __init__(self, schema: JsonObject) -> None:
        self.clean = convert(schema, Profile.GEMINI_JSON).schema
        self._takes_none = not schema
        self._validator: Any = None
        self._unusable = ""
        for form in (schema, self.clean):
            try:
                self._validator = _compiled(form)
                return
            except ValueError as error:
                # Non-standard type names (`dict`, `OBJECT`): use the cleaned schema.
                self._unusable = str(error)

    def misfit(self, value: Any) -> str:
        """Why the arguments do not fit; empty when they do."""
        if not isinstance(value, dict):
            return "they are not an object"
        if self._takes_none:
            return "it takes none" if value else ""
        if self._validator is None:
            return f"its schema cannot be checked: {self._unusable}"
        error = next(iter(self._validator.iter_errors(value)), None)
        return str(error.message) if error is not None else ""


def _compiled(schema: JsonObject) -> Any:
    import jsonschema_rs  # noqa: PLC0415 - most answers print no call

    def refuse(address: str) -> Any:
        raise ValueError(f"{address} is not fetched")

    return jsonschema_rs.validator_for(schema, retriever=refuse)


def _joined(fields: tuple[Field, ...], schema: JsonObject) -> str:
    """Tagged arguments as one JSON object, each value of the type its schema requires."""
    values: dict[str, msgspec.Raw] = {}
    properties = schema.get("properties")
    known = cast(JsonObject, properties) if isinstance(properties, dict) else {}
    for field in fields:
        if field.name in values:
            raise RefusedCall(f'the argument "{field.name}" is given twice')
        try:
            values[field.name] = msgspec.Raw(read_field(field, known.get(field.name), schema))
        except (ValueError, RecursionError) as error:
            raise RefusedCall(f'the argument "{field.name}" is unreadable: {error}') from error
    return msgspec.json.encode(values).decode()
