"""Lists of servers remembered between sessions, so that a session need not wait for them."""

import time
from pathlib import Path

import msgspec

from toolwire.errors import ToolwireError
from toolwire.mcp.client import Lists
from toolwire.mcp.entry import ServerEntry, cache_key
from toolwire.storage.private_files import write_private

FRESH_SECONDS = 24 * 3600.0


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """What a server offered when it was last asked."""

    lists: Lists
    at: float
    name: str = ""
    """The server's name for itself."""
    version: str = ""
    protocol: str = ""
    capabilities: tuple[str, ...] = ()
    instructions: str = ""

    def is_fresh(self, now: float) -> bool:
        """Whether the lists need not be asked for again yet."""
        seconds = FRESH_SECONDS if self.lists.seconds is None else self.lists.seconds
        return now - self.at < seconds


class Memory:
    """A file for each definition of a server."""

    def __init__(self, folder: Path, *, asking: bool = False) -> None:
        # Servers offer more to a client that can ask its user.
        self._folders = (folder / "asking", folder) if asking else (folder,)

    def find(self, entry: ServerEntry) -> Remembered | None:
        """What is remembered of a server; None if nothing can be read."""
        for folder in self._folders:
            try:
                data = (folder / _name(entry)).read_bytes()
                return msgspec.json.decode(data, type=Remembered)
            except (OSError, msgspec.DecodeError):
                continue
        return None

    def keep(self, entry: ServerEntry, remembered: Remembered) -> None:
        """Remembers; a folder that cannot be written costs the memory, not the session."""
        try:
            write_private(self._folders[0] / _name(entry), msgspec.json.encode(remembered))
        except (OSError, ToolwireError):
            return

    def forget(self, entry: ServerEntry) -> None:
        """Removes what is remembered."""
        for folder in self._folders:
            (folder / _name(entry)).unlink(missing_ok=True)


def _name(entry: ServerEntry) -> str:
    return f"{cache_key(entry)}.json"


def now() -> float:
    """Seconds since the epoch."""
    return time.time()
