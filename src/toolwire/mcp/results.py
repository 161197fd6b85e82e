"""Results of calls: content blocks to canonical parts, in the captured wording of gemini-cli."""

import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from toolwire.mcp.lists import members, text
from toolwire.messages import Media, MediaKind, Text
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

UNREADABLE = "[Error: Could not parse tool response]"
_OCTETS = "application/octet-stream"
_MIME = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_ALPHABET = str.maketrans("-_", "+/")


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """One content block: parts for the model, one line for the user."""

    parts: tuple[Text | Media, ...] = ()
    display: str = ""


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call, read as far as it can be."""

    blocks: tuple[Block, ...] = ()
    is_error: bool = False
    content: tuple[Any, ...] = ()
    """The blocks as sent, for the wording of an error."""

    @property
    def parts(self) -> tuple[Text | Media, ...]:
        """Everything for the model, in order."""
        return tuple(part for block in self.blocks for part in block.parts)

    @property
    def display(self) -> str:
        """Everything for the user."""
        return "\n".join(block.display for block in self.blocks if block.display)


def read_result(result: Any, tool: str) -> CallResult:
    """The result of `tools/call`; unknown blocks are named, never lost silently."""
    body = members(result)
    content = body.get("content")
    listed = _listed(content)
    blocks = tuple(_block(each, tool) for each in listed)
    if not any(block.parts for block in blocks) and body.get("structuredContent") is not None:
        structured = dump(body["structuredContent"])
        blocks = (*blocks, Block(parts=(Text(structured),), display=structured))
    elif content is None and not blocks:
        blocks = (Block(parts=(Text(UNREADABLE),), display=UNREADABLE),)
    return CallResult(
        blocks=blocks, is_error=body.get("isError") in (True, "true"), content=tuple(listed)
    )


def _listed(content: Any) -> Sequence[Any]:
    if isinstance(content, list):
        return cast(list[Any], content)
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return (cast(JsonObject, content),) if isinstance(content, dict) else ()


def _block(value: Any, tool: str) -> Block:
    if isinstance(value, str):
        return Block(parts=(Text(value),), display=value)
    block = members(value)
    kind = text(block.get("type"))
    match kind:
        case "text":
            return _text(block)
        case "image" | "audio":
            return _media(block, kind, tool)
        case "resource":
            return resource_block(members(block.get("resource")), tool)
        case "resource_link":
            name = text(block.get("title")) or text(block.get("name"))
            uri = text(block.get("uri"))
            return Block(
                parts=(Text(f"Resource Link: {name} at {uri}"),), display=f"[Link to {name}: {uri}]"
            )
        case _:
            line = f"[Unknown content type: {kind or 'none'}]"
            return Block(parts=(Text(line),), display=line)


def _text(block: JsonObject) -> Block:
    value = block.get("text")
    written = value if isinstance(value, str) else "" if value is None else dump(value)
    audience = members(block.get("annotations")).get("audience")
    if audience == ["user"]:
        return Block(display=written)
    return Block(parts=(Text(written),), display=written)


def _media(block: JsonObject, kind: str, tool: str) -> Block:
    found = _encoded(text(block.get("data")), text(block.get("mimeType")))
    if found is None:
        return _unusable(kind.capitalize())
    mime, data = found
    note = f"[Tool '{tool}' provided the following {kind} data with mime-type: {mime}]"
    media = Media(kind=_kind_of(mime, MediaKind(kind)), mime=mime, base64=data)
    return Block(parts=(Text(note), media), display=f"[{kind.capitalize()}: {mime}]")


def _unusable(what: str) -> Block:
    line = f"[{what} left out: its data is empty or not Base64]"
    return Block(parts=(Text(line),), display=line)


def _encoded(data: str, mime: str) -> tuple[str, str] | None:
    """Type and Base64 of media: servers break lines, use other alphabets, or send a data URL.

    A vendor refuses the whole request for one picture that it cannot read.
    """
    if data.startswith("data:"):
        head, _, data = data.partition(",")
        mime = mime or head[5:].partition(";")[0]
    if len(data) % 4 or not _BASE64.fullmatch(data):
        data = "".join(data.split()).translate(_ALPHABET).rstrip("=")
        data += "=" * (-len(data) % 4)
    if not data or not _BASE64.fullmatch(data):
        return None
    mime = mime.partition(";")[0].strip().lower()
    if not _MIME.fullmatch(mime):
        mime = _OCTETS
    if mime == _OCTETS or mime.startswith("image/"):
        from toolwire.tools.files.contents import signed_mime  # noqa: PLC0415 - start-up time

        mime = signed_mime(b64decode(data[:32])) or mime
    return mime, data


def resource_block(resource: JsonObject, tool: str) -> Block:
    """The parts of a resource's content."""
    written = resource.get("text")
    if isinstance(written, str):
        return Block(parts=(Text(written),), display=f"[Embedded Resource: {_mime(resource)}]")
    blob = resource.get("blob")
    if not isinstance(blob, str):
        line = "[Embedded Resource without content]"
        return Block(parts=(Text(line),), display=line)
    found = _encoded(blob, text(resource.get("mimeType")))
    if found is None:
        return _unusable("Embedded Resource")
    mime, blob = found
    note = f"[Tool '{tool}' provided the following embedded resource with mime-type: {mime}]"
    media = Media(kind=_kind_of(mime, MediaKind.DOCUMENT), mime=mime, base64=blob)
    return Block(parts=(Text(note), media), display=f"[Embedded Resource: {mime}]")


def _mime(resource: JsonObject) -> str:
    return text(resource.get("mimeType")) or _OCTETS


def _kind_of(mime: str, fallback: MediaKind) -> MediaKind:
    family = mime.partition("/")[0]
    return MediaKind(family) if family in ("image", "audio", "video") else fallback


def tool_error(name: str, arguments: JsonObject, content: Sequence[Any]) -> str:
    """The error for the model when a server reports one."""
    call = dump({"name": name, "args": arguments})
    response = dump(
        [
            {
                "functionResponse": {
                    "name": name,
                    "response": {"error": {"content": list(content), "isError": True}},
                }
            }
        ]
    )
    return (
        f"MCP tool '{name}' reported tool error for function call: {call} with response: {response}"
    )
