"""The first place where two bodies differ, for people."""

from typing import Any, cast

import msgspec

from toolwire.wire.json_access import dump

_SHOWN = 60


def first_difference(recorded: bytes, now: bytes) -> str:
    """Where a body departs from a recorded one: the JSON path if both are JSON, else the byte."""
    try:
        place = _json(msgspec.json.decode(recorded), msgspec.json.decode(now), "body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        place = None
    if place is not None:
        return place
    pairs = enumerate(zip(recorded, now, strict=False))
    shorter = min(len(recorded), len(now))
    at = next((place for place, (one, other) in pairs if one != other), shorter)
    one, other = recorded[at : at + _SHOWN], now[at : at + _SHOWN]
    return f"body at byte {at}: {one!r}, now {other!r}"


def _json(recorded: object, now: object, path: str) -> str | None:
    if isinstance(recorded, dict) and isinstance(now, dict):
        old, new = cast(dict[str, Any], recorded), cast(dict[str, Any], now)
        return _members(old, new, path)
    if isinstance(recorded, list) and isinstance(now, list):
        old, new = cast(list[Any], recorded), cast(list[Any], now)
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            if found := _json(one, other, f"{path}[{number}]"):
                return found
        return None if len(old) == len(new) else f"{path} has {len(old)} items, now {len(new)}"
    if type(cast(object, recorded)) is type(now) and recorded == now:
        return None
    if isinstance(recorded, str) and isinstance(now, str):
        return _texts(recorded, now, path)
    return f"{path} is {_short(cast(object, recorded))}, now {_short(now)}"


def _members(recorded: dict[str, Any], now: dict[str, Any], path: str) -> str | None:
    for name in (*recorded, *(name for name in now if name not in recorded)):
        place = f"{path}.{name}"
        if name not in now:
            return f"{place} is {_short(recorded[name])}, now missing"
        if name not in recorded:
            return f"{place} is missing, now {_short(now[name])}"
        if found := _json(recorded[name], now[name], place):
            return found
    return None


def _texts(recorded: str, now: str, path: str) -> str:
    pairs = enumerate(zip(recorded, now, strict=False))
    shorter = min(len(recorded), len(now))
    at = next((place for place, (one, other) in pairs if one != other), shorter)
    start = max(0, at - 10)
    return f"{path} at character {at} is {_short(recorded[start:])}, now {_short(now[start:])}"


def _short(value: object) -> str:
    text = dump(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
