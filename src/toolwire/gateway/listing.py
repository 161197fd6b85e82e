"""Lists of models in the shapes of three vendors."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias
from urllib.parse import parse_qs

import msgspec

from toolwire.providers._spec import ModelFacts
from toolwire.request import JsonObject
from toolwire.wire.http1 import RequestHead

Shape: TypeAlias = Literal["openai", "anthropic", "gemini"]
PICKER_PREFIX = "claude-via/"
"""Claude Code's picker shows only names that begin with `claude` or `anthropic`."""
_PICKED = ("claude", "anthropic")
_SINCE = "2025-01-01T00:00:00Z"
_METHODS = ["generateContent", "streamGenerateContent", "countTokens"]
_PAGE = 1000


class ListedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One name that a client may use."""

    id: str
    owner: str
    model: str = ""
    """`provider/model` behind it, by which keys are limited."""
    facts: ModelFacts = ModelFacts()


def without_picker_prefix(name: str) -> str:
    """The name of a route as the settings have it."""
    return name.removeprefix(PICKER_PREFIX)


def shape_of(head: RequestHead) -> Shape:
    """The shape that the caller reads."""
    path = head.target.partition("?")[0]
    if "/v1beta" in path or head.field("x-goog-api-key"):
        return "gemini"
    return "anthropic" if head.field("anthropic-version") else "openai"


def for_shape(entries: Iterable[ListedModel], shape: Shape) -> list[ListedModel]:
    """The entries as this kind of client can use them, each name once."""
    found: dict[str, ListedModel] = {}
    for entry in entries:
        found.setdefault(entry.id, entry)
    if shape == "anthropic":
        for entry in tuple(found.values()):
            if not entry.id.startswith(_PICKED):
                name = f"{PICKER_PREFIX}{entry.id}"
                found.setdefault(name, msgspec.structs.replace(entry, id=name))
    return list(found.values())


def listed(entries: Sequence[ListedModel], shape: Shape, query: str) -> JsonObject:
    """The answer to a request for the list."""
    asked = {name: values[-1] for name, values in parse_qs(query).items()}
    if shape == "openai":
        return {"object": "list", "data": [_openai(entry) for entry in entries]}
    if shape == "gemini":
        start = _whole(asked.get("pageToken", ""), 0)
        page = entries[start : start + max(1, _whole(asked.get("pageSize", ""), _PAGE))]
        rest = start + len(page)
        more: JsonObject = {"nextPageToken": str(rest)} if rest < len(entries) else {}
        return {"models": [_gemini(entry) for entry in page], **more}
    return _anthropic_page(entries, asked)


def described(entry: ListedModel, shape: Shape) -> JsonObject:
    """The answer to a request for one model."""
    return {"openai": _openai, "gemini": _gemini, "anthropic": _anthropic}[shape](entry)


def _anthropic_page(entries: Sequence[ListedModel], asked: dict[str, str]) -> JsonObject:
    names = [entry.id for entry in entries]
    size = min(max(1, _whole(asked.get("limit", ""), 20)), _PAGE)
    if "limit" not in asked:
        # Claude Code's picker does not turn pages.
        size = _PAGE
    start, stop = 0, len(entries)
    if asked.get("after_id") in names:
        start = names.index(asked["after_id"]) + 1
    if asked.get("before_id") in names:
        stop = names.index(asked["before_id"])
        start = max(start, stop - size)
    page = entries[start : min(stop, start + size)]
    return {
        "data": [_anthropic(entry) for entry in page],
        "has_more": start + len(page) < stop,
        "first_id": page[0].id if page else None,
        "last_id": page[-1].id if page else None,
    }


def _openai(entry: ListedModel) -> JsonObject:
    sizes = {"context_length": entry.facts.context, "max_output_tokens": entry.facts.output}
    known = {name: size for name, size in sizes.items() if size}
    return {"id": entry.id, "object": "model", "created": 0, "owned_by": entry.owner, **known}


def _anthropic(entry: ListedModel) -> JsonObject:
    shown = entry.id.removeprefix(PICKER_PREFIX)
    return {"type": "model", "id": entry.id, "display_name": shown, "created_at": _SINCE}


def _gemini(entry: ListedModel) -> JsonObject:
    sizes = {"inputTokenLimit": entry.facts.context, "outputTokenLimit": entry.facts.output}
    return {
        "name": f"models/{entry.id}",
        "displayName": entry.id,
        **{name: size for name, size in sizes.items() if size},
        "supportedGenerationMethods": _METHODS,
    }


def _whole(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
