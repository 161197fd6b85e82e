"""Cores and memory of this machine, and the engine sizes that fit."""

import os
from pathlib import Path

import msgspec

from toolwire.embedded.catalogue import DEFAULT, SMALL, Weights
from toolwire.embedded.partial import readable
from toolwire.errors import BadInput

_GROUP = Path("/sys/fs/cgroup")
_WORKING = 400_000_000
"""Bytes besides weights and context: buffers of the engine, and the program itself."""
_LEAST_CONTEXT = 2048
_MOST_CONTEXT = 8192
"""A longer context would take minutes to read."""
_COMFORT = 4_000_000_000
"""Free memory below which the small model is the better choice."""


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Usable cores, and free memory in bytes; None if unknown."""

    cores: int
    free: int | None = None


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """Start parameters of the engine."""

    threads: int
    context: int


def machine(group: Path = _GROUP, meminfo: Path = Path("/proc/meminfo")) -> Machine:
    """This machine, as far as the process may use it."""
    known = {value for value in (_available(meminfo), _group_memory(group)) if value is not None}
    return Machine(cores=_cores(group), free=min(known, default=None))


def fitting(machine: Machine) -> Weights:
    """The model that suits the machine."""
    return SMALL if machine.free is not None and machine.free < _COMFORT else DEFAULT


def sizes(weights: Weights, machine: Machine) -> Sizes:
    """Threads and context; raises if the model does not fit."""
    # Beyond four, half of the counted cores are mostly hyper-threads or slow cores, which make
    # generation slower.
    threads = machine.cores if machine.cores <= 4 else min(machine.cores // 2, 8)
    context = min(_MOST_CONTEXT, weights.context)
    if machine.free is not None:
        room = machine.free - weights.size - _WORKING
        context = min(context, max(room, 0) // weights.cache_per_token)
        if context < _LEAST_CONTEXT:
            needed = weights.size + _WORKING + _LEAST_CONTEXT * weights.cache_per_token
            smaller = "" if weights == SMALL else f"; local/{SMALL.model} needs less"
            raise BadInput(
                f"{weights.title} needs {readable(needed)} of memory, but only "
                f"{readable(machine.free)} is free{smaller}"
            )
    return Sizes(threads=max(threads, 1), context=context // 256 * 256)


def _cores(group: Path) -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    words = _words(group / "cpu.max")
    if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
        count = min(count, max(round(int(words[0]) / int(words[1])), 1))
    return count


def _available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return _half_of_all()
    found = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return next((int(kilobytes) * 1024 for kilobytes in found), None)


def _half_of_all() -> int | None:
    """Half of the physical memory, where free memory is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return None


def _group_memory(group: Path) -> int | None:
    most, used = _words(group / "memory.max"), _words(group / "memory.current")
    if most and used and most[0].isdigit() and used[0].isdigit():
        return max(int(most[0]) - int(used[0]), 0)
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
