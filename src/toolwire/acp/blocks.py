"""Content blocks of a prompt as the user's message."""

import re
from base64 import b64decode
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec

from toolwire.acp.protocol import bad
from toolwire.mcp.lists import members, text
from toolwire.messages import Media, MediaKind, Text
from toolwire.request import JsonObject
from toolwire.tools.files.contents import media_kind
from toolwire.tools.files.encodings import printable
from toolwire.tools.files.paths import locate, shown
from toolwire.tools.spec import Workspace

_LINES = re.compile(r"L(\d+)(?:[-:]L?(\d+))?")
_KINDS = {"image": MediaKind.IMAGE, "audio": MediaKind.AUDIO}


class PromptInput(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wrote, and what is sent beside it."""

    text: str
    """Files that were linked are mentioned in it."""
    parts: tuple[Text | Media, ...] = ()


def read_blocks(value: Any, workspace: Workspace) -> PromptInput:
    """The blocks in their order; an error names the one that does not fit."""
    if not isinstance(value, list):
        raise bad("prompt is not a list")
    words: list[str] = []
    parts: list[Text | Media] = []
    for number, each in enumerate(cast(list[Any], value)):
        block = members(each)
        match block.get("type"):
            case "text":
                words.append(text(block.get("text")))
            case "resource_link":
                words.append(_link(text(block.get("uri")), workspace))
            case "resource":
                resource = members(block.get("resource"))
                words.append(text(resource.get("uri")))
                parts.append(_embedded(resource, number))
            case "image" | "audio" as kind:
                parts.append(_media(_KINDS[kind], block, text(block.get("data")), number))
            case other:
                raise bad(f"prompt[{number}]: unknown type {other!r}")
    found = PromptInput(text=_joined(words), parts=tuple(parts))
    if not found.text.strip() and not found.parts:
        raise bad("prompt is empty")
    return found


def _joined(words: Iterable[str]) -> str:
    """Texts as they follow each other; a link in between stays a word of its own."""
    joined = ""
    for each in words:
        gap = joined and each and not joined[-1].isspace() and not each[0].isspace()
        is_link = each.startswith(("@", "file:", "http")) or joined.rpartition(" ")[2][:1] == "@"
        joined += f" {each}" if gap and is_link else each
    return joined


def _link(uri: str, workspace: Workspace) -> str:
    """A file of the workspace as a mention, anything else as its address."""
    parts = urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return uri
    path = Path(unquote(parts.path))
    found = locate(path, workspace)
    if found is None or not found.exists() or '"' in str(path) or "\n" in str(path):
        return uri
    lines = _LINES.fullmatch(parts.fragment)
    span = f":{lines[1]}-{lines[2] or lines[1]}" if lines else ""
    return f'@"{shown(path, workspace)}{span}"'


def _embedded(resource: JsonObject, number: int) -> Text | Media:
    uri, words, blob = text(resource.get("uri")), resource.get("text"), resource.get("blob")
    if isinstance(words, str):
        return Text(f"\nContent of {printable(uri)}:\n{printable(words)}\n")
    if not isinstance(blob, str):
        raise bad(f"prompt[{number}]: a resource has text or blob")
    mime = text(resource.get("mimeType"))
    return _media(media_kind(mime), resource, blob, number, name=uri.rpartition("/")[2])


def _media(kind: MediaKind, block: JsonObject, data: str, number: int, name: str = "") -> Media:
    mime = text(block.get("mimeType"))
    try:
        b64decode(data, validate=True)
    except ValueError as error:
        raise bad(f"prompt[{number}]: data is not base64") from error
    if not data or not mime:
        raise bad(f"prompt[{number}]: data and mimeType are needed")
    return Media(kind=kind, mime=mime, base64=data, name=name)
