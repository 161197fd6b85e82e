"""What a text format of calls is: how it begins, how it is read, how it closes."""

from collections.abc import Callable
from typing import Literal

import msgspec

from toolwire.prompted.leaked.cursor import Cursor, Steps


class Format(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which models print calls."""

    name: str
    models: str
    """Whose models write it."""
    openers: tuple[str, ...]
    """Text with which a call begins; the reader starts there."""
    read: Callable[[Cursor], Steps[None]]
    closers: tuple[str, ...] = ()
    """Where a broken call is over; with none, the rest of the text belongs to it."""
    where: Literal["anywhere", "start", "fence"] = "anywhere"
    """At the text's very beginning, or at a line that opens a code fence; one-character openers
    for the former.
    """
    quiet: bool = False
    """Ordinary text begins alike, so that a mismatch is not worth a notice."""
