"""A request under check, what is found, and shared ways to look at it."""

import re
from collections.abc import Iterator
from typing import Any, TypeGuard

import msgspec

from toolwire.acceptance.limits import NO_DEMANDS, NO_FACTS, Demands, Facts
from toolwire.request import JsonObject
from toolwire.wire.json_access import is_list, is_object, objects_in

_BASE64 = re.compile(r"[A-Za-z0-9+/\s]*={0,2}\s*")
_DATA_URL = re.compile(r"data:[^,]*;base64,", re.IGNORECASE)


class Violation(msgspec.Struct, frozen=True):
    """One thing in a request that its vendor rejects, in the vendor's words."""

    path: str
    message: str
    code: str = ""
    param: str = ""
    status: int = 400


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One request as sent, not decoded by us."""

    body: JsonObject
    model: str
    facts: Facts = NO_FACTS
    demands: Demands = NO_DEMANDS
    in_address: bool = False


def member(value: object, *names: str) -> Any:
    """Returns a nested member; None if absent."""
    for name in names:
        if not is_object(value):
            return None
        value = value.get(name)
    return value


def numbered(value: object) -> Iterator[tuple[int, JsonObject]]:
    """Yields the objects of a list with their indices."""
    return enumerate(objects_in(value))


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether the value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_base64(value: object) -> bool:
    """Whether the value is base64 in the standard alphabet; the URL-safe one is not."""
    return isinstance(value, str) and _BASE64.fullmatch(value) is not None


def is_data_url(value: str) -> bool:
    """Whether a data URL contains standard base64; true of any other address."""
    found = _DATA_URL.match(value)
    return found is None or is_base64(value[found.end() :])


def texts(value: Any) -> Iterator[str]:
    """Yields every string in a JSON value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif is_object(item):
            waiting.extend(item.values())
        elif is_list(item):
            waiting.extend(item)


def outside(
    config: JsonObject, bounds: dict[str, tuple[float, float]]
) -> Iterator[tuple[str, Any, float]]:
    """Yields the members outside their bounds: name, value, and the bound they exceed."""
    for name, (low, high) in bounds.items():
        value = config.get(name)
        if is_number(value) and not low <= value <= high:
            yield name, value, low if value < low else high
