"""CPU of a process and all that it started, also of daemons that outlive their parents' waits."""

import os
import threading
from collections.abc import Collection
from pathlib import Path

_EVERY = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")


class TreeCpu:
    """Samples a tree of processes while the block runs; `seconds` is what it used."""

    def __init__(self, root: int, without: Collection[str] = ()) -> None:
        """Programs `without` are not counted, what they started is."""
        self.seconds = 0.0
        self._root = root
        self._without = frozenset(without)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "TreeCpu":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(_EVERY):
            # Of those that ended and were waited for, the parent knows the time.
            self.seconds = max(self.seconds, _used(self._root, self._without))


def _used(root: int, without: frozenset[str]) -> float:
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
