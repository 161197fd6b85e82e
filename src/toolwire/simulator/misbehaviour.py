"""How an answer can go wrong on purpose: statuses, delays, cuts, noise, silence."""

from typing import Literal

import msgspec


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is wrong with an answer; nothing by default."""

    status: int = 200
    """Any other status answers with an error in the dialect's own shape."""
    message: str = ""
    """The words of that error."""
    retry_after: str = ""
    """The header of that name: seconds, or a date."""
    wait_first: float = 0.0
    """Seconds before the first byte."""
    wait_each: float = 0.0
    """Seconds between events."""
    cut_events: int | None = None
    """The answer stops after so many events."""
    cut_bytes: int | None = None
    """The answer stops after so many bytes, wherever that is."""
    cut_how: Literal["connection", "body"] = "connection"
    """The connection breaks, or the body ends as if it were whole."""
    noise_after: int | None = None
    """After so many events, bytes that belong to no format."""
    noise: bytes = b'data: {"broken": \xff\xfe\n\n'
    error_after: int | None = None
    """After so many events, an error in the middle of the stream."""
    hang_after: int | None = None
    """After so many events silence, until the client leaves."""
    endless: bool = False
    """The first words again and again, until the client leaves."""

    @property
    def is_error(self) -> bool:
        """Whether the answer is an error status instead of words."""
        return self.status >= 400


NO_FAULT = Fault()
EVERY = 0.005
"""Seconds between the events of an endless stream, unless the script says otherwise."""


def refused(status: int, message: str = "", *, retry_after: str = "") -> Fault:
    """An error status, in the dialect's own shape."""
    return Fault(status=status, message=message, retry_after=retry_after)
