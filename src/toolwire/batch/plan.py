"""What a batch does next: order, retries, budget, hosts that are taken out. Pure."""

import heapq
from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from toolwire.batch.results import State

HOST_ERRORS = ("host", "sandbox")
"""Where an error happened that is the machine's own: these take out even the last host."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt at a task, as the plan knows it."""

    n: int
    """Its number in the batch: the order of the file."""
    id: str
    model: str = ""
    attempt: int = 1
    tries: int = 0
    """How often it was started."""
    losses: int = 0
    """How often its host died."""
    avoid: str = ""
    """The host of its last error."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """How a batch is run."""

    slots: int = 1
    retries: int = 3
    losses: int = 8
    """Hosts that may die with an attempt: mostly it is not the cause."""
    first_wait: float = 2.0
    longest_wait: float = 120.0
    budget: float = 0.0
    """US dollars; 0 sets no limit."""
    budget_tokens: int = 0
    same_errors: int = 3
    """Errors of one kind in a row that take a host out."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """How a started attempt came back."""

    state: State
    host: str = ""
    cost: float | None = None
    tokens: int = 0
    where: str = ""
    """Of an error; so is `type`."""
    type: str = ""
    lasting: bool = False
    """Whether another try cannot help: a wrong key, an unknown model."""


class Pause(msgspec.Struct, frozen=True):
    """Nothing can start now; ask again then, or when an attempt comes back."""

    until: float | None = None


class Exhausted(msgspec.Struct, frozen=True):
    """Nothing starts any more."""

    why: str
    """`done`, `budget`, `hosts` or `stopped`."""


Step: TypeAlias = Trial | Pause | Exhausted


class Disposition(msgspec.Struct, frozen=True):
    """What follows from an ending."""

    final: bool
    """Whether the state stays; else the attempt is tried again."""
    out: str = ""
    """The host that is taken out because of it."""


class Plan:
    """The state of a running batch that decides what starts; bounded by the window."""

    def __init__(
        self, rules: Rules, *, spent: float = 0.0, tokens: int = 0, ended: int = 0
    ) -> None:
        """`spent` and `tokens` are those of earlier drivers, over so many ended attempts."""
        self.rules = rules
        self.spent = spent
        self.tokens = tokens
        self.running: dict[int, Trial] = {}
        self.hosts_out: dict[str, str] = {}
        """Why each was taken out."""
        self._hosts: set[str] = set()
        self._fresh: deque[Trial] = deque()
        self._again: list[tuple[float, int, Trial]] = []
        self._priced = ended if spent else 0
        self._priced_sum = spent
        self._counted = ended
        self._counted_sum = tokens
        self._streaks: dict[str, tuple[str, set[int]]] = {}
        self._stopped = ""
        self.more = True
        """Whether the store may have further attempts."""

    @property
    def wants(self) -> int:
        """How many more attempts it can hold."""
        if not self.more or self._stopped:
            return 0
        # Half of the window at once: the store is not asked for one attempt at a time.
        known = len(self._fresh)
        return 0 if known >= self.rules.slots else 2 * self.rules.slots - known

    @property
    def is_empty(self) -> bool:
        """Whether it knows of no attempt."""
        return not (self._fresh or self._again or self.running)

    def offer(self, runs: Iterable[Trial]) -> None:
        """Adds attempts in their order."""
        self._fresh.extend(runs)

    def meets(self, host: str) -> None:
        """Counts a host that takes attempts."""
        self._hosts.add(host)

    def leaves(self, host: str) -> None:
        """Forgets a host that was lost: it cannot take the attempts of one that is taken out."""
        self._hosts.discard(host)
        self._streaks.pop(host, None)

    def stop(self, why: str = "stopped") -> None:
        """Starts nothing more."""
        self._stopped = self._stopped or why

    def next(self, now: float) -> Step:
        """What to do now: start an attempt, wait, or nothing any more."""
        if self._stopped:
            return Exhausted(self._stopped)
        if len(self.running) >= self.rules.slots:
            return Pause()
        due = bool(self._again) and self._again[0][0] <= now
        if not due and not self._fresh:
            if self._again:
                return Pause(self._again[0][0])
            return Pause() if self.running or self.more else Exhausted("done")
        over = self._over_budget()
        if over:
            return over
        run = heapq.heappop(self._again)[2] if due else self._fresh.popleft()
        run = msgspec.structs.replace(run, tries=run.tries + 1)
        self.running[run.n] = run
        return run

    def _over_budget(self) -> Step | None:
        rules = self.rules
        for limit, used, known, total in (
            (rules.budget, self.spent, self._priced, self._priced_sum),
            (rules.budget_tokens, self.tokens, self._counted, self._counted_sum),
        ):
            if not limit:
                continue
            if used >= limit:
                return Exhausted("budget") if not self.running else Pause()
            if not known:
                # The first attempt shows what one costs: until then nothing starts beside it.
                if self.running:
                    return Pause()
                continue
            if used + total / known * (len(self.running) + 1) > limit:
                return Pause() if self.running else Exhausted("budget")
        return None

    def ended(self, n: int, ending: Ending, now: float) -> Disposition:
        """Counts how an attempt came back, and says what follows."""
        run = self.running.pop(n)
        self._count(ending)
        out = self._blamed(run, ending)
        if ending.state is not State.ERROR:
            return Disposition(ending.state is not State.STOPPED, out)
        if ending.lasting or run.tries > self.rules.retries:
            return Disposition(True, out)
        wait = min(self.rules.first_wait * 2 ** (run.tries - 1), self.rules.longest_wait)
        run = msgspec.structs.replace(run, avoid=ending.host)
        heapq.heappush(self._again, (now + wait, run.n, run))
        return Disposition(False, out)

    def lost(self, n: int, host: str, now: float) -> Disposition:
        """Counts a host that died with an attempt: it comes back at once, elsewhere."""
        run = self.running.pop(n)
        if run.losses >= self.rules.losses:
            return Disposition(True)
        run = msgspec.structs.replace(run, avoid=host, tries=run.tries - 1, losses=run.losses + 1)
        heapq.heappush(self._again, (now, run.n, run))
        return Disposition(False)

    def _count(self, ending: Ending) -> None:
        if ending.cost is not None:
            self.spent += ending.cost
        if ending.tokens:
            self.tokens += ending.tokens
        if ending.state is State.ERROR:
            return
        if ending.cost is not None:
            self._priced += 1
            self._priced_sum += ending.cost
        self._counted += 1
        self._counted_sum += ending.tokens

    def _blamed(self, run: Trial, ending: Ending) -> str:
        """The host that this ending takes out: a row of errors of one kind, of different tasks."""
        host = ending.host
        if not host or host in self.hosts_out:
            return ""
        if ending.state is not State.ERROR:
            self._streaks.pop(host, None)
            return ""
        kind = f"{ending.where}: {ending.type}"
        before, tasks = self._streaks.get(host, ("", set[int]()))
        tasks = {*tasks, run.n} if before == kind else {run.n}
        self._streaks[host] = (kind, tasks)
        if len(tasks) < self.rules.same_errors:
            return ""
        left = self._hosts - self.hosts_out.keys() - {host}
        if not left and ending.where not in HOST_ERRORS:
            return ""
        self.hosts_out[host] = kind
        if not left:
            self.stop("hosts")
        return host
