"""Encoding of records: events as JSON, which are stored, and the checksum."""

from collections.abc import Callable
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, Union, cast, get_args
from zlib import crc32

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    AnswersGiven,
    ApprovalOutcome,
    ChildEvent,
    HistoryReplaced,
    MessageAdded,
    RequestBuilt,
    Streaming,
    ToolOutputText,
    ToolStarted,
    TurnEnd,
    TurnEnded,
)
from toolwire.events import StopReason
from toolwire.messages import CallKind, MediaKind, Outcome, Part, Role
from toolwire.tools.spec import Effect
from toolwire.wire.surrogates import without_halves

_NEVER_STORED = (RequestBuilt, Streaming, ToolOutputText, ChildEvent)
"""Events for display only."""
_STORED = tuple(kind for kind in get_args(AgentEvent) if kind not in _NEVER_STORED)


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"cannot store a {type(value).__name__}")


def _path(kind: type[Any], value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise NotImplementedError(f"cannot read a {kind.__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
_decoder: msgspec.json.Decoder[AgentEvent] = msgspec.json.Decoder(
    cast(Any, Union[_STORED]),  # noqa: UP007 - the kinds are known when it runs
    dec_hook=_path,
)
_decode = _decoder.decode


def is_stored(event: AgentEvent) -> bool:
    """Whether the event is stored; display-only events are not."""
    return not isinstance(event, _NEVER_STORED)


def matters(event: AgentEvent) -> bool:
    """Whether the event must be synced to disk before the session continues."""
    if isinstance(event, ToolStarted):
        return event.effect != Effect.READ
    return isinstance(event, MessageAdded | AnswersGiven | TurnEnded | HistoryReplaced)


def kind_of(event: AgentEvent) -> str:
    """The event's tag."""
    return str(event.__struct_config__.tag)


def encode(event: AgentEvent) -> bytes:
    """The event as JSON; lone surrogates, which UTF-8 cannot encode, become U+FFFD."""
    try:
        return _encoder.encode(event)
    except UnicodeEncodeError:
        return _encoder.encode(without_halves(msgspec.to_builtins(event, enc_hook=_plain)))


def decode(body: bytes) -> AgentEvent | None:
    """The decoded event; None for one of a newer version."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def readable(body: bytes) -> bool:
    """Whether the bytes are an event."""
    return decode(body) is not None


def checksum(seq: int, at: float, kind: str, body: bytes) -> int:
    """Checksum over all fields of a record."""
    return crc32(body, crc32(f"{seq} {at!r} {kind} ".encode()))


Redact: TypeAlias = Callable[[bytes], bytes]
"""Replaces every known secret with a placeholder."""


def unredacted(body: bytes) -> bytes:
    """Redactor without secrets."""
    return body


def redacted(body: bytes, redact: Redact) -> bytes:
    """The record without secrets, still decodable."""
    clean = redact(body)
    if clean == body or readable(clean):
        return clean
    # A placeholder broke the structure: redact each text separately instead.
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
    """Tags and field names of records; none of them alone is a secret."""
    enums: tuple[type[StrEnum], ...]
    enums = (ApprovalOutcome, TurnEnd, StopReason, CallKind, MediaKind, Outcome, Effect)
    tagged = (*_STORED, *get_args(Part))
    tags = (str(kind.__struct_config__.tag) for kind in tagged)
    return frozenset((*tags, *get_args(Role), *(word.value for enum in enums for word in enum)))
