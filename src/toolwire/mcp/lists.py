"""Lenient reading of a server's greeting and lists: one bad entry never costs the others."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

import msgspec

from toolwire.request import JsonObject

EMPTY: JsonObject = {"type": "object", "properties": {}}
"""The parameters of a tool without a schema."""
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
Entry = TypeVar("Entry")


class ListedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as its server describes it."""

    name: str
    title: str = ""
    description: str = ""
    parameters: JsonObject
    hints: dict[str, bool] = {}
    """The server's own words on its effect; shown, never ruled by unless the user believes them."""
    warnings: tuple[str, ...] = ()


class PromptArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class ServerPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that a server offers."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class ServerResource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource that a server offers."""

    uri: str
    name: str = ""
    description: str = ""
    mime: str = ""


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself when it is first asked."""

    protocol: str
    name: str = ""
    version: str = ""
    capabilities: JsonObject = {}
    instructions: str = ""
    warnings: tuple[str, ...] = ()


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a list: its entries as sent, and where the next begins."""

    entries: tuple[Any, ...] = ()
    cursor: str = ""
    seconds: float | None = None
    """How long the list stays fresh; None where the server does not say."""


def read_greeting(result: Any, known: Iterable[str], newest: str) -> Greeting:
    """The answer to `initialize` or `server/discover`; what is absent or malformed is empty."""
    body = members(result)
    info = members(body.get("serverInfo"))
    protocol, warnings = text(body.get("protocolVersion")), ()
    if protocol not in known:
        named = f"an unknown protocol version {protocol}" if protocol else "no protocol version"
        warnings = (f"the server names {named}; {newest} is used",)
        protocol = newest
    return Greeting(
        protocol=protocol,
        name=text(info.get("name")),
        version=text(info.get("version")),
        capabilities=members(body.get("capabilities")),
        instructions=text(body.get("instructions")),
        warnings=warnings,
    )


def read_page(result: Any, key: str) -> Page:
    """One page of `tools`, `prompts`, `resources` or `resourceTemplates`."""
    body = members(result)
    entries = body.get(key)
    milliseconds = body.get("ttlMs")
    return Page(
        entries=tuple(cast(list[Any], entries)) if isinstance(entries, list) else (),
        cursor=text(body.get("nextCursor")),
        seconds=milliseconds / 1000 if isinstance(milliseconds, int | float) else None,
    )


def read_tools(entries: Iterable[Any]) -> tuple[tuple[ListedTool, ...], tuple[str, ...]]:
    """The tools that can be offered, and a warning for each that cannot."""
    return _read(entries, _tool, lambda tool: tool.name, "tool")


def read_prompts(entries: Iterable[Any]) -> tuple[tuple[ServerPrompt, ...], tuple[str, ...]]:
    """The prompts that can be offered, and a warning for each that cannot."""
    return _read(entries, _prompt, lambda prompt: prompt.name, "prompt")


def read_resources(entries: Iterable[Any]) -> tuple[tuple[ServerResource, ...], tuple[str, ...]]:
    """The resources that can be offered, and a warning for each that cannot."""
    return _read(entries, _resource, lambda resource: resource.uri, "resource")


def _read(
    entries: Iterable[Any],
    one: Callable[[JsonObject], Entry],
    key: Callable[[Entry], str],
    kind: str,
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    found: dict[str, Entry] = {}
    warnings: list[str] = []
    for number, entry in enumerate(entries, 1):
        read = one(cast(JsonObject, entry)) if isinstance(entry, dict) else None
        if read is None or not key(read):
            warnings.append(f"{kind} {number} of the list has no name and is left out")
        elif key(read) in found:
            warnings.append(f"{kind} {key(read)} is listed twice; the first is used")
        else:
            found[key(read)] = read
    return tuple(found.values()), tuple(warnings)


def _tool(entry: JsonObject) -> ListedTool:
    warnings: list[str] = []
    annotations = members(entry.get("annotations"))
    return ListedTool(
        name=text(entry.get("name")),
        title=text(entry.get("title")) or text(annotations.get("title")),
        description=text(entry.get("description")),
        parameters=_parameters(entry, warnings),
        hints={name: value for name in _HINTS if isinstance(value := annotations.get(name), bool)},
        warnings=tuple(warnings),
    )


def _parameters(entry: JsonObject, warnings: list[str]) -> JsonObject:
    schema = entry.get("inputSchema")
    if not isinstance(schema, dict):
        if schema is not None or "inputSchema" not in entry:
            warnings.append("it has no schema for its arguments; none are described")
        return EMPTY
    found = cast(JsonObject, schema)
    if found.get("type") != "object":
        warnings.append("its schema is not of type object; it is taken for one")
        found = {**found, "type": "object"}
    return found


def _prompt(entry: JsonObject) -> ServerPrompt:
    listed = entry.get("arguments")
    arguments = cast(list[Any], listed) if isinstance(listed, list) else []
    return ServerPrompt(
        name=text(entry.get("name")),
        title=text(entry.get("title")),
        description=text(entry.get("description")),
        arguments=tuple(
            PromptArgument(
                name=text(each.get("name")),
                description=text(each.get("description")),
                required=each.get("required") is True,
            )
            for each in map(members, arguments)
            if text(each.get("name"))
        ),
    )


def _resource(entry: JsonObject) -> ServerResource:
    return ServerResource(
        uri=text(entry.get("uri")),
        name=text(entry.get("title")) or text(entry.get("name")),
        description=text(entry.get("description")),
        mime=text(entry.get("mimeType")),
    )


def members(value: Any) -> JsonObject:
    """The value if it is an object, otherwise an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def text(value: Any) -> str:
    """The value if it is a string, otherwise the empty one."""
    return value if isinstance(value, str) else ""
