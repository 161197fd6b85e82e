"""Any schema of a tool author → its normal form in draft 2020-12."""

import re
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from toolwire.request import JsonObject
from toolwire.schema.merge import TYPES, meaning, same, values_in
from toolwire.schema.profile import Normal, References, Report, below, keyword_text

DEEPEST = 60
"""Maximum nesting; vendors accept far less."""

ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
)
_COMBINED = frozenset({"$ref", "anyOf", "oneOf", "allOf", "not", "enum", "const", "nullable"})
_WRAPPED = frozenset({"$ref", "allOf", "oneOf", "not", "if"})
_REWRITTEN = frozenset({"nullable", "$ref", "items", "exclusiveMinimum", "exclusiveMaximum"})

PLAIN_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}").fullmatch
"""Property names that every vendor accepts at the root; Anthropic accepts no others."""

Reader: TypeAlias = "Callable[[Normaliser, JsonObject, str, Any, str, int], None]"


def normalise(source: Any, path: str, report: Report) -> Normal:
    """The normal form of a schema. Invalid parts are left out and reported."""
    if not isinstance(source, dict):
        if not isinstance(source, bool):
            report.add(path, keyword_text("schema", source), "not a schema; any value is accepted")
        return Normal({} if source is not False else {"not": {}}, {})
    return Normaliser(cast(JsonObject, source), path, report).run()


