"""How long a connection may take."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds; None for ever."""

    connect: float | None = 10.0
    """Name, connection and TLS together. A server that needs longer is down, or not there."""
    read: float | None = 300.0
    """Silence between two bytes, and before the first. Models think for minutes, and some servers
    send the arguments of a call in one late piece.
    """
    total: float | None = None
    """The whole answer. None: a long answer that keeps coming is a good one."""


USUAL = Limits()
