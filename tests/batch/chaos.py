"""Batches whose hosts and drivers are killed at random points.

`python -m tests.batch.chaos [--batches N] [--points N] [--seed N]`. The oracle is what the tools
really wrote: a call appends one line to a file of its own.
"""

import argparse
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tests.batch.batches import answer, lines_of, processes_with, write_tasks
from tests.fakes.postgres import kill_and_restart, postgres_url
from tests.fakes.simulated import Place, Simulated
from toolwire.agent.events import AgentEvent, ToolFinished, ToolStarted
from toolwire.messages import Outcome
from toolwire.sessions.sqlite import SqliteStore

CALLS = 4
LONGEST = 300.0


class Tally(msgspec.Struct):
    """What was done and found over all batches."""

    batches: int = 0
    points: int = 0
    drivers: int = 0
    hosts: int = 0
    servers: int = 0
    nodes: int = 0
    heads: int = 0
    silences: int = 0
    tasks: int = 0
    calls: int = 0
    lost: int = 0
    """Tasks without a result."""
    twice: int = 0
    """Calls that ran more than once."""
    wrong: int = 0
    """Calls reported as done that wrote nothing, or as not run that did."""
    unknown: int = 0
    unknown_ran: int = 0
    left: int = 0
    """Processes and workspaces that stayed."""
    complaints: list[str] = []

    def __str__(self) -> str:
        facts = msgspec.to_builtins(self)
        facts.pop("complaints")
        return " · ".join(f"{count:,} {name}" for name, count in facts.items())


