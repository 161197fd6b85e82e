"""Arguments that stream in pieces: each has a JSON path."""

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
        """The arguments so far, as JSON."""
        self._finish_string()
        return dump(self._root)

    def merge(self, args: JsonObject) -> None:
        """Add whole members."""
        self._root.update(args)

    def add(self, piece: JsonObject) -> None:
        """Add one piece: a value, or more of an unfinished string."""
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
                self._finish_string()
                growing = self._growing = (path, [value])
            if piece.get("willContinue") is not True:
                self._finish_string()
            return
        self._finish_string()
        self._put(path, value)

    def _finish_string(self) -> None:
        if self._growing is not None:
            path, pieces = self._growing
            self._growing = None
            self._put(path, "".join(pieces))

    def _put(self, path: str, value: Any) -> None:
        steps = _steps(path)
        holder: Any = self._root
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            holder = _child(holder, step, empty)
        _set(holder, steps[-1], value)


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for found in _STEP.finditer(path.removeprefix("$")):
        index = found["index"]
        steps.append(int(index[:9]) if index else found["name"] or found["quoted"] or "")
    if not steps or isinstance(steps[0], int):
        return [path]
    return steps


def _child(holder: Any, step: str | int, empty: Any) -> Any:
    found = _get(holder, step)
    if not isinstance(found, type(empty)):
        _set(holder, step, empty)
        return empty
    return found


def _get(holder: Any, step: str | int) -> Any:
    if isinstance(holder, list):
        items = cast(list[Any], holder)
        return items[step] if isinstance(step, int) and step < len(items) else None
    return holder.get(str(step))


def _set(holder: Any, step: str | int, value: Any) -> None:
    if isinstance(holder, dict):
        holder[str(step)] = value
        return
    items = cast(list[Any], holder)
    if not isinstance(step, int) or step > _MOST_ITEMS:
        raise MalformedStream(f"streamed arguments name the item {step} of a list")
    items.extend([None] * (step + 1 - len(items)))
    items[step] = value
