"""New ids: the only randomness. Handed to pure code, never imported by it."""

import os
import time

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz"


def new_id(prefix: str = "call_") -> str:
    """A unique id that sorts by time: 9 characters of milliseconds, 15 of chance."""
    moment = _base36(time.time_ns() // 1_000_000, 9)
    return f"{prefix}{moment}{_base36(int.from_bytes(os.urandom(12)), 15)}"


def _base36(number: int, width: int) -> str:
    digits: list[str] = []
    for _ in range(width):
        number, digit = divmod(number, 36)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
