"""The shapes of the format's stream, and members that our values do not carry."""

from collections.abc import Sequence
from operator import is_
from typing import Final, cast

import msgspec
from msgspec import Raw

from toolwire.dialects.losses import restore
from toolwire.messages import CallKind, Kept
from toolwire.request import Source
from toolwire.wire.json_access import JsonObject, dump
from toolwire.wire.names import NameRule

NAME: Final = "openai-responses"
NAMES = NameRule(limit=64)
ANY_NAME = NameRule(limit=2**31, allowed=r"\s\S", first=r"\s\S")
"""For a request that came in this format: its client chose the names."""

CALLS = {"function_call": CallKind.JSON, "custom_tool_call": CallKind.FREEFORM}
TEXT_TYPES = frozenset({"output_text", "input_text", "text"})
ITEM = "item."
"""Begins a stored member that belongs to the object around a value: an item, a namespace."""
OWN_ID = "tw"
"""Begins every item id that we make up, after its type prefix: such ids are unknown upstream."""

NULL = Raw(b"null")


class StreamEvent(msgspec.Struct, gc=False):
    """Any event; `type` decides which members it has. In the order in which they usually arrive."""

    type: str | None = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    delta: str | None = None
    arguments: str | None = None
    input: str | None = None
    text: Raw = NULL
    refusal: Raw = NULL
    item: Raw = NULL
    part: Raw = NULL
    annotation: Raw = NULL
    response: Raw = NULL
    object: str | None = None


class TokenDetails(msgspec.Struct):
    """The parts of a token count."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class WireUsage(msgspec.Struct):
    """Token counts."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None
    cost: float | None = None


class IncompleteDetails(msgspec.Struct):
    """Why an answer is not whole."""

    reason: str | None = None


class WireResponse(msgspec.Struct):
    """An answer, whole or so far."""

    id: str | None = None
    model: str | None = None
    status: str | None = None
    error: Raw = NULL
    incomplete_details: IncompleteDetails | None = None
    usage: WireUsage | None = None
    output: list[Raw] | None = None


stream_event = msgspec.json.Decoder(StreamEvent)


def member(source: JsonObject, key: str) -> str:
    """A text member of an object; empty for anything else."""
    found = source.get(key)
    return found if isinstance(found, str) else ""


class Span(msgspec.Struct, frozen=True):
    """A wire object and the neighbouring values that were decoded from it."""

    wire: object
    values: tuple[object, ...]


def unchanged_span(source: Source, values: Sequence[object], start: int) -> Span | None:
    """The wire object of the values from `start` on, if all of them are still the same objects."""
    span = source.wire(values[start])
    if not isinstance(span, Span):
        return None
    found = values[start : start + len(span.values)]
    same = len(found) == len(span.values) and all(map(is_, found, span.values))
    return span if same else None


def extra_members(source: JsonObject, written: JsonObject, prefix: str = "") -> Kept | None:
    """The members of `source` that we would not write so; None without any.

    Empty ones, type, role and status mean nothing to other formats.
    """
    extra = {
        prefix + key: value
        for key, value in source.items()
        if not (key in written and written[key] == value) and not _means_nothing(key, value)
    }
    return Kept(dialect=NAME, fields=dump(extra)) if extra else None


def with_extra(body: JsonObject, kept: Kept | None, prefix: str = "") -> JsonObject:
    """`body` with the extra members of this format; ours win."""
    extra = restore({}, kept, NAME)
    if not extra:
        return body
    found = {
        key.removeprefix(prefix): value
        for key, value in extra.items()
        if key.startswith(ITEM) == bool(prefix)
    }
    return {**found, **body}


def joined(first: Kept | None, second: Kept | None) -> Kept | None:
    """The extra members of both."""
    if first is None or second is None:
        return first or second
    both = restore({}, first, NAME) | restore({}, second, NAME)
    return Kept(dialect=NAME, fields=dump(both))


def _means_nothing(key: str, value: object) -> bool:
    if key in ("type", "role", "status") and isinstance(value, str):
        return True
    return value in (None, "", [], {}) and not isinstance(value, bool)


def coerced(event: JsonObject) -> JsonObject:
    """The event with its members converted to the expected types: an object to text, and so on."""
    found: JsonObject = {}
    for key, value in event.items():
        if key in ("delta", "arguments", "input") and isinstance(value, dict | list):
            found[key] = dump(cast(object, value))
        elif key in _TEXTS and not isinstance(value, str | None):
            found[key] = None
        elif key in _NUMBERS and not isinstance(value, int | None):
            found[key] = int(value) if isinstance(value, str) and value.isdecimal() else None
        else:
            found[key] = value
    return found


_TEXTS = frozenset({"delta", "arguments", "input", "item_id", "object"})
_NUMBERS = frozenset({"output_index", "content_index"})
