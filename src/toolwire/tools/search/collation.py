"""Collation of names: case and accents last, punctuation before letters."""

import unicodedata
from functools import lru_cache

_SIGNS = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_RANK = {sign: rank for rank, sign in enumerate(" " + _SIGNS)}

Key = tuple[tuple[tuple[int, str], ...], str, tuple[bool, ...]]

# The same weights, one letter each, for names of plain letters only.
_PLAIN = {
    code: chr(_RANK[chr(code)]) if chr(code) in _RANK else chr(code).lower()
    for code in range(0x20, 0x7F)
}


def in_collation_order(names: list[str]) -> list[str]:
    """Many names at once: those of plain letters are weighed in one go."""
    if all(map(_is_plain, names)):
        return sorted(names, key=lambda name: (name.translate(_PLAIN), name.swapcase()))
    return sorted(names, key=collation_key)


def _is_plain(name: str) -> bool:
    return name.isascii() and name.isprintable()


@lru_cache(maxsize=4096)
def collation_key(name: str) -> Key:
    """A sort key close to the Unicode collation order, small letters before capitals."""
    apart = unicodedata.normalize("NFD", name)
    bare = "".join(letter for letter in apart if not unicodedata.combining(letter))
    marks = "".join(letter for letter in apart if unicodedata.combining(letter))
    return tuple(map(_weight, bare)), marks, tuple(letter.isupper() for letter in bare)


def _weight(letter: str) -> tuple[int, str]:
    rank = _RANK.get(letter)
    if rank is not None:
        return rank, ""
    return (100 if letter.isdigit() else 200), letter.casefold()
