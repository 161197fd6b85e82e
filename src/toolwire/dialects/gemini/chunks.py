"""Response objects read member by member: either spelling, any shape, every value byte for byte."""

from typing import Any, TypeAlias

import msgspec

from toolwire.dialects.gemini.spelling import camel_case

RawMembers: TypeAlias = dict[str, msgspec.Raw]

_members = msgspec.json.Decoder(RawMembers).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_any = msgspec.json.Decoder().decode
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What msgspec raises for bytes that are not the JSON asked for."""


def response_objects(data: bytes) -> list[RawMembers]:
    """The response objects of a frame: one, those of a list, each without its envelope."""
    if data.lstrip()[:1] == b"[":
        return [_bare(members(item)) for item in _items(data)]
    return [_bare(members(data))]


def _bare(found: RawMembers) -> RawMembers:
    if "response" in found and "candidates" not in found:
        return members_or_none(found["response"]) or {}
    return found


def members(raw: bytes | msgspec.Raw) -> RawMembers:
    """The members of an object in camelCase, without those that are null."""
    found = _members(raw)
    return {camel_case(key): value for key, value in found.items() if bytes(value) != b"null"}


def members_or_none(raw: msgspec.Raw | None) -> RawMembers | None:
    """The same, or None if there is no object."""
    if raw is None or bytes(raw)[:1] != b"{":
        return None
    return members(raw)


def items(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The items of a list; an object stands for a list of one, anything else for none."""
    if raw is None:
        return []
    match bytes(raw)[:1]:
        case b"[":
            return _items(raw)
        case b"{" | b'"':
            return [raw]
        case _:
            return []


def value(raw: msgspec.Raw | None) -> Any:
    """The value itself."""
    return None if raw is None else _any(raw)


def words(raw: msgspec.Raw | None) -> str | None:
    """The value if it is a string."""
    found = value(raw)
    return found if isinstance(found, str) else None


def text_of(raw: msgspec.Raw) -> str:
    """The JSON text as it came."""
    return bytes(raw).decode()
