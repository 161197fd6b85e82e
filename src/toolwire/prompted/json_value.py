"""Where one JSON object or array ends in text that is still arriving."""

import re
from typing import Any, cast

from toolwire.wire.partial_json import PartialJson

_OUTSIDE = re.compile(r'["{}\[\]]').search
_INSIDE = re.compile(r'["\\]').search


class JsonValue:
    """Takes text from its first bracket on; each character is looked at once."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._view = PartialJson()

    @property
    def text(self) -> str:
        """All that was taken, as it was written."""
        return "".join(self._parts)

    @property
    def broken(self) -> bool:
        """Whether the text can no longer become JSON."""
        return self._view.broken

    @property
    def first_key(self) -> str | None:
        """The first member's name, of the first object in an array; None while it is unknown."""
        value: Any = self._view.value
        if isinstance(value, list):
            items = cast(list[Any], value)
            value = items[0] if items else None
        return next(iter(cast(dict[str, Any], value)), None) if isinstance(value, dict) else None

    def feed(self, text: str, at: int = 0) -> int:
        """The index just after the value's end, or -1 when it goes on."""
        end = self._find_end(text, at)
        piece = text[at:] if end < 0 else text[at:end]
        self._parts.append(piece)
        self._view.feed(piece)
        return end

    def _find_end(self, text: str, at: int) -> int:
        while at < len(text):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            found = _INSIDE(text, at) if self._in_string else _OUTSIDE(text, at)
            if found is None:
                return -1
            at = found.end()
            match found[0]:
                case '"':
                    self._in_string = not self._in_string
                case "\\":
                    self._escaped = True
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth <= 0:
                        return at
        return -1
