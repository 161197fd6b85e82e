"""Sessions with subagents killed at every record: no effect twice, every call answered once."""

import re
import sys
from collections import Counter
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path

import pytest

from tests.e2e.killed_sessions import Run
from tests.e2e.test_kill import Forker, forker_for
from tests.extensions.worked_folder import tree_of
from tests.fakes.simulated import Place, Simulated
from toolwire.messages import Message, ToolResult
from toolwire.sessions.replay import replay
from toolwire.sessions.sqlite import SqliteStore
from toolwire.simulator import Question, Reply
from toolwire.simulator.script import Call, Say

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked"),
]
TASKS = 6
STRIDE = 23
_TASK = re.compile(r"^task (\d+)", re.MULTILINE)


def results_of(messages: tuple[Message, ...]) -> list[ToolResult]:
    parts = (part for one in messages for part in one.parts)
    return [part for part in parts if isinstance(part, ToolResult)]


def answer(question: Question) -> Reply:
    """Two tasks at a time for two agents; each leaves two lines. No task is given twice."""
    messages = question.request.messages
    system = next(one.text for one in messages if one.role == "system")
    done = len(results_of(messages))
    if "You work for another agent" not in system:
        made = sum(len(one.calls) for one in messages)
        if made >= TASKS:
            return Reply(pieces=(Say("all is done"),))
        calls = (
            Call.of("run_agent", agent="general", prompt=f"task {number}")
            for number in (made, made + 1)
        )
        return Reply(pieces=tuple(calls))
    [task] = [found[1] for one in messages if (found := _TASK.search(one.text))]
    if done == 2:
        return Reply(pieces=(Say(f"did {task}"),))
    if done == 0:
        return Reply(pieces=(Call.of("run_shell_command", command=f"echo {task}.1 >> log.txt"),))
    return Reply(pieces=(Call.of("run_shell_command", command=f"echo {task}.2 >> log.txt"),))


class Counts:
    """What happened over all sessions."""

    def __init__(self) -> None:
        self.kills = self.effects = 0
        self.outcomes: Counter[str] = Counter()
        self.restores: Counter[str] = Counter()

    def add(self, place: Place) -> None:
        log = place.work / "log.txt"
        lines = log.read_text().split() if log.exists() else []
        assert len({*lines}) == len(lines), lines
        self.effects += len(lines)
        store = SqliteStore(place.home / "sessions")
        latest = store.latest(str(place.work))
        assert latest is not None
        messages = replay(store.read(latest.id).events).messages
        calls = [call for one in messages for call in one.calls]
        results = results_of(messages)
        assert [one.id for one in calls] == [one.call_id for one in results]
        for number, result in enumerate(results):
            self.outcomes[result.outcome] += 1
            if not result.is_error:
                assert result.text == f"did {number}"
                assert {f"{number}.1", f"{number}.2"} <= {*lines}
        for one in store.list(children=True):
            assert not replay(store.read(one.id).events).open
        self._restored(place, latest.id)

    def _restored(self, place: Place, session: str) -> None:
        """The tree as before the first turn, or a report of what was left."""
        done = place.toolwire("sessions", "restore", session, "1", "--files")
        now = tree_of(place.work)
        if done.code == 0 or "no checkpoints" in done.err:
            # Killed before the first command of each.
            assert now == {"begun.txt": ("file", 0o644, b"begun\n")}
            self.restores["equal"] += 1
        else:
            assert done.code == 1, done.err
            assert "left as it is" in done.out
            self.restores["reported"] += 1


def story(root: Path, sim: Simulated, forker: Forker, numbers: "chain[int]", where: str) -> int:
    root.mkdir()
    place = Place(root)
    (place.work / "begun.txt").write_text("begun\n")
    place.home.mkdir(exist_ok=True)
    for kills, number in enumerate(numbers):
        prompt = f"go on, {kills}"
        run = Run(root=str(root), upstream=sim.upstream(), prompt=prompt, **{where: number})
        forker.send(run)
        ended = forker.ended()
        assert ended.killed or ended.code == 0, ended
        if not ended.killed:
            return kills
        assert kills < 100
    raise AssertionError("unreachable")


def test_agents_killed_at_any_record_have_no_effect_twice(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    all = Counts()
    with Simulated(answer) as sim, forker_for(sim, tmp_path / "first") as forker:
        first = 1
        while all.kills < 200:
            root = tmp_path / str(first)
            where = ("before", "after")[first % 2]
            # Some are killed before an agent is done, others after one or two.
            numbers = chain((first,), repeat(STRIDE + 20 * (first % 5)))
            all.kills += story(root, sim, forker, numbers, where)
            all.add(Place(root))
            first += 1
        assert not sim.refusals
    restores = dict(all.restores)
    counted(
        f"kill -9 with agents: {all.kills} kills, {all.effects} effects, none twice; "
        f"calls {dict(all.outcomes)}; {restores=}"
    )
