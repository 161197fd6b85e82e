"""Generates the page about the tools: `python -m toolwire.tools.document`."""

import sys
from pkgutil import get_data
from typing import Any, cast

from toolwire.request import JsonObject
from toolwire.tools.registry import ADDED, Registry, builtins
from toolwire.tools.spec import Tool


def page(registry: Registry) -> str:
    """The whole page."""
    words = (get_data("toolwire.tools", "document.md") or b"").decode()
    sections = "\n".join(_section(tool) for tool in registry)
    return words.replace("{table}", _table(registry)).replace("{sections}", sections)


def _table(registry: Registry) -> str:
    rows = (
        f"| [`{one.name}`](#{one.name}) | {one.effect} | {_first_sentence(one.description)} |"
        for one in registry
    )
    return "\n".join(("| tool | effect | what it does |", "|---|---|---|", *rows))


def _first_sentence(text: str) -> str:
    line = text.strip().partition("\n")[0]
    sentence, stop, _ = line.partition(". ")
    return _cell(sentence + stop.strip())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _section(tool: Tool) -> str:
    own = " Toolwire's own." if tool.name in ADDED else ""
    also = (
        f" Also called {', '.join(f'`{name}`' for name in tool.aliases)}." if tool.aliases else ""
    )
    lines = [f"## {tool.name}", f"Effect: {tool.effect}.{own}{also}", "", *_parameters(tool), ""]
    return "\n".join(lines)


def _parameters(tool: Tool) -> list[str]:
    properties = cast(dict[str, JsonObject], tool.parameters.get("properties", {}))
    required = cast(list[str], tool.parameters.get("required", []))
    if not properties:
        return ["It takes no arguments."]
    rows = [
        f"| `{name}`{' *' if name in required else ''} | {_type(schema)} | "
        f"{_cell(str(schema.get('description', '')))} |"
        for name, schema in properties.items()
    ]
    return ["| argument (* required) | type | meaning |", "|---|---|---|", *rows]


def _type(schema: JsonObject) -> str:
    kind: Any = schema.get("type", "object" if "$ref" in schema else "any")
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(kind)


if __name__ == "__main__":
    sys.stdout.write(page(builtins()))
