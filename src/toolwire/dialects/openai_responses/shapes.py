"""The wire format's name, the shapes of its stream, and words that both directions use."""

from typing import Final, cast

import msgspec
from msgspec import Raw

from toolwire.messages import CallKind
from toolwire.wire.json_access import JsonObject
from toolwire.wire.names import NameRule

NAME: Final = "openai-responses"


NAMES = NameRule(limit=64)


OWN_ID = "tw"
"""Begins every item id that we make up, after its type prefix: such ids are unknown upstream."""


NULL = Raw(b"null")


class StreamEvent(msgspec.Struct, gc=False):
    """Any event; `type` says which members it has. The first are found soonest in this order."""

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


CALLS = {"function_call": CallKind.JSON, "custom_tool_call": CallKind.FREEFORM}


TEXT_TYPES = frozenset({"output_text", "input_text", "text"})


def members(value: object) -> JsonObject:
    """A value from outside that should be an object; anything else has no members."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def member(source: JsonObject, key: str) -> str:
    """A text member of an object; empty for anything else."""
    found = source.get(key)
    return found if isinstance(found, str) else ""
