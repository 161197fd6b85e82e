import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from subprocess import Popen
from typing import Any

import msgspec
import pytest

from tests.e2e.chores import DONE, KINDS, Chores, assert_truthful, made_in, prepare
from tests.e2e.killed_sessions import Kill, Run, Shown, shown_in
from tests.fakes.simulated import Place, Simulated
from toolwire.messages import Outcome
from toolwire.sessions.replay import replay
from toolwire.sessions.sqlite import SqliteStore
from toolwire.sessions.store import Contents

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked and looked up"),
]
DIALECTS = ("openai-chat", "anthropic-messages", "gemini", "openai-responses")
STRIDE = 31
"""Records of a run: enough to settle the past and to get through a call."""
MOST_RUNS = 150


class Forker:
    """A process with everything loaded that forks runs."""

    def __init__(self, process: "Popen[bytes]") -> None:
        self._process = process

    def send(self, run: Run) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(run) + b"\n")
        self._process.stdin.flush()

    def ended(self) -> Kill:
        assert self._process.stdout is not None
        return msgspec.json.decode(self._process.stdout.readline(), type=Kill)

    def left(self) -> list[int]:
        """All processes that were left behind; ends the forker."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        return msgspec.json.decode(self._process.stdout.readline(), type=list[int])


@contextmanager
def forker_for(sim: Simulated, root: Path) -> Generator[Forker]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.killed_sessions"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        forker = Forker(process)
        forker.send(Story(root, sim, repeat("openai-chat")).next_run())
        yield forker
        assert forker.left() == []


class Story:
    """One session through many runs, until its chores are done."""

    def __init__(self, root: Path, sim: Simulated, dialects: Iterator[str]) -> None:
        root.mkdir()
        self.place = Place(root)
        self.sim = sim
        self.kills = 0
        self.pids: list[int] = []
        self.prompts: list[str] = []
        self._dialects = dialects
        prepare(self.place.work)
        self.place.home.mkdir(exist_ok=True)

    def next_run(self, **killed: Any) -> Run:
        """The next one; every run brings words of its own."""
        self.prompts.append(f"prompt {len(self.prompts)}: work in {self.place.work} now")
        return Run(
            root=str(self.place.root),
            upstream=self.sim.upstream(next(self._dialects)),
            prompt=self.prompts[-1],
            **killed,
        )

    def run_once(self, forker: Forker, **killed: Any) -> bool:
        """Whether it was killed; a run that was not must have come to its own end."""
        forker.send(self.next_run(**killed))
        kill = forker.ended()
        assert kill.killed or kill.code == 0, kill
        self.pids.append(kill.pid)
        self.kills += kill.killed
        return kill.killed

    def run_command(self, seconds: float) -> bool:
        """The same with the real command: whether it was killed so long after its first word."""
        run = self.next_run()
        known = SqliteStore(self.place.home / "sessions").latest(str(self.place.work))
        args = ("--continue",) if known is not None else ()
        formed = ("--yolo", "--output-format", "stream-json")
        process = self.place.start("run", "--upstream", run.upstream, *formed, *args, run.prompt)
        out = process.stdout.readline()
        kill = threading.Timer(seconds, process.kill)
        kill.start()
        more, err = process.stdout.read(), process.stderr.read()
        process.wait()
        kill.cancel()
        killed = process.returncode == -signal.SIGKILL
        assert killed or process.returncode == 0, err
        self.pids.append(process.pid)
        self.kills += killed
        self._show(out + more)
        return killed

    def _show(self, out: bytes) -> None:
        with (self.place.root / "shown.jsonl").open("ab") as file:
            for line in out.splitlines(keepends=True):
                event = msgspec.json.decode(line) if line.endswith(b"\n") else {}
                shown: Shown | None = None
                if event.get("role") == "user":
                    shown = Shown(role="user", text=event["content"])
                elif event.get("status") == "success" and event.get("type") == "tool_result":
                    shown = Shown(call_id=event["tool_id"], outcome=Outcome.DONE)
                if shown is not None:
                    file.write(msgspec.json.encode(shown) + b"\n")

    @property
    def contents(self) -> Contents:
        sessions = SqliteStore(self.place.home / "sessions")
        found = sessions.latest(str(self.place.work))
        assert found is not None
        return sessions.read(found.id)

    def assert_kept(self, chores: Chores) -> Counter[str]:
        """Nothing lost, every call answered, every answer true; counts the answers."""
        contents = self.contents
        assert contents.salvaged is None
        messages = replay(contents.events).messages
        made = made_in(messages)
        assert {one.number for one in made} == set(range(len(KINDS)))
        shown = shown_in(self.place.root)
        said = [one.text for one in shown if one.role]
        kept = iter(message.text for message in messages)
        assert all(text in kept for text in said), "what was shown is not in the session"
        results = {one.call.id: one.result for one in made}
        for one in shown:
            if one.call_id:
                result = results[one.call_id]
                assert result is not None
                assert (result.call_id, result.outcome) == (one.call_id, one.outcome)
        sent = "\n".join(one.text for one in chores.last[str(self.place.work)].messages)
        assert all(text in sent for text in said if text != DONE), "the model did not receive it"
        assert messages[-1].text == DONE
        return Counter(assert_truthful(self.place.work, made))


def assert_no_process_left(pids: list[int]) -> None:
    """Commands end with the process that ran them, though it could not say so any more."""
    marks = tuple(f"TOOLWIRE_COMMAND={pid}-".encode() for pid in pids)
    until = time.monotonic() + 20
    while left := [path for path in Path("/proc").glob("[0-9]*") if _carries(path, marks)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def _carries(process: Path, marks: tuple[bytes, ...]) -> bool:
    try:
        variables = (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return any(one.startswith(marks) for one in variables)


def a_dialect_for_each(chance: random.Random) -> Iterator[str]:
    """Mostly the same again: a change of wire format is the exception."""
    dialect = chance.choice(DIALECTS)
    while True:
        yield dialect
        if chance.random() < 0.1:
            dialect = chance.choice(DIALECTS)


class Totals:
    """Counts over all stories of a test."""

    def __init__(self) -> None:
        self.kills = 0
        self.sessions = 0
        self.pids: list[int] = []
        self.answers: Counter[str] = Counter()

    def add(self, story: Story, chores: Chores) -> None:
        self.answers += story.assert_kept(chores)
        self.kills += story.kills
        self.sessions += 1
        self.pids += story.pids

    def line(self, what: str) -> str:
        answers = ", ".join(f"{count} {name}" for name, count in sorted(self.answers.items()))
        return f"kill -9 {what}: {self.kills} kills in {self.sessions} sessions; calls {answers}"


def longest(story: Story) -> float:
    """Seconds of a run: some end while they settle the past, most get through a few calls.

    They get longer, so that a story ends on a slow machine too.
    """
    return 0.3 * 1.3 ** (story.kills // 8)


@pytest.mark.parametrize("seed", range(4))
def test_a_session_killed_at_any_moment_goes_on(
    tmp_path: Path, counted: Callable[[str], None], seed: int
) -> None:
    chance, chores, all = random.Random(seed), Chores(), Totals()
    with Simulated(chores) as sim, forker_for(sim, tmp_path / "first") as forker:
        while all.kills < 250:
            story = Story(tmp_path / str(all.sessions), sim, a_dialect_for_each(chance))
            while story.run_once(forker, seconds=chance.uniform(0.0, longest(story))):
                assert story.kills < MOST_RUNS
            all.add(story, chores)
        assert not sim.refusals
    counted(all.line(f"at random moments, seed {seed}"))


@pytest.mark.parametrize("part", range(4))
def test_a_session_killed_at_any_record_goes_on(
    tmp_path: Path, counted: Callable[[str], None], part: int
) -> None:
    chores, all = Chores(), Totals()
    with Simulated(chores) as sim, forker_for(sim, tmp_path / "first") as forker:
        # With every first record of 1 … STRIDE, each record of the file has its turn.
        for first in range(1 + part, STRIDE + 1, 4):
            story = Story(tmp_path / str(first), sim, repeat(DIALECTS[all.sessions % 4]))
            where = ("before", "after")[first % 2]
            for number in chain((first,), repeat(STRIDE)):
                if not story.run_once(forker, **{where: number}):
                    break
                assert story.kills < MOST_RUNS
            all.add(story, chores)
        assert not sim.refusals
    counted(all.line(f"at every record, part {part}"))


@pytest.mark.parametrize("seed", range(2))
def test_the_command_killed_at_any_moment_goes_on(
    tmp_path: Path, counted: Callable[[str], None], seed: int
) -> None:
    chance, chores, all = random.Random(seed), Chores(), Totals()
    with Simulated(chores) as sim:
        while all.kills < 12:
            story = Story(tmp_path / str(all.sessions), sim, a_dialect_for_each(chance))
            while story.run_command(chance.uniform(0.0, 2 * longest(story))):
                assert story.kills < MOST_RUNS
            all.add(story, chores)
        assert not sim.refusals
    assert_no_process_left(all.pids)
    counted(all.line(f"of toolwire run, seed {seed}"))
