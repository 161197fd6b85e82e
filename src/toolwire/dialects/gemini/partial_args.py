"""Arguments that stream in pieces: each names its place by a JSON path."""

import re
from itertools import pairwise
from typing import Any, cast

from toolwire.errors import MalformedStream
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

_STEP = re.compile(
    r"""\.?(?P<name>[^.\[\]'"]+)|\[(?P<index>\d+)\]|\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]"""
)
_MOST_ITEMS = 100_000
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArgs:
    """Builds the argument object; `text` is its JSON."""

    def __init__(self) -> None:
        self._root: JsonObject = {}
        self._growing: tuple[str, list[str]] | None = None

    @property
    def text(self) -> str:
        """What has come so far, as JSON."""
        self._settle()
        return dump(self._root)

    def merge(self, args: JsonObject) -> None:
        """Members that came whole."""
        self._root.update(args)

    def add(self, piece: JsonObject) -> None:
        """One piece: a value, or more of the string that is still growing."""
        path = piece.get("jsonPath")
        name = next((name for name in _VALUES if name in piece), None)
        if not isinstance(path, str) or name is None:
            return
        value = None if name == "nullValue" else piece[name]
        growing = self._growing
        if isinstance(value, str):
            if growing is not None and growing[0] == path:
                growing[1].append(value)
            else:
                self._settle()
                growing = self._growing = (path, [value])
            if piece.get("willContinue") is not True:
                self._settle()
            return
        self._settle()
        self._put(path, value)

    def _settle(self) -> None:
        if self._growing is not None:
            path, pieces = self._growing
            self._growing = None
            self._put(path, "".join(pieces))

    def _put(self, path: str, value: Any) -> None:
        steps = _steps(path)
        place: Any = self._root
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            place = _child(place, step, empty)
        _set(place, steps[-1], value)


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for found in _STEP.finditer(path.removeprefix("$")):
        index = found["index"]
        steps.append(int(index[:9]) if index else found["name"] or found["quoted"] or "")
    if not steps or isinstance(steps[0], int):
        return [path]
    return steps


def _child(place: Any, step: str | int, empty: Any) -> Any:
    found = _get(place, step)
    if not isinstance(found, type(empty)):
        _set(place, step, empty)
        return empty
    return found


def _get(place: Any, step: str | int) -> Any:
    if isinstance(place, list):
        items = cast(list[Any], place)
        return items[step] if isinstance(step, int) and step < len(items) else None
    return place.get(str(step))


def _set(place: Any, step: str | int, value: Any) -> None:
    if isinstance(place, dict):
        place[str(step)] = value
        return
    items = cast(list[Any], place)
    if not isinstance(step, int) or step > _MOST_ITEMS:
        raise MalformedStream(f"streamed arguments name the item {step} of a list")
    items.extend([None] * (step + 1 - len(items)))
    items[step] = value
