"""Commands that run on in the background of a session."""

import asyncio

from toolwire.tools.shell.processes import Shell
from toolwire.tools.shell.spool import Spool

_REMEMBERED = 16


class Shells:
    """Commands that run on in the background, by the number of their process group."""

    def __init__(self) -> None:
        self._shells: dict[int, tuple[Shell, Spool]] = {}

    def keep(self, shell: Shell, later: Spool) -> None:
        """Remember a shell that left something running, and read on for it."""
        shell.keep_reading(later)
        self._shells[shell.pid] = (shell, later)
        ended = [pid for pid, (shell, _) in self._shells.items() if not shell.running]
        for pid in ended[:-_REMEMBERED]:
            self._shells.pop(pid)[1].close()

    def running(self) -> dict[int, tuple[Shell, Spool]]:
        """Those of which something still runs."""
        return {pid: kept for pid, kept in self._all().items() if kept[0].running}

    def get(self, pid: int) -> tuple[Shell, Spool] | None:
        """One of them, running or ended."""
        return self._all().get(pid)

    async def aclose(self) -> None:
        """End all of them."""
        async with asyncio.TaskGroup() as group:
            for shell, _ in self.running().values():
                group.create_task(shell.end())
        for _, later in self._shells.values():
            later.close()
        self._shells.clear()

    def _all(self) -> dict[int, tuple[Shell, Spool]]:
        for pid, (shell, _) in tuple(self._shells.items()):
            if shell.stranded:
                shell.abandon()
                del self._shells[pid]
        return self._shells
