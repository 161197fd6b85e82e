"""A call's arguments: strict JSON first, then a repair that says what it changed."""

import re
from typing import Any, cast

import msgspec

from toolwire.request import JsonObject

LARGEST_REPAIR = 1_000_000
"""Characters; longer text is read strictly or not at all."""
LARGEST_GUESS = 50_000
"""Characters that are handed to the guessing repair, whose cost can grow faster than the text."""

_decode = msgspec.json.Decoder().decode
_fence = re.compile(r"\s*```[\w-]*[ \t]*\n?(.*?)\n?\s*(?:```\s*)?", re.DOTALL).fullmatch
_LONGEST_SHOWN = 60
_MOST_TOLD = 8


class Parsed(msgspec.Struct, frozen=True):
    """Arguments as read. Only `exact` ones are what the model wrote."""

    value: JsonObject | None
    """None if no object could be read."""
    changes: tuple[str, ...] = ()
    """What was repaired, in words, with places in the text."""
    error: str = ""
    """Why there is no value, or why the text was no JSON."""
    truncated: bool = False
    """Whether the text stops in the middle; a value is then only its beginning."""

    @property
    def exact(self) -> bool:
        """Whether the text was a JSON object as it stood, or empty."""
        return self.value is not None and not self.changes and not self.error


def parse_arguments(text: str) -> Parsed:
    """Reads a call's arguments; a repair is never passed off as what the model wrote."""
    if not text or text.isspace():
        return Parsed({})
    try:
        value = _decode(text)
    except (msgspec.DecodeError, UnicodeError) as error:
        return _repaired(text, str(error))
    except RecursionError:
        return Parsed(None, error="nested too deeply")
    if isinstance(value, dict):
        return Parsed(cast(JsonObject, value))
    return _not_an_object(value)


def _not_an_object(value: Any) -> Parsed:
    if value is None:
        return Parsed({}, ("read null as no arguments",))
    if isinstance(value, str):
        inner = parse_arguments(value)
        if inner.value is None or not value.strip():
            return Parsed(None, error="arguments are a JSON string, not an object")
        unwrapped = "unwrapped a JSON string that held the object"
        return Parsed(inner.value, (unwrapped, *inner.changes), inner.error, inner.truncated)
    name = "array" if isinstance(value, list) else "number"
    if isinstance(value, bool):
        name = "boolean"
    return Parsed(None, error=f"arguments are a JSON {name}, not an object")


def _repaired(text: str, error: str) -> Parsed:
    if len(text) > LARGEST_REPAIR:
        why = f"{len(text)} characters, and only {LARGEST_REPAIR} are repaired"
        return Parsed(None, error=f"{error}; not repaired: {why}")
    changes: list[str] = []
    offset = 0
    fence = _fence(text)
    if fence is not None:
        changes.append("removed a code fence")
        text, offset = fence[1], fence.start(1)
    start = text.find("{")
    if start < 0 or text.lstrip()[:1] == "[":
        return Parsed(None, error=f"{error}; there is no object in the text")
    if text[:start].strip():
        changes.append(f"removed text before the object: {_shown(text[:start])}")
    return _mended(text[start:], offset + start, changes, error)


def _mended(text: str, offset: int, changes: list[str], error: str) -> Parsed:
    from toolwire.wire.json_mending import CannotMend, Mender  # noqa: PLC0415 - start-up time

    mender = Mender(text, offset)
    try:
        value = _decode(mender.run())
    except (CannotMend, msgspec.DecodeError, UnicodeError, RecursionError):
        return _guessed(text, changes, error)
    rest = text[mender.end :].strip()
    if rest.startswith("{"):
        return Parsed(None, error="several objects are glued together")
    if rest:
        changes.append(f"removed text after the object: {_shown(rest)}")
    if mender.truncated:
        changes.append(f"the text stops in the middle, after {offset + len(text)} characters")
    changes.extend(mender.changes)
    return Parsed(value, tuple(changes), error, mender.truncated)


def _guessed(text: str, changes: list[str], error: str) -> Parsed:
    if len(text) > LARGEST_GUESS:
        why = f"too disordered for {len(text)} characters"
        return Parsed(None, error=f"{error}; not repaired: {why}")
    import json_repair  # noqa: PLC0415 - most runs never repair anything

    try:
        answer = json_repair.loads(text, skip_json_loads=True, logging=True)
        value, log = cast(tuple[Any, list[dict[str, str]]], answer)
        value = _decode(msgspec.json.encode(value))
    except (ValueError, RecursionError, IndexError, TypeError) as failure:
        return Parsed(None, error=f"{error}; not repaired: {failure}")
    if not isinstance(value, dict) or not value:
        return Parsed(None, error=f"{error}; no single object could be made of it")
    found = cast(JsonObject, value)
    told = list(
        dict.fromkeys(f"guessed: {entry['text']} (near {entry['context']!r})" for entry in log)
    )
    changes.append("rewrote text that is out of order; members may be wrong")
    changes.extend(told[:_MOST_TOLD])
    changes.extend(_unlike(found, text)[:_MOST_TOLD])
    cut = text.rstrip()[-1:] not in ("}", "`")
    if cut:
        changes.append(f"the text stops in the middle, after {len(text)} characters")
    return Parsed(found, tuple(changes), error, cut)


def _unlike(value: JsonObject, text: str) -> list[str]:
    """The places whose value does not stand in the text in just these characters."""
    places: list[str] = []
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting and len(places) < _MOST_TOLD:
        path, node = waiting.pop()
        if isinstance(node, dict):
            members = cast(JsonObject, node)
            waiting.extend((f"{path}.{name}".lstrip("."), one) for name, one in members.items())
        elif isinstance(node, list):
            items = cast(list[Any], node)
            waiting.extend((f"{path}[{index}]", one) for index, one in enumerate(items))
        elif not isinstance(node, bool | None) and str(node) not in text:
            places.append(f"value at {path} is not as written: {_shown(str(node))}")
    return places


def _shown(text: str) -> str:
    text = text.strip()
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…")
