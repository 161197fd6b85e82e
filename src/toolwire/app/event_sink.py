"""Delivers agent events: to the journal first, then to readers."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from toolwire.agent.events import AgentEvent, Reader, SessionEvent
from toolwire.client.redact import Redactor, known_secrets
from toolwire.sessions.replay import Journal

Redact: TypeAlias = Callable[[bytes], bytes]


class EventSink:
    """One session's `Emit`: stores each event before readers receive it."""

    def __init__(self, session: str, journal: Journal | None, readers: Iterable[Reader]) -> None:
        self._session = session
        self._journal = journal
        self._readers = tuple(readers)

    async def __call__(self, event: AgentEvent) -> None:
        if self._journal is not None:
            await self._journal.append(self._session, event)
        await self.show(event)

    async def show(self, event: AgentEvent) -> None:
        """Delivers to readers only: for events that can no longer be stored."""
        received = SessionEvent(self._session, event)
        for reader in self._readers:
            await reader(received)


def redaction() -> Redact:
    """Redacts every secret that this process knows from a record."""
    known: tuple[str, ...] = ()
    redactor = Redactor()

    def redact(body: bytes) -> bytes:
        nonlocal known, redactor
        secrets = known_secrets()
        if len(secrets) != len(known):
            known, redactor = secrets, Redactor(secrets)
        return redactor.body(body)

    return redact
