"""Known secrets taken out of a record before it is written."""

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias, cast, get_args

import msgspec

from toolwire.agent.events import Decision, TurnEnd
from toolwire.events import StopReason
from toolwire.messages import CallKind, MediaKind, Outcome, Part, Role
from toolwire.sessions.records import KeptEvent, readable
from toolwire.tools.spec import Effect

Redact: TypeAlias = Callable[[bytes], bytes]
"""Puts a mark in the place of every secret it knows."""


def unredacted(body: bytes) -> bytes:
    """Where no secret is known."""
    return body


def redacted(body: bytes, redact: Redact) -> bytes:
    """The record without secrets, and still a record."""
    clean = redact(body)
    if clean == body or readable(clean):
        return clean
    # A mark stands where the form needs a word or a number: texts are cleaned one by one instead.
    return msgspec.json.encode(_each_text(msgspec.json.decode(body), redact))


def _each_text(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return value if value in _words() else redact(value.encode()).decode("utf-8", "replace")
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return {key: _each_text(inner, redact) for key, inner in members.items()}
    if isinstance(value, list):
        return [_each_text(inner, redact) for inner in cast(list[Any], value)]
    return value


@cache
def _words() -> frozenset[str]:
    """The words a record's form is made of; none of them alone is a secret."""
    enums: tuple[type[StrEnum], ...]
    enums = (Decision, TurnEnd, StopReason, CallKind, MediaKind, Outcome, Effect)
    tagged = (*get_args(KeptEvent), *get_args(Part))
    tags = (str(kind.__struct_config__.tag) for kind in tagged)
    return frozenset((*tags, *get_args(Role), *(word.value for enum in enums for word in enum)))
