"""Members our values do not carry: stored on the value, restored for their own format."""

from typing import TypeAlias

from toolwire.messages import Kept, Seal
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, parse_object

NESTED = "/"
"""Prefix of a member that belongs in the one object nested in the value's own, as chat nests
`function` and `image_url`; losses name the member without it.
"""

_Values: TypeAlias = type | frozenset[str]
_DETAIL: dict[str, _Values] = {"detail": frozenset({"auto", "low", "high", "original"})}
_SETTINGS: dict[str, _Values] = {
    "metadata": dict,
    "prompt_cache_key": str,
    "safety_identifier": str,
    "service_tier": frozenset({"auto", "default", "flex", "scale", "priority", "fast"}),
    "store": bool,
    "user": str,
    "verbosity": frozenset({"low", "medium", "high"}),
}
_SHARED = {
    ("openai-chat", "openai-responses"): _DETAIL | _SETTINGS,
    # Many servers of the chat format reject settings that only OpenAI knows.
    ("openai-responses", "openai-chat"): _DETAIL,
}
"""Members that two formats of one vendor spell alike, by source and target."""


def keep(dialect: str, source: JsonObject, known: frozenset[str]) -> Kept | None:
    """The members of `source` that are not `known`; None without any."""
    rest = {key: value for key, value in source.items() if key not in known}
    return Kept(dialect=dialect, fields=dump(rest)) if rest else None


def restore(target: JsonObject, kept: Kept | None, dialect: str) -> JsonObject:
    """`target` with the stored members of its dialect added; members of `target` win."""
    if kept is None or kept.dialect != dialect or kept.fields == "{}":
        return target
    return {**parse_object(kept.fields, "kept members"), **target}


def kept_member(kept: Kept | None, dialect: str, key: str) -> object:
    """One stored member of this dialect, or None."""
    if kept is None or kept.dialect != dialect or kept.fields == "{}":
        return None
    return parse_object(kept.fields, "kept members").get(key)


def shared(kept: Kept | None, dialect: str) -> JsonObject:
    """Stored members of the vendor's other format that this one takes unchanged."""
    if kept is None or (kept.dialect, dialect) not in _SHARED or kept.fields == "{}":
        return {}
    members = parse_object(kept.fields, "kept members")
    return {
        key.removeprefix(NESTED): value
        for key, value in members.items()
        if is_shared(kept, dialect, key, value)
    }


def is_shared(kept: Kept, dialect: str, key: str, value: object) -> bool:
    """Whether the vendor's other format takes this member unchanged."""
    taken = _SHARED.get((kept.dialect, dialect), {}).get(key.removeprefix(NESTED))
    if isinstance(taken, frozenset):
        return isinstance(value, str) and value in taken
    return taken is not None and isinstance(value, taken)


def own_seal(seal: Seal | None, dialect: str) -> JsonObject:
    """The wire members of a seal that this dialect made; empty for any other."""
    if seal is None or seal.origin.dialect != dialect:
        return {}
    return parse_object(seal.data, "seal")
