"""The order in which people expect names: case and accents last, signs before letters."""

import unicodedata
from functools import lru_cache

_SIGNS = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$"
_RANK = {sign: rank for rank, sign in enumerate(" " + _SIGNS)}

Key = tuple[tuple[tuple[int, str], ...], str, tuple[bool, ...]]


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
