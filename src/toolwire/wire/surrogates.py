"""Half surrogate pairs: servers that count in UTF-16 cut a character between two frames."""

import re
from typing import Any, cast

_HALVES = re.compile(
    rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?<!\\)(?P<even>(?:\\\\)*)(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_LONE = re.compile("[\ud800-\udfff]")
_UNKNOWN = rb"\ufffd"


class PairJoiner:
    """One per response: joins a character whose halves are in two frames.

    JSON decoders refuse such text, so this runs only after one has.
    """

    _first = b""

    def join(self, data: bytes) -> bytes:
        """The frame's JSON with whole characters only; an unpaired half is U+FFFD."""
        first, self._first = self._first, b""

        def whole(found: re.Match[bytes]) -> bytes:
            nonlocal first
            half = found["half"]
            if half is None:
                return found[0]
            if half[3:4] in b"cdefCDEF":
                joined, first = (first + half if first else _UNKNOWN), b""
                return found["even"] + joined
            if data[found.end() : found.end() + 1] == b'"' and not self._first:
                # The last character of its string: the other half is in the next frame.
                self._first = half
                return found["even"]
            return found["even"] + _UNKNOWN

        return _HALVES.sub(whole, data)


def whole_characters(body: bytes) -> bytes:
    """A complete JSON text whose half surrogate pairs, which JSON decoders reject, are U+FFFD."""
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return _HALVES.sub(
        lambda found: found[0] if found["half"] is None else found["even"] + _UNKNOWN, body
    )


def without_halves(value: Any) -> Any:
    """A JSON value whose texts contain only whole characters."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        members = cast(dict[str, Any], value)
        return {without_halves(key): without_halves(inner) for key, inner in members.items()}
    if isinstance(value, list | tuple):
        return [without_halves(inner) for inner in cast(list[Any], value)]
    return value
