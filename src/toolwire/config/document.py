"""Generates the page about the settings, `python -m toolwire.config.document`, and, with the
argument `schema`, the JSON Schema of a settings file.
"""

import sys
from collections.abc import Iterable
from pkgutil import get_data
from typing import Any, cast

import msgspec

from toolwire.config.gateway import RouteTable
from toolwire.config.schema import Key, keys, rendered
from toolwire.providers.catalogue import ModelEntry
from toolwire.providers.custom import ProviderTable
from toolwire.request import JsonObject


def page() -> str:
    """Returns the whole page."""
    words = (get_data("toolwire.config", "document.md") or b"").decode()
    return words.replace("{table}", _table(keys().values()))


def _table(found: Iterable[Key]) -> str:
    rows = (
        f"| `{key.path}` | {_cell(key.expected)} | {_default(key)} | {_project(key)} | "
        f"{_variable(key)} | {_cell(key.doc)} |"
        for key in found
    )
    head = "| setting | value | default | project | variable | meaning |"
    return "\n".join((head, "|---|---|---|---|---|---|", *rows))


def _default(key: Key) -> str:
    if key.tables or key.default is None:
        return ""
    return f"`{rendered(key.default)}`"


def _project(key: Key) -> str:
    return "yes" if key.project else "no"


def _variable(key: Key) -> str:
    return f"`{key.variable}`" if key.variable else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def settings_schema() -> JsonObject:
    """Returns the JSON Schema of a settings file."""
    properties: JsonObject = {}
    for key in keys().values():
        *groups, name = key.path.split(".")
        inside = properties
        for group in groups:
            inside = inside.setdefault(group, _object({}))["properties"]
        inside[name] = _value_schema(key)
    properties["hooks"]["properties"] |= _hook_tables()
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of toolwire",
        **_object(properties),
    }


def _object(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _value_schema(key: Key) -> JsonObject:
    if key.tables:
        return {
            "type": "object",
            "description": key.doc,
            "additionalProperties": _inlined(_TABLES[key.path]()),
        }
    schema = _inlined(key.kind)
    default = {} if key.default is None else {"default": msgspec.to_builtins(key.default)}
    return {**schema, "description": key.doc, **default}


def _inlined(kind: Any) -> JsonObject:
    """Returns the schema of a type, without references and without null, which TOML lacks."""
    whole = msgspec.json.schema(kind)
    parts = cast(JsonObject, whole.pop("$defs", {}))

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(one) for one in cast(list[Any], node)]
        if not isinstance(node, dict):
            return node
        members = cast(JsonObject, node)
        if "$ref" in members:
            return plain(parts[str(members["$ref"]).rpartition("/")[2]])
        choices = [one for one in members.get("anyOf", ()) if one != {"type": "null"}]
        if len(choices) == 1:
            return plain({**{k: v for k, v in members.items() if k != "anyOf"}, **choices[0]})
        return {
            name: plain(one)
            for name, one in members.items()
            if not (name == "default" and one is None)
        }

    return plain(whole)


def _server_table() -> Any:
    from toolwire.mcp.entry import ServerEntry  # noqa: PLC0415 - only for the schema

    return ServerEntry


def _hook_tables() -> JsonObject:
    """The schema of `[[hooks.EVENT]]` for each event."""
    from toolwire.extensions.hooks.definitions import (  # noqa: PLC0415 - only for the schema
        ALIASES,
        EVENTS,
        HookTableEntry,
    )

    table = _inlined(HookTableEntry)
    return {name: {"type": "array", "items": table} for name in (*EVENTS, *ALIASES)}


_TABLES = {
    "providers": lambda: ProviderTable,
    "models": lambda: ModelEntry,
    "mcp_servers": _server_table,
    "gateway.routes": lambda: RouteTable,
}

if __name__ == "__main__":
    if sys.argv[1:] == ["schema"]:
        schema = msgspec.json.encode(settings_schema())
        sys.stdout.write(f"{msgspec.json.format(schema, indent=2).decode()}\n")
    else:
        sys.stdout.write(page())