class Chaos:
    """One batch, and what kills it."""

    executor: tuple[str, ...] = ()
    environ: Mapping[str, str] = {}
    gated = False
    """Whether tasks wait for all kills: then there is always something to kill."""

    def __init__(
        self, root: Path, upstream: str, seed: int, tally: Tally, tasks: int = 6, url: str = ""
    ) -> None:
        self.place = Place(root)
        self.out = root / "out"
        self.marks = root / "marks"
        self.marks.mkdir()
        self.go = root / "go"
        """Made when all kills are done."""
        self.upstream = upstream
        self.chance = random.Random(seed)
        self.tally = tally
        self.tasks = tasks
        self.url = url
        settings = '[tools]\nsandbox = "off"\n'
        settings += f'[sessions]\nstore = "{url}"\n' if url else ""
        (self.place.home / "config.toml").write_text(settings)

    def run(self, points: int) -> None:
        """Runs the batch to its end, with so many kills on the way."""
        write_tasks(self._file, [self._task(n) for n in range(self.tasks)])
        driver = self._resumed()
        left = points
        end = time.monotonic() + LONGEST
        while left > 0 and time.monotonic() < end:
            if driver.poll() is not None:
                if driver.returncode != -signal.SIGKILL:
                    break
                driver = self._resumed()
            self._wait(driver)
            left -= self._kill(driver)
        self.go.touch()
        while True:
            _, err = driver.communicate(timeout=LONGEST)
            if driver.returncode != -signal.SIGKILL:
                break
            driver = self._resumed()
        if driver.returncode:
            self._complain(f"code {driver.returncode}: {err.decode()[-500:]}")
        self._judge()

    def _task(self, n: int) -> dict[str, Any]:
        commands = [
            f"RUN echo x >> {self.marks}/{n}.{call}; echo {self.chance.randrange(9)}"
            f"; sleep {self.chance.choice((0, 0.02, 0.2))}"
            for call in range(CALLS)
        ]
        if self.gated:
            commands[-1] += f"; while [ ! -e {self.go} ]; do sleep 0.1; done"
        task: dict[str, Any] = {
            "id": f"t{n}",
            "prompt": "\n".join(commands),
            "check": {"command": "true"},
        }
        if n % 2:
            task["workspace"] = {"files": {"a.txt": "a"}}
        return task

    @property
    def _file(self) -> Path:
        return self.place.work / "tasks.jsonl"

    def _resumed(self) -> Any:
        """A driver: the first one, also if that was killed before there was a batch."""
        there = (self.out / ("batch.json" if self.url else "batch.sqlite")).exists()
        words = ("resume", str(self.out)) if there else self._first()
        return self.place.start(
            "batch", *words, "--upstream", self.upstream, "-q", *self.executor, env=self.environ
        )

    def _first(self) -> tuple[str, ...]:
        return ("run", str(self._file), "-o", str(self.out), "-j", "4", "--sandbox", "copy")

    def _hosts(self) -> list[int]:
        folder = self.out / "hosts"
        return [int(note.name) for note in folder.glob("[0-9]*")] if folder.is_dir() else []

    def _wait(self, driver: Any) -> None:
        """Until there is something to kill, and a little longer."""
        end = time.monotonic() + 30
        while not self._hosts() and driver.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        before = len(list(self.marks.iterdir()))
        if self.chance.random() < 0.7:
            # Mostly in the middle of work, not while hosts are loading.
            until = time.monotonic() + 10
            while (
                len(list(self.marks.iterdir())) <= before
                and driver.poll() is None
                and time.monotonic() < until
            ):
                time.sleep(0.005)
        time.sleep(self.chance.random() * 0.3)

    def _kill(self, driver: Any) -> int:
        hosts, chance = self._hosts(), self.chance.random()
        if self.url and self.chance.random() < 0.15:
            kill_and_restart()
            self.tally.servers += 1
            self.tally.points += 1
            return 1
        victims: list[int] = []
        if hosts and chance < 0.45:
            victims = [self.chance.choice(hosts)]
        elif hosts and chance < 0.6:
            victims = hosts
        elif chance < 0.85:
            victims = [driver.pid]
        else:
            victims = [driver.pid, *hosts]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if driver.pid in victims:
            driver.wait()
            self.tally.drivers += 1
        self.tally.hosts += len([pid for pid in victims if pid != driver.pid])
        self.tally.points += len(victims)
        return len(victims)

    def close(self) -> None:
        """Nothing is left to end."""

    def _complain(self, words: str) -> None:
        self.tally.complaints.append(f"{self.out}: {words}")

    def _judge(self) -> None:
        tally = self.tally
        tally.batches += 1
        tally.tasks += self.tasks
        lines = lines_of(self.out) if (self.out / "results.jsonl").exists() else {}
        for n in range(self.tasks):
            line = lines.get(f"t{n}")
            if line is None or line["state"] != "passed":
                tally.lost += 1
                self._complain(f"t{n}: {line and (line['state'], line['error'])}")
                continue
            self._judge_calls(n)
        self._judge_leftovers()

    def _judge_calls(self, n: int) -> None:
        tally = self.tally
        events = self._events(n)
        started = Counter(one.call_id for one in events if isinstance(one, ToolStarted))
        ends = [one for one in events if isinstance(one, ToolFinished)]
        if len(ends) != CALLS or len({one.call_id for one in ends}) != CALLS:
            self._complain(f"t{n} has {len(ends)} results")
        for call, end in enumerate(ends):
            file = self.marks / f"{n}.{call}"
            ran = file.read_text().count("x") if file.exists() else 0
            tally.calls += 1
            tally.twice += ran > 1 or started[end.call_id] > 1
            if end.outcome is Outcome.INTERRUPTED:
                tally.unknown += 1
                tally.unknown_ran += ran
                if started[end.call_id] != 1:
                    self._complain(f"t{n}: an unknown call that never started")
            elif end.success != (ran == 1):
                tally.wrong += 1
                self._complain(f"t{n}.{call}: {end.outcome}, ran {ran} times")

    def _events(self, n: int) -> list[AgentEvent]:
        folder = self.out / "tasks" / f"t{n}" / "session"
        if self.url:
            from toolwire.sessions.postgres.store import PostgresStore

            return PostgresStore(self.url).read((folder / "id").read_text()).events
        store = SqliteStore(folder)
        found = store.list()
        if len(found) != 1:
            self._complain(f"t{n} has {len(found)} sessions")
        return store.read(found[0].id).events

    def _judge_leftovers(self) -> None:
        left = [path.name for path in (self.out / "work").iterdir()]
        hosts = self.out / "hosts"
        left += [path.name for path in hosts.iterdir()] if hosts.is_dir() else []
        end = time.monotonic() + 10
        while (found := processes_with(str(self.place.root))) and time.monotonic() < end:
            time.sleep(0.05)
        left += found
        if left:
            self.tally.left += len(left)
            self._complain(f"left: {left}")


def run_chaos(
    root: Path,
    *,
    batches: int,
    points: int,
    seed: int,
    tasks: int = 6,
    server: bool = False,
    kind: type[Chaos] = Chaos,
    show: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Runs batches one after the other, each with so many kills."""
    tally = Tally()
    url = postgres_url() if server else ""
    with Simulated(answer) as sim:
        for number in range(batches):
            folder = root / f"batch{number}"
            folder.mkdir()
            chaos = kind(folder, sim.upstream(), seed * 1000 + number, tally, tasks, url)
            try:
                chaos.run(points)
            finally:
                chaos.close()
            show(tally)
    return tally


def _on_ray() -> type[Chaos]:
    from tests.batch.chaos_ray import RayChaos

    return RayChaos


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--points", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--server", action="store_true", help="with PostgreSQL as the store")
    parser.add_argument("--ray", action="store_true", help="on two nodes of Ray, with PostgreSQL")
    chosen = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        tally = run_chaos(
            Path(folder),
            batches=chosen.batches,
            points=chosen.points,
            seed=chosen.seed,
            server=chosen.server or chosen.ray,
            kind=_on_ray() if chosen.ray else Chaos,
            show=lambda tally: print(tally, flush=True),
        )
    print(*tally.complaints, sep="\n")
    print(f"{tally} · {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
