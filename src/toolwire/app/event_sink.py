"""Events on their way out of the loop: kept first, then heard by whoever listens."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from toolwire.agent.events import AgentEvent, Emit, Streaming, ToolOutputText
from toolwire.client.redact import Redactor, known_secrets
from toolwire.sessions.journal import Journal

Redact: TypeAlias = Callable[[bytes], bytes]


class EventSink:
    """One session's `Emit`: nothing is shown that is not kept already."""

    def __init__(self, session: str, journal: Journal | None, readers: Iterable[Emit]) -> None:
        self._session = session
        self._journal = journal
        self._readers = tuple(readers)

    async def __call__(self, event: AgentEvent) -> None:
        if self._journal is not None and not isinstance(event, Streaming | ToolOutputText):
            await self._journal.append(self._session, event)
        await self.show(event)

    async def show(self, event: AgentEvent) -> None:
        """Only to the listeners: for what can no longer be kept."""
        for reader in self._readers:
            await reader(event)


def redaction() -> Redact:
    """Takes every secret this process knows out of a record, those it learns later too."""
    known: tuple[str, ...] = ()
    redactor = Redactor()

    def redact(body: bytes) -> bytes:
        nonlocal known, redactor
        secrets = known_secrets()
        if len(secrets) != len(known):
            known, redactor = secrets, Redactor(secrets)
        return redactor.body(body)

    return redact
