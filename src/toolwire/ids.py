"""New ids: the only randomness. Handed to pure code, never imported by it."""

import os
import time

_ALPHABET = b"0123456789abcdefghijklmnopqrstuvwxyz"
_LETTERS = bytes(_ALPHABET[byte % 36] for byte in range(256))


def new_id(prefix: str = "call_") -> str:
    """A unique id that sorts by time: 11 characters of milliseconds, 13 of chance."""
    chance = os.urandom(13).translate(_LETTERS).decode()
    return f"{prefix}{time.time_ns() // 1_000_000:011x}{chance}"
