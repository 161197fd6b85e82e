"""Splits a growing text of JSON values (an array, or a sequence) into objects."""

import re

import msgspec

_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')


class JsonSplitter:
    """Finds complete objects in `[{…},{…}]` or `{…}{…}`; each byte is scanned once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._pending = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._in_array = False

    @property
    def pending(self) -> int:
        """Bytes of the incomplete object."""
        return self._pending

    @property
    def open(self) -> bool:
        """Whether the text ends inside a value."""
        return self._depth > 0 or self._in_array

    def feed(self, chunk: bytes) -> list[bytes]:
        """The objects that close in this chunk."""
        done: list[bytes] = []
        start = 0 if self._depth else -1
        at = 0
        end = len(chunk)
        while at < end:
            if self._in_string:
                at = self._skip_string(chunk, at)
                continue
            found = _OUTSIDE.search(chunk, at)
            if found is None:
                break
            at = found.end()
            match chunk[found.start()]:
                case 0x22:  # "
                    self._in_string = self._depth > 0
                case 0x7B:  # {
                    if not self._depth:
                        start = found.start()
                    self._depth += 1
                case 0x5B if not self._depth:  # [
                    self._in_array = True
                case 0x5B:
                    self._depth += 1
                case _ if not self._depth:
                    self._in_array = False
                case _:
                    self._depth -= 1
                    if not self._depth:
                        done.append(b"".join([*self._parts, chunk[start:at]]))
                        self._parts.clear()
                        self._pending = 0
                        start = -1
        if start >= 0:
            self._parts.append(chunk[start:])
            self._pending += end - start
        return done

    def _skip_string(self, chunk: bytes, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        found = _INSIDE.search(chunk, at)
        if found is None:
            return len(chunk)
        if chunk[found.start()] == 0x22:
            self._in_string = False
        else:
            self._escaped = True
        return found.end()


_GLUE = re.compile(r"\}\s*\{")


def may_be_glued(text: str) -> bool:
    """Whether the text may contain two objects."""
    # Most texts have no "{" after their first "}", which is cheap to check.
    end = text.find("}")
    return end >= 0 and text.find("{", end) >= 0 and _GLUE.search(text, end) is not None


def is_object(text: str) -> bool:
    """Whether the text is one JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False


def split_objects(text: str) -> list[str]:
    """The objects of `{…}{…}`; empty for any other text."""
    raw = text.encode("utf-8", "surrogatepass")
    objects = [piece.decode("utf-8", "surrogatepass") for piece in JsonSplitter().feed(raw)]
    at = 0
    for piece in objects:
        start = text.index(piece, at)
        if text[at:start].strip():
            return []
        at = start + len(piece)
    if len(objects) < 2 or text[at:].strip():
        return []
    return objects if all(map(is_object, objects)) else []
