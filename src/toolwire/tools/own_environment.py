"""Takes secrets out of the part of our memory that `/proc/<pid>/environ` shows to others."""

import os
import sys
from functools import cache
from pathlib import Path

from toolwire.tools.environment import clean_environment

_NOT_DUMPABLE = 4
_ENVIRONMENT_START, _ENVIRONMENT_END = 50, 51
"""Fields of `/proc/self/stat`, counting from 1."""
_MARKS = ("TOOLWIRE_COMMAND",)


@cache
def hide_environment() -> None:
    """Blank every variable that children do not get; `os.environ` and `getenv` keep them all.

    Other processes of the user also lose the right to read our memory. Once a process.
    """
    if sys.platform != "linux":
        return
    try:
        import ctypes  # noqa: PLC0415 - not every Python has it

        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = (int(fields[at - 3]) for at in (_ENVIRONMENT_START, _ENVIRONMENT_END))
        block = ctypes.string_at(start, end - start) if 0 < start < end else b""
        shown = {*clean_environment(os.environ, ()), *_MARKS}
        # The C library still points into the block; this gives it copies of its own.
        for name, value in os.environ.items():
            os.putenv(name, value)
        at = start
        for entry in block.split(b"\0"):
            name, _, value = entry.partition(b"=")
            if value and os.fsdecode(name) not in shown:
                ctypes.memset(at + len(name) + 1, 0, len(value))
            at += len(entry) + 1
        ctypes.CDLL(None).prctl(_NOT_DUMPABLE, 0, 0, 0, 0)
    except (ImportError, OSError, ValueError, IndexError, AttributeError):
        return  # a system that keeps its environment elsewhere
