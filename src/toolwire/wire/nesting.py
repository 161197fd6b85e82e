"""How deep received JSON is nested, without decoding it."""

import re
from itertools import accumulate

_BRACKETS = bytes.maketrans(b"{}", b"[]")
_OTHER = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS = bytes.maketrans(b"[]", b"\x01\xff")
_STRING = re.compile(rb'"[^"]*"')
_PEELED = 16
"""Levels that are removed at once in all branches; usual requests have no more."""


def is_deeper(body: bytes, limit: int) -> bool:
    """Whether arrays and objects of a JSON text are nested deeper than `limit` levels."""
    if not _has_more(body, limit):
        return False
    rest = _brackets(body)
    for _ in range(min(_PEELED, limit)):
        peeled = rest.replace(b"[]", b"")
        if len(peeled) == len(rest):
            break
        rest = peeled
        limit -= 1
    steps = memoryview(rest.translate(_STEPS)).cast("b")
    return max(accumulate(steps), default=0) > limit


def _has_more(body: bytes, limit: int) -> bool:
    """Whether there are more opening brackets, in strings too; `find` is faster than `count`."""
    seen = 0
    for bracket in (b"[", b"{"):
        at = body.find(bracket)
        while at >= 0:
            seen += 1
            if seen > limit:
                return True
            at = body.find(bracket, at + 1)
    return False


def _brackets(body: bytes) -> bytes:
    """The brackets outside strings, all of one kind."""
    if b'\\\\"' in body:
        body = body.replace(b"\\\\", b"")
    marks = body.replace(b'\\"', b"").translate(_BRACKETS, _OTHER)
    # Of two quotes side by side both go: an empty string, or two strings that become one.
    marks = marks.replace(b'""', b"")
    return _STRING.sub(b"", marks) if b'"' in marks else marks
