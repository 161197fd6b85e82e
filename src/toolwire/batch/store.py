"""What is stored of a batch: its tasks, attempts and results; executors work from it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from toolwire.batch.plan import Trial
from toolwire.batch.results import Result, State
from toolwire.batch.tasks import Task
from toolwire.errors import ToolwireError


class BatchLost(ToolwireError):
    """Another driver has taken the batch over."""

    kind = "batch_lost"


class ClaimLost(Exception):
    """The attempt was given to another host: this one does nothing more, and stores nothing."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that a host may run, as long as the epoch is current."""

    n: int
    epoch: int
    id: str
    model: str
    attempt: int
    tries: int
    session: str = ""
    """The session that an earlier host began, if the batch is on a server."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """A batch so far."""

    states: dict[str, int]
    cost: float
    tokens: int

    @property
    def all(self) -> int:
        """All attempts."""
        return sum(self.states.values())


class BatchStore(Protocol):
    """One batch. Every method blocks, briefly; errors are `ToolwireError`."""

    def add(self, given: Iterable[Task], models: Sequence[str], attempts: int) -> int:
        """Adds tasks with an attempt for each model and number; returns how many attempts."""
        ...

    def publish(self) -> None:
        """Makes a new batch one that can be run, once its tasks are stored."""
        ...

    def take(self) -> int:
        """Takes the batch over: the new epoch. Refused while another driver has it."""
        ...

    def is_taken(self) -> bool:
        """Whether a driver has the batch."""
        ...

    def meta(self, key: str) -> str:
        """A value of the batch; empty if it has none."""
        ...

    def set_meta(self, key: str, value: str) -> None:
        """Stores a value of the batch."""
        ...

    def waiting(self, after: int, most: int) -> list[Trial]:
        """Attempts that are to be run, in their order, after this number."""
        ...

    def recover(self) -> int:
        """Marks attempts that were in flight or stopped as waiting; returns how many."""
        ...

    def errors(self) -> list[tuple[int, int, Result]]:
        """Attempts in the state `error`: number, tries, result."""
        ...

    def bodies(self) -> Iterator[bytes]:
        """The lines of ended attempts, in the order of the tasks."""
        ...

    def claim(self, n: int, host: str) -> Claim:
        """Marks an attempt as running; BatchLost if another driver took over."""
        ...

    def holds(self, claim: Claim) -> bool:
        """Whether the claim is still current."""
        ...

    def begin(self, claim: Claim, session: str) -> bool:
        """Notes the session of an attempt before it does anything.

        False if the claim is over, or another host with the same claim began one.
        """
        ...

    def task(self, id: str) -> Task:
        """The task with this id."""
        ...

    def digests(self) -> dict[str, str]:
        """The digest of each task by its id."""
        ...

    def finish(self, claim: Claim, result: Result) -> bool:
        """Stores the result of an attempt; False if the claim is no longer current."""
        ...

    def fail(self, n: int, result: Result) -> None:
        """Stores the result of an attempt that no host can report any more."""
        ...

    def give_back(self, n: int) -> None:
        """Marks an attempt as waiting again."""
        ...

    def again(self, states: Sequence[str], ids: Sequence[str] = ()) -> list[Trial]:
        """Marks ended attempts as waiting, by state or by id; returns them."""
        ...

    def drop(self, ids: Sequence[str]) -> None:
        """Removes tasks and their attempts."""
        ...

    def ended(self, n: int) -> Result | None:
        """The result of an attempt that has ended; None if it waits or runs."""
        ...

    def of_task(self, id: str) -> list[tuple[Trial, State, Result | None]]:
        """The attempts at one task."""
        ...

    def unfinished(self) -> Iterator[int]:
        """The numbers of attempts that are to go on, in the states `waiting` to `stopped`."""
        ...

    def ids(self) -> list[str]:
        """The ids of all tasks."""
        ...

    def results(self) -> Iterator[Result]:
        """Every stored result, in the order of the tasks."""
        ...

    def totals(self) -> Totals:
        """Counts of states, cost and tokens."""
        ...

    def delete(self) -> None:
        """Removes what is stored outside of the batch's folder: rows and sessions on a server."""
        ...

    def close(self) -> None:
        """Releases the batch."""
        ...
