"""A store of sessions whose journal can be left in the middle of a turn."""

from __future__ import annotations

from collections.abc import Mapping

from toolwire.agent.events import AgentEvent
from toolwire.client.redact import redaction
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import OpenJournal
from toolwire.storage.paths import state_paths


class DetachableJournal:
    """A journal that stores nothing more once its session is left as it is."""

    def __init__(self, inner: OpenJournal, store: DetachableStore) -> None:
        self._inner = inner
        self._store = store
        self._last = 0

    @property
    def session(self) -> str:
        """The session's id."""
        return self._inner.session

    @property
    def notices(self) -> list[str]:
        """Notices for the user about what could not be read."""
        return self._inner.notices

    async def append(self, session: str, event: AgentEvent) -> int:
        """Stores the event, unless the session is left as it is."""
        if not self._store.detached:
            self._last = await self._inner.append(session, event)
        return self._last

    async def read(self, session: str, after: int = 0) -> list[AgentEvent]:
        """All events after that record, in order."""
        return await self._inner.read(session, after)

    async def lost(self) -> str:
        """Returns the reason when the session is no longer held."""
        return await self._inner.lost()

    async def cancelled(self) -> None:
        """Returns when another process asks to end the running turn."""
        await self._inner.cancelled()

    async def close(self) -> None:
        """Releases the session."""
        await self._inner.close()


class DetachableStore(SqliteStore):
    """The user's sessions, for one that may be left in the middle of a turn."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        super().__init__(state_paths(environ).sessions, redact=redaction())
        self.detached = False

    def create(self, project: str) -> OpenJournal:  # pyright: ignore[reportIncompatibleMethodOverride] - only as a store
        """A new session of this folder, open for writing."""
        return DetachableJournal(super().create(project), self)

    def open(self, name: str, *, take: bool = False) -> OpenJournal:  # pyright: ignore[reportIncompatibleMethodOverride] - only as a store
        """Opens a session for writing."""
        return DetachableJournal(super().open(name, take=take), self)
