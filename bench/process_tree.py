"""CPU of a process and all that it started, also of daemons that outlive their parents' waits."""

import os
from collections.abc import Collection
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree_cpu(root: int, without: Collection[str] = ()) -> float:
    """Seconds of CPU of a tree of processes; programs `without` do not count, their children do.

    Of those that ended and were waited for, the parent knows the time.
    """
    parents: dict[int, int] = {}
    times: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        name = stat[stat.index("(") + 1 : stat.rindex(")")]
        fields = stat[stat.rindex(")") + 2 :].split()
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        times[pid] = 0 if name in without else sum(map(int, fields[11:15]))
    inside = {root}
    grown = True
    while grown:
        found = {pid for pid, parent in parents.items() if parent in inside}
        grown = not found <= inside
        inside |= found
    return sum(times.get(pid, 0) for pid in inside) / _TICKS
