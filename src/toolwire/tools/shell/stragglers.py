"""Ends what lives of a command when its watchdog cannot."""

import signal
from pathlib import Path

import msgspec

from toolwire.tools.shell import cgroups
from toolwire.tools.shell.process_table import (
    Process,
    kill_below,
    newest_first,
    newest_orphans,
    number_of,
    signal_each,
)

MARK = "TOOLWIRE_COMMAND"
"""A variable in the environment of every command."""
_ORPHAN_ROUNDS = 200


class Traces(msgspec.Struct, frozen=True, kw_only=True):
    """By what processes of one command are recognised."""

    watchdog: int
    """Their ancestor; zero if it is dead."""
    leader: int
    """Of their session or process group; zero where it has another number than with us."""
    number: int
    """A limit that they inherit."""
    mark: str
    """A variable of theirs."""
    group: str
    """The control group that they are in; empty if there is none."""


def kill_stragglers(traces: Traces) -> bool:
    """Kill all that are found, the watchdog too if it is in their group; True if there were any."""
    cgroups.kill(traces.group)
    found = kill_below(traces.watchdog) if traces.watchdog else False
    for _ in range(_ORPHAN_ROUNDS):
        orphans = [pid for pid in newest_orphans() if _stopped(pid, traces.number)]
        signal_each(orphans, signal.SIGKILL)
        if not orphans:
            break
        found = True
    for process in newest_first():
        if process.state != "Z" and _is_one(process, traces):
            # At once: what forks all the time has another number a moment later.
            signal_each((process.pid,), signal.SIGSTOP, signal.SIGKILL)
            found = True
    return found


def _stopped(pid: int, number: int) -> bool:
    """Stop a process if it carries the number."""
    if not number or number_of(pid) != number:
        return False
    signal_each((pid,), signal.SIGSTOP)
    return True


def _is_one(process: Process, traces: Traces) -> bool:
    if process.pid == traces.watchdog:
        return False
    led = traces.leader and traces.leader in (process.session, process.group)
    return bool(
        led or number_of(process.pid) == traces.number or _carries(process.pid, traces.mark)
    )


def _carries(pid: int, mark: str) -> bool:
    try:
        return f"{MARK}={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
