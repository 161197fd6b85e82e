"""Two calls in one text: `{…}{…}`, from servers that give parallel calls one index."""

import re

import msgspec

from toolwire.wire.json_stream import JsonSplitter

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