class Normaliser:
    """Walks one schema. Its output may share values with the input and never changes it."""

    def __init__(self, source: JsonObject, path: str, report: Report) -> None:
        self._source = source
        self._path = path
        self._report = report
        self._references = References(source)
        self._defs: dict[str, JsonObject] = {}
        self._waiting: list[tuple[str, Any, str]] = []
        self._lone_ref = "draft-0" in str(source.get("$schema"))

    def run(self) -> Normal:
        """The whole of it: the root, then what it refers to."""
        root = self.node(self._source, self._path, 0)
        while self._waiting:
            name, node, path = self._waiting.pop()
            self._defs[name] = self.node(node, path, 1)
        return Normal(root, self._defs)

    def node(self, node: Any, path: str, depth: int) -> JsonObject:
        """One schema."""
        if not isinstance(node, dict):
            return self._odd_node(node, path)
        if depth > DEEPEST:
            self._report.add(path, "schema", f"nested deeper than {DEEPEST} levels; left open")
            return {}
        source = cast(JsonObject, node)
        out: JsonObject = {}
        for key, value in source.items():
            read = _READERS.get(key)
            if read is None:
                out[key] = value
            elif value is not None or key == "const":
                read(self, out, key, value, path, depth)
        if not _REWRITTEN.isdisjoint(source):
            self._rewrite(source, out, path, depth)
        if "array" in out.get("type", ()) and "items" not in out:
            # OpenAI and Gemini answer 400 to an array without items.
            out["items"] = {}
        return out

    def _odd_node(self, node: Any, path: str) -> JsonObject:
        if isinstance(node, bool):
            return {} if node else {"not": {}}
        name, _ = meaning(node) if isinstance(node, str) else (None, False)
        if name:
            self._report.add(path, keyword_text("schema", node), "not a schema; read as a type")
            return {"type": name}
        self._report.add(path, keyword_text("schema", node), "not a schema; any value is accepted")
        return {}

    def _rewrite(self, source: JsonObject, out: JsonObject, path: str, depth: int) -> None:
        for bound, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if source.get(bound) is True and limit in out:
                out[bound] = out.pop(limit)
        items = source.get("items")
        if isinstance(items, list):
            rest = source.get("additionalItems")
            if rest is not None:
                out["items"] = self._open_or(rest, f"{path}.additionalItems", depth)
        if "$ref" in out and self._lone_ref:
            for key in [key for key in out if key != "$ref" and key not in ANNOTATIONS]:
                del out[key]
        if source.get("nullable") is True:
            allow_null(out)

    def _root_moves(self) -> bool:
        """Whether the root may be rewritten, so that references to it need a copy."""
        source = self._source
        kind = meaning(source.get("type", "object"))
        members = source.get("properties")
        return (
            not _COMBINED.isdisjoint(source)
            or kind != ("object", True)
            or not (isinstance(members, dict) and all(map(PLAIN_NAME, cast(JsonObject, members))))
        )

    def _wrong(self, path: str, key: str, value: Any) -> None:
        self._report.add(
            path, keyword_text(key, value), "not a value this keyword can have; left out"
        )

    def _open_or(self, value: Any, path: str, depth: int) -> Any:
        return value if isinstance(value, bool) else self.node(value, path, depth + 1)

    def read_type(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`type`: one word, several, or a protobuf number."""
        if isinstance(value, str) and value in TYPES:
            out[key] = value
            return
        names: list[str] = []
        for word in cast(list[Any], value) if isinstance(value, list) else [value]:
            name, whole = meaning(word)
            if name is None:
                self._report.add(
                    path, keyword_text(key, value), "unknown type; any value is accepted"
                )
                return
            if not name:
                return
            if not whole:
                self._report.add(path, keyword_text(key, word), f'read as "{name}"')
            if name not in names:
                names.append(name)
        if names:
            out[key] = names[0] if len(names) == 1 else names

    def read_schema(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A keyword that holds one schema."""
        out[key] = self.node(value, f"{path}.{key}", depth + 1)

    def read_open(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A keyword that holds one schema and is often just true or false."""
        out[key] = self._open_or(value, f"{path}.{key}", depth)

    def read_items(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`items`: a schema, or in old drafts a tuple."""
        if isinstance(value, list):
            self.read_schemas(out, "prefixItems", value, path, depth)
        else:
            out[key] = self._open_or(value, f"{path}.items", depth)

    def read_schemas(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A keyword that holds a list of schemas."""
        if not isinstance(value, list) or not value:
            if value != [] or key in ("anyOf", "oneOf"):
                self._wrong(path, key, value)
            return
        out[key] = [
            self.node(item, f"{path}.{key}[{index}]", depth + 1)
            for index, item in enumerate(cast(list[Any], value))
        ]

    def read_members(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A keyword that holds named schemas."""
        if not isinstance(value, dict):
            self._wrong(path, key, value)
            return
        inside = f"{path}.{key}"
        out[key] = {
            name: self.node(node, below(inside, name), depth + 1)
            for name, node in cast(JsonObject, value).items()
        }

    def read_dependencies(
        self, out: JsonObject, key: str, value: Any, path: str, depth: int
    ) -> None:
        """`dependencies` of old drafts: names or schemas."""
        if not isinstance(value, dict):
            self._wrong(path, key, value)
            return
        members = cast(JsonObject, value)
        names: JsonObject = {}
        schemas: JsonObject = {}
        for name, node in members.items():
            (names if isinstance(node, list) else schemas)[name] = node
        if names:
            self.read_name_lists(out, "dependentRequired", names, path, depth)
        if schemas:
            self.read_members(out, "dependentSchemas", schemas, path, depth)

    def read_name_lists(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`dependentRequired`: names by name."""
        if isinstance(value, dict) and all(map(_is_names, cast(JsonObject, value).values())):
            out[key] = value
        else:
            self._wrong(path, key, value)

    def read_names(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`required`: a list of names."""
        if not _is_names(value):
            self._wrong(path, key, value)
        elif value:
            out[key] = list(dict.fromkeys(cast(list[str], value)))

    def read_enum(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`enum`: values, each once."""
        if not isinstance(value, list) or not value:
            self._wrong(path, key, value)
        elif all(isinstance(item, str) for item in cast(list[Any], value)):
            out[key] = list(dict.fromkeys(cast(list[str], value)))
        else:
            out[key] = list(
                {same(item): item for item in reversed(cast(list[Any], value))}.values()
            )
            out[key].reverse()

    def read_number(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A bound; in draft 4 the exclusive ones are flags beside the others."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            if key != "multipleOf" or value > 0:
                out[key] = value
                return
        elif isinstance(value, bool) and key.startswith("exclusive"):
            return
        self._wrong(path, key, value)

    def read_count(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A length or count; protobuf writes it as text."""
        if isinstance(value, str) and value.isdecimal() and len(value) < 19:
            value = int(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            out[key] = value
        else:
            self._wrong(path, key, value)

    def read_text(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A keyword that holds text."""
        if isinstance(value, str):
            out[key] = value
        else:
            self._wrong(path, key, value)

    def read_flag(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`uniqueItems`: only true has an effect."""
        if value is True:
            out[key] = True
        elif value is not False:
            self._wrong(path, key, value)

    def read_const(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`const`: any value, null too."""
        out[key] = value

    def read_reference(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`$ref`: rewritten to `$defs` or the root."""
        if key == "$dynamicRef" or not isinstance(value, str):
            self._report.add(
                path, keyword_text(key, value), "not followed; any value is accepted there"
            )
            return
        found, node, tokens = self._references.find(value)
        if not found:
            why = "the target does not exist" if value[:1] in ("#", "") else "never fetched"
            self._report.add(path, keyword_text(key, value), f"{why}; any value is accepted there")
            return
        if node is self._source and not self._root_moves():
            out["$ref"] = "#"
            return
        name, new = self._references.name(node, tokens)
        if new:
            inner_path = self._path
            for token in tokens:
                inner_path = below(inner_path, token)
            self._waiting.append((name, node, inner_path))
        out["$ref"] = f"#/$defs/{name}"

    def read_base(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """`$id`: below the root it would change what references mean."""
        if depth and isinstance(value, str) and not value.startswith("#"):
            self._report.add(
                path, keyword_text(key, value), "references are read from the root instead"
            )

    def skip(self, out: JsonObject, key: str, value: Any, path: str, depth: int) -> None:
        """A keyword without effect on values, or handled with another."""


def allow_null(node: JsonObject) -> None:
    """Makes a schema accept null too."""
    if not _WRAPPED.isdisjoint(node):
        inner = {key: node.pop(key) for key in list(node) if key not in ANNOTATIONS}
        node["anyOf"] = [inner, {"type": "null"}]
        return
    values = values_in(node)
    if values is not None:
        node.pop("const", None)
        node["enum"] = values if None in values else [*values, None]
    kind = node.get("type")
    if isinstance(kind, str):
        if kind != "null":
            node["type"] = [kind, "null"]
    elif kind is not None and "null" not in kind:
        node["type"] = [*kind, "null"]
    if "anyOf" in node and {"type": "null"} not in node["anyOf"]:
        node["anyOf"] = [*node["anyOf"], {"type": "null"}]


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast(list[Any], value))


_READERS: dict[str, Reader] = {
    "type": Normaliser.read_type,
    "enum": Normaliser.read_enum,
    "const": Normaliser.read_const,
    "required": Normaliser.read_names,
    "items": Normaliser.read_items,
    "dependencies": Normaliser.read_dependencies,
    "dependentRequired": Normaliser.read_name_lists,
    "uniqueItems": Normaliser.read_flag,
    "$id": Normaliser.read_base,
    "$ref": Normaliser.read_reference,
    "$recursiveRef": Normaliser.read_reference,
    "$dynamicRef": Normaliser.read_reference,
}
for _keywords, _reader in (
    (("properties", "patternProperties", "dependentSchemas"), Normaliser.read_members),
    (("anyOf", "oneOf", "allOf", "prefixItems"), Normaliser.read_schemas),
    (("not", "if", "then", "else", "contains", "propertyNames"), Normaliser.read_schema),
    (
        ("additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
        Normaliser.read_open,
    ),
    (
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        Normaliser.read_number,
    ),
    (("minLength", "maxLength", "minItems", "maxItems"), Normaliser.read_count),
    (("minContains", "maxContains", "minProperties", "maxProperties"), Normaliser.read_count),
    (("title", "description", "format", "pattern"), Normaliser.read_text),
    (("$schema", "$comment", "$vocabulary", "$defs", "definitions"), Normaliser.skip),
    (("$anchor", "$dynamicAnchor", "$recursiveAnchor"), Normaliser.skip),
    (("nullable", "additionalItems"), Normaliser.skip),
):
    for _keyword in _keywords:
        _READERS[_keyword] = _reader
