"""What an executor is: places attempts on hosts, and reports what came back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, TypeAlias

import msgspec

from toolwire.batch.store import Claim
from toolwire.errors import ToolwireError


class AttemptDone(msgspec.Struct, frozen=True, tag="done"):
    """An attempt has ended; its result is in the store."""

    n: int
    host: str


class HostLost(msgspec.Struct, frozen=True, tag="lost"):
    """A host died, with these attempts."""

    host: str
    attempts: tuple[int, ...]
    why: str = ""


class HostReady(msgspec.Struct, frozen=True, tag="ready"):
    """A host takes attempts."""

    host: str


ExecutorEvent: TypeAlias = AttemptDone | HostLost | HostReady
EventQueue: TypeAlias = "asyncio.Queue[ExecutorEvent | ToolwireError | None]"
"""Events of an executor: an error ends it, None closes it."""


async def events_of(queue: EventQueue) -> AsyncIterator[ExecutorEvent]:
    """The events of a queue, until it is closed; raises its error."""
    while (event := await queue.get()) is not None:
        if isinstance(event, ToolwireError):
            raise event
        yield event


class Executor(Protocol):
    """Runs attempts somewhere. It may lose or double anything: the store is the truth."""

    slots: int
    """Attempts at once, on all hosts."""

    async def open(self) -> None:
        """Starts hosts."""
        ...

    async def submit(self, claim: Claim, avoid: str = "") -> None:
        """Runs an attempt, on another host than this one if there is one."""
        ...

    def events(self) -> AsyncIterator[ExecutorEvent]:
        """What happens, until it is closed."""
        ...

    async def cancel(self, n: int) -> None:
        """Ends an attempt."""
        ...

    async def take_out(self, host: str) -> None:
        """Gives a host no more attempts."""
        ...

    async def stop(self, *, hard: bool) -> None:
        """Ends all attempts at their next record, or now."""
        ...

    async def close(self, grace: float) -> None:
        """Ends the hosts; running attempts have so many seconds."""
        ...
