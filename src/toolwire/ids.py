"""Generates ids: the only randomness. Passed to pure code, never imported by it."""

import os
from time import time_ns

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyz"
_LETTERS = bytes(_ALPHABET[byte % 36] for byte in range(256))
_LENGTH = 13
_TIME = 11
"""Hexadecimal digits of the milliseconds."""
_ELEVEN_DIGITS = 1 << 44
"""Added to keep the leading zeros of eleven hexadecimal digits."""
_DRAWN_AT_ONCE = 64

_drawn: list[str] = []
if hasattr(os, "register_at_fork"):
    # A forked child would otherwise repeat its parent's ids.
    os.register_at_fork(after_in_child=_drawn.clear)


def new_id(prefix: str = "call_") -> str:
    """Returns a unique id that sorts by time: 11 characters of milliseconds, 13 random."""
    try:
        chance = _drawn.pop()
    except IndexError:
        chance = _draw()
    # String formatting is slower, especially with cold caches.
    return prefix + hex(_ELEVEN_DIGITS + time_ns() // 1_000_000)[3:] + chance


def time_of(made: str, prefix: str) -> float | None:
    """Returns the Unix time at which an id was made; None if it is not one of ours."""
    try:
        return int(made.removeprefix(prefix)[:_TIME], 16) / 1000
    except ValueError:
        return None


def _draw() -> str:
    # One system call serves many ids: an answer may contain hundreds of calls.
    letters = os.urandom(_LENGTH * _DRAWN_AT_ONCE).translate(_LETTERS).decode()
    _drawn.extend(letters[at : at + _LENGTH] for at in range(_LENGTH, len(letters), _LENGTH))
    return letters[:_LENGTH]
