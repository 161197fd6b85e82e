"""New settings while the gateway runs: read, checked, and then applied as a whole."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from toolwire.config import Settings
from toolwire.config.gateway import GatewaySettings
from toolwire.errors import ToolwireError

INTERVAL = 2.0
_TIDY_SECONDS = 60.0
NEED_RESTART = (
    *("host", "port", "workers", "store", "tls_cert", "tls_key", "trusted_proxies", "body_limit"),
    *("write_seconds", "log", "log_file"),
    *("memory", "memory_ram", "memory_disk", "memory_days"),
)
"""Settings of the gateway that only a new process reads."""


class Reloader:
    """Applies changed settings files; a file with an error changes nothing."""

    def __init__(
        self,
        settings: Settings,
        files: Sequence[Path],
        *,
        load: Callable[[], Settings],
        apply: Callable[[Settings], Awaitable[None]],
        notice: Callable[[str], None],
        tidy: Callable[[], Awaitable[None]],
        interval: float = INTERVAL,
    ) -> None:
        self.settings = settings
        """Those in use."""
        self._files = tuple(files)
        self._load = load
        self._apply = apply
        self._notice = notice
        self._tidy = tidy
        self._interval = interval
        self._seen = self._signature()
        self._lock = asyncio.Lock()
        self._again = asyncio.Event()
        self.waiting: list[str] = []
        """Settings of the gateway that changed and need a new process."""
        self.problem = ""
        """Why the last change was not applied; empty if it was."""

    def soon(self) -> None:
        """Reloads at the next opportunity, whether a file has changed or not."""
        self._again.set()

    async def watch(self) -> None:
        """Looks for changes until it is cancelled."""
        loop = asyncio.get_running_loop()
        tidied = loop.time()
        while True:
            try:
                async with asyncio.timeout(self._interval):
                    await self._again.wait()
            except TimeoutError:
                pass
            if self._again.is_set() or self._signature() != self._seen:
                self._again.clear()
                await self.reload()
            if loop.time() - tidied >= _TIDY_SECONDS:
                tidied = loop.time()
                try:
                    await self._tidy()
                except (ToolwireError, OSError) as error:
                    self._notice(f"the ledger cannot be tidied: {error}")

    async def reload(self) -> bool:
        """Whether the settings were applied."""
        async with self._lock:
            self._seen = self._signature()
            try:
                found = self._load()
                changed = restart_needed(self.settings.gateway, found.gateway)
                applied = _with_old(found, self.settings.gateway)
                await self._apply(applied)
            except ToolwireError as error:
                self.problem = str(error)
                self._notice(f"the settings are not reloaded: {error}")
                return False
            self.settings, self.problem, self.waiting = applied, "", changed
            self._notice("the settings are reloaded")
            if changed:
                listed = ", ".join(f"gateway.{name}" for name in changed)
                self._notice(f"restart the gateway to apply {listed}")
            return True

    def _signature(self) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(map(_state, self._files))


def restart_needed(old: GatewaySettings, new: GatewaySettings) -> list[str]:
    """Returns the settings that changed and that a running gateway cannot change."""
    return [name for name in NEED_RESTART if getattr(old, name) != getattr(new, name)]


def _with_old(settings: Settings, old: GatewaySettings) -> Settings:
    kept = {name: getattr(old, name) for name in NEED_RESTART}
    gateway = msgspec.structs.replace(settings.gateway, **kept)
    return msgspec.structs.replace(settings, gateway=gateway)


def _state(file: Path) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - every two seconds
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
