"""New ids: the only randomness. Handed to pure code, never imported by it."""

import os
from time import time_ns

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyz"
_LETTERS = bytes(_ALPHABET[byte % 36] for byte in range(256))
_LENGTH = 13
_ELEVEN_DIGITS = 1 << 44
"""Added, it keeps the zeros before a number of eleven hexadecimal digits."""
_DRAWN_AT_ONCE = 64

_drawn: list[str] = []
if hasattr(os, "register_at_fork"):
    # A forked child would else hand out what its parent hands out.
    os.register_at_fork(after_in_child=_drawn.clear)


def new_id(prefix: str = "call_") -> str:
    """A unique id that sorts by time: 11 characters of milliseconds, 13 of chance."""
    try:
        chance = _drawn.pop()
    except IndexError:
        chance = _draw()
    # Any kind of formatting takes longer, most of all when the caches are cold.
    return prefix + hex(_ELEVEN_DIGITS + time_ns() // 1_000_000)[3:] + chance


def _draw() -> str:
    # One call to the system serves many ids: answers of hundreds of calls need as many.
    letters = os.urandom(_LENGTH * _DRAWN_AT_ONCE).translate(_LETTERS).decode()
    _drawn.extend(letters[at : at + _LENGTH] for at in range(_LENGTH, len(letters), _LENGTH))
    return letters[:_LENGTH]
