"""Time limits of a command, and how it ended."""

import msgspec


class ProcessLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits of a command in seconds; zero means no limit."""

    wall: float = 0.0
    idle: float = 0.0
    """Without any output."""
    live: float = 1.0
    """Between two pieces of live output."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a shell ended, and what it left running."""

    exit_code: int | None = None
    signal: int | None = None
    background: tuple[int, ...] = ()
    problem: str = ""
    """Why it was stopped; empty if it exited on its own."""
    unstarted: str = ""
    """Name of the system's error if it never started."""


def over(limits: ProcessLimits, wall: float, idle: float) -> str:
    """The limit that a command has reached, as a message; empty if none."""
    if limits.wall and wall >= limits.wall:
        return f"stopped after {limits.wall:g} seconds, the time limit of a command"
    if limits.idle and idle >= limits.idle:
        return f"stopped after {limits.idle:g} seconds without output"
    return ""


def nap(limits: ProcessLimits, wall: float, idle: float) -> float:
    """Seconds until the next limit may be reached."""
    rests = [limits.live]
    if limits.wall:
        rests.append(limits.wall - wall)
    if limits.idle:
        rests.append(limits.idle - idle)
    return max(0.001, min(rests))
