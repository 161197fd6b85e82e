"""How long a connection may take, and how much an answer may be."""

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

MAX_ANSWER = 256 * 1024 * 1024
"""Bytes of one answer, decompressed."""
MAX_QUIET = 8 * 1024 * 1024
"""Bytes without an event: comments, pings, echoes of the request. A frame that still grows does not
count, it has a limit of its own.
"""
MAX_BLANK = 1024 * 1024
"""Blank bytes before an answer; some servers send them to keep the connection open."""
MAX_ERROR_BODY = 1024 * 1024
MAX_ERROR_SECONDS = 5.0
"""How long the body of an error is waited for; its status alone says enough."""
