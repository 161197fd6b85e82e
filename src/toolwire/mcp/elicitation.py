"""Questions of servers to the user: forms field by field, and addresses to open."""

import json
import webbrowser
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from toolwire.client.redact import is_secret_name
from toolwire.mcp.client import Elicit
from toolwire.mcp.lists import members, text
from toolwire.request import JsonObject

Ask: TypeAlias = Callable[[str, tuple[str, ...]], Awaitable[str]]
_TRIES = 3
_SECRET = "This looks like a secret; the server will get what you type."  # noqa: S105 - a warning
_TRUE, _FALSE = ("yes", "y", "true"), ("no", "n", "false")
DECLINED: JsonObject = {"action": "decline"}
CANCELLED: JsonObject = {"action": "cancel"}


class _Invalid(Exception):
    """An answer that does not fit its field."""


def asking(ask: Ask) -> Callable[[str], Elicit]:
    """For each server, by its name, what answers its questions: the user."""

    def of(server: str) -> Elicit:
        async def elicit(params: JsonObject) -> JsonObject:
            message = f"The MCP server {server} asks: {text(params.get('message'))}"
            if params.get("mode") == "url" or "url" in params:
                return await _opened(message, text(params.get("url")), ask)
            properties = members(members(params.get("requestedSchema")).get("properties"))
            if await ask(message, ("answer", "decline")) != "answer":
                return DECLINED
            return await _form(properties, members(params.get("requestedSchema")), ask)

        return elicit

    return of


async def _opened(message: str, url: str, ask: Ask) -> JsonObject:
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        return DECLINED
    question = f"{message}\nIt wants to open an address at {parts.hostname}:\n{url}"
    if await ask(question, ("open it", "no")) != "open it":
        return DECLINED
    webbrowser.open(url)
    return {"action": "accept"}


async def _form(properties: JsonObject, schema: JsonObject, ask: Ask) -> JsonObject:
    required = schema.get("required")
    needed = cast(list[Any], required) if isinstance(required, list) else []
    content: JsonObject = {}
    for name, value in properties.items():
        field = members(value)
        for _ in range(_TRIES):
            typed = (await ask(_question(name, field), choices(field))).strip()
            if not typed:
                if "default" in field:
                    content[name] = field["default"]
                elif name in needed:
                    return CANCELLED
                break
            try:
                content[name] = read_value(field, typed)
            except _Invalid:
                continue
            break
        else:
            return CANCELLED
    return {"action": "accept", "content": content}


def _question(name: str, field: JsonObject) -> str:
    lines = [text(field.get("title")) or name]
    if described := text(field.get("description")):
        lines.append(described)
    if "default" in field:
        lines.append(f"(nothing typed means {json.dumps(field['default'], ensure_ascii=False)})")
    if is_secret_name(name) or field.get("format") == "password":
        lines.append(_SECRET)
    return "\n".join(lines)


def choices(field: JsonObject) -> tuple[str, ...]:
    """The values that a field allows; empty for free text."""
    if field.get("type") == "boolean":
        return ("yes", "no")
    return tuple(map(str, _allowed(field)))


def _allowed(field: JsonObject) -> list[Any]:
    if field.get("type") == "array":
        field = members(field.get("items"))
    for key in ("oneOf", "anyOf"):
        if isinstance(field.get(key), list):
            return [members(each).get("const") for each in cast(list[Any], field[key])]
    listed = field.get("enum")
    return cast(list[Any], listed) if isinstance(listed, list) else []


def read_value(field: JsonObject, typed: str) -> Any:
    """What was typed, as the field's type."""
    allowed = _allowed(field)
    match field.get("type"):
        case "boolean":
            if typed.lower() not in (*_TRUE, *_FALSE):
                raise _Invalid
            return typed.lower() in _TRUE
        case "integer" | "number" as kind:
            try:
                return int(typed) if kind == "integer" else float(typed)
            except ValueError as error:
                raise _Invalid from error
        case "array":
            words = [word.strip() for word in typed.split(",") if word.strip()]
            if allowed and not set(words) <= set(map(str, allowed)):
                raise _Invalid
            return words
        case _:
            if allowed and typed not in map(str, allowed):
                raise _Invalid
            return typed


async def accepting(params: JsonObject) -> JsonObject:
    """Accepts everything: a field gets its default, else true if it is a boolean."""
    if params.get("mode") == "url" or "url" in params:
        return {"action": "accept"}
    properties = members(members(params.get("requestedSchema")).get("properties"))
    content: JsonObject = {}
    for name, value in properties.items():
        field = members(value)
        if "default" in field:
            content[name] = field["default"]
        elif field.get("type") == "boolean":
            content[name] = True
    return {"action": "accept", "content": content}


async def declining(params: JsonObject) -> JsonObject:
    """Declines everything."""
    del params
    return DECLINED
