"""Where the events of a session go: its journal first, then its readers."""

import asyncio
from collections.abc import Iterable

from toolwire.agent.events import AgentEvent, Reader, SessionEvent
from toolwire.sessions.records import is_stored
from toolwire.sessions.store import OpenJournal, SessionLost


class EventSink:
    """One session's `Emit`: stores each event before readers receive it."""

    def __init__(
        self, session: str, journal: OpenJournal | None, readers: Iterable[Reader]
    ) -> None:
        self._session = session
        self._journal = journal
        self._readers = tuple(readers)
        self._given_up = ""

    async def __call__(self, event: AgentEvent) -> None:
        if self._journal is not None and is_stored(event):
            if self._given_up:
                raise SessionLost(self._session, self._given_up)
            await self._journal.append(self._session, event)
        received = SessionEvent(self._session, event)
        for reader in self._readers:
            await reader(received)

    def give_up(self, why: str) -> None:
        """Stores nothing more: open calls are resolved when the session is opened again."""
        self._given_up = why

    async def lost(self) -> str:
        """Returns the reason when the session may no longer be written by this process."""
        if self._journal is None:
            await asyncio.get_running_loop().create_future()
            return ""
        return await self._journal.lost()

    async def cancelled(self) -> None:
        """Returns when another process asks to end the turn."""
        if self._journal is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._journal.cancelled()

    async def show(self, event: AgentEvent) -> None:
        """Delivers to readers only: for events that can no longer be stored."""
        await EventSink(self._session, None, self._readers)(event)


class LossWatch:
    """Cancels the running turn when another process has taken its session over, or asks for it."""

    def __init__(self, session: str, sink: EventSink) -> None:
        self._session = session
        self._turn = asyncio.current_task()
        self._lost: SessionLost | None = None
        self._tasks = tuple(
            asyncio.ensure_future(one) for one in (self._watch(sink), self._obey(sink))
        )

    async def _watch(self, sink: EventSink) -> None:
        self._lost = SessionLost(self._session, await sink.lost())
        if self._turn is not None:
            self._turn.cancel()

    async def _obey(self, sink: EventSink) -> None:
        await sink.cancelled()
        if self._turn is not None:
            self._turn.cancel()

    def taken_back(self) -> SessionLost | None:
        """Returns the loss that cancelled the turn, which then goes on; None for another cause."""
        if self._lost is not None and self._turn is not None:
            self._turn.uncancel()
        return self._lost

    def end(self) -> None:
        """Stops watching."""
        for task in self._tasks:
            task.cancel()
