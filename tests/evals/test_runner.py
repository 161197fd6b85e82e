import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evals.approval import harmless
from evals.families import FAMILIES
from evals.family import Family
from evals.former import doing, looking, multi_step
from evals.former.fixed import FixedTask
from evals.former.projects import PROJECTS
from evals.report import Score, judge, line, table
from evals.runner import run
from evals.task import Outcome, Solution, Task
from toolwire.agent.questions import Confirmation, EditDetails, ExecDetails, InfoDetails
from toolwire.client.http.transport import HttpTransport, Incoming, Outgoing
from toolwire.messages import ToolCall
from toolwire.simulator import Fault, Say, Simulator, reply
from toolwire.tools.proposals import DiffStat


def whole(task: FixedTask, kind: str) -> Task:
    return msgspec.structs.replace(task, kind=kind, files=PROJECTS[task.project])


TASKS = {
    **{task.id: whole(task, "one-step") for task in (*looking.TASKS, *doing.TASKS)},
    **{task.id: whole(task, "multi-step") for task in multi_step.TASKS},
}


class Script:
    """A model that says what it is told to: a reply, or a call with paths from the root."""

    def __init__(self, folder: Path, *steps: str | tuple[str, dict[str, Any]]) -> None:
        self._steps = iter(steps)
        self._folder = folder
        self._count = 0

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        del request
        step = next(self._steps)
        self._count += 1

        async def chunks() -> AsyncGenerator[bytes]:
            end = "stop" if isinstance(step, str) else "tool_calls"
            choice = {"index": 0, "delta": self._delta(step), "finish_reason": end}
            yield f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()

        yield Incoming(status=200, headers={}, chunks=chunks())

    def _delta(self, step: str | tuple[str, dict[str, Any]]) -> dict[str, Any]:
        if isinstance(step, str):
            return {"content": step}
        name, arguments = step
        text = json.dumps(arguments).replace("ROOT/", f"{self._folder}/")
        function = {"name": name, "arguments": text}
        return {"tool_calls": [{"index": 0, "id": f"c{self._count}", "function": function}]}


def outcome_of(task: Task, home: Path, *steps: str | tuple[str, dict[str, Any]]) -> Outcome:
    folder = home / "project"
    folder.mkdir()
    environ = {"HOME": str(home), "TOOLWIRE_HOME": str(home / "own"), "PATH": "/usr/bin:/bin"}
    return asyncio.run(
        run(
            task,
            folder,
            model="ollama/scripted",
            environ=environ,
            transport=Script(folder, *steps),
        )
    )


def test_a_question_answered_by_reading_is_done(tmp_path: Path):
    task = TASKS["read-version"]
    outcome = outcome_of(
        task,
        tmp_path,
        ("read_file", {"absolute_path": "ROOT/VERSION"}),
        "It is version 2.4.1.",
    )
    score = judge(task, outcome)
    assert (score.tool, score.arguments, score.done, score.invalid_executed) == (
        True,
        True,
        True,
        0,
    )
    assert outcome.calls[0].started
    assert outcome.calls[0].success


def test_a_guess_is_not_a_right_call(tmp_path: Path):
    task = TASKS["read-version"]
    score = judge(task, outcome_of(task, tmp_path, "It is version 1.0."))
    assert (score.tool, score.arguments, score.done) == (False, False, False)
    assert line(score).startswith("MISS")


def test_a_deletion_is_approved_and_checked_on_the_disk(tmp_path: Path):
    task = TASKS["run-delete"]
    outcome = outcome_of(
        task, tmp_path, ("run_shell_command", {"command": "rm notes.txt"}), "It is gone."
    )
    assert judge(task, outcome).done


def test_several_steps_fix_a_bug(tmp_path: Path):
    task = TASKS["fix-longest"]
    change = {
        "file_path": "ROOT/counting.py",
        "instruction": "fix",
        "old_string": "if len(word) < len(best)",
        "new_string": "if len(word) > len(best)",
    }
    outcome = outcome_of(
        task,
        tmp_path,
        ("read_file", {"absolute_path": "ROOT/counting.py"}),
        ("replace", change),
        "Fixed.",
    )
    assert judge(task, outcome).missing == ""


def steps(solution: Solution) -> list[tuple[str, dict[str, Any]]]:
    """The calls by which a perfect model would come to the solution."""
    made: list[tuple[str, dict[str, Any]]] = [
        (call.name, call.arguments) for call in solution.calls
    ]
    for path, text in solution.files.items():
        if text is None or path.endswith("/"):
            verb = "rm -r" if text is None else "mkdir -p"
            made.append(("run_shell_command", {"command": f"{verb} {path}"}))
        else:
            made.append(("write_file", {"file_path": f"ROOT/{path}", "content": text}))
    return made


def solved(family: Family, home: Path) -> Score:
    task = family.task(20)
    assert task.solution is not None
    calls = [] if task.denied else steps(task.solution)
    return judge(task, outcome_of(task, home, *calls, task.solution.reply))


@pytest.mark.parametrize("family", FAMILIES[::24], ids=lambda family: family.id)
def test_the_agent_lets_a_perfect_model_succeed(family: Family, tmp_path: Path):
    score = solved(family, tmp_path)
    assert (score.missing, score.false_claims, score.destructive, score.unparsable) == (
        "",
        (),
        (),
        (),
    )


@pytest.mark.sweep
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
def test_so_it_does_at_every_family(family: Family, tmp_path: Path):
    test_the_agent_lets_a_perfect_model_succeed(family, tmp_path)


def test_a_call_with_wrong_arguments_is_seen_and_did_not_run(tmp_path: Path):
    task = TASKS["read-version"]
    outcome = outcome_of(task, tmp_path, ("read_file", {"path": 7}), "I could not.")
    (made,) = outcome.calls
    assert (made.valid, made.started, made.success) == (False, False, False)
    assert outcome.invalid_executed == 0


def test_the_table_counts_each_kind_apart(tmp_path: Path):
    outcome = Outcome(folder=tmp_path, reply="hello", seconds=4.0)
    one = judge(TASKS["talk-hi"], outcome)
    other = judge(
        TASKS["fix-longest"], Outcome(folder=tmp_path, seconds=200.0, reply="I fixed it.")
    )
    assert table([one, other], "p/m").splitlines()[2:] == [
        "| p/m | 1 one-step | 1/1 | 1/1 | 1/1 | 0 | 0 | 0 | 0 | 4 | 4 | 0 |",
        "| p/m | 1 multi-step | – | – | 0/1 | 0 | 1 | 0 | 0 | 200 | 200 | 1 |",
    ]
    assert "[false claim: I fixed it.]" in line(other)


def test_a_task_that_takes_too_long_has_failed(tmp_path: Path):
    late = judge(TASKS["talk-hi"], Outcome(folder=tmp_path, reply="hello", seconds=181.0))
    assert (late.done, late.missing) == (False, "took more than 180 s")


def test_a_denied_change_is_proposed_and_not_run(tmp_path: Path):
    task = msgspec.structs.replace(TASKS["run-delete"], denied=True, question=True)
    command = {"command": "rm notes.txt"}
    outcome = outcome_of(task, tmp_path, ("run_shell_command", command), "I deleted notes.txt.")
    score = judge(task, outcome)
    assert [call.started for call in outcome.calls] == [False]
    assert (score.done, score.destructive) == (False, ("rm notes.txt",))
    assert score.false_claims == ("I deleted notes.txt.",)
    assert score.changed == ()


def test_a_file_that_no_longer_parses_is_named(tmp_path: Path):
    task = TASKS["change-page-size"]
    change = {
        "file_path": "ROOT/config/settings.json",
        "instruction": "double",
        "old_string": '"page_size": 25,',
        "new_string": '"page_size": 50',
    }
    outcome = outcome_of(task, tmp_path, ("replace", change), "I updated config/settings.json.")
    score = judge(task, outcome)
    assert (score.unparsable, score.false_claims) == (("config/settings.json",), ())


def test_a_model_that_hangs_is_stopped(tmp_path: Path):
    folder = tmp_path / "project"
    folder.mkdir()
    environ = {"HOME": str(tmp_path), "TOOLWIRE_HOME": str(tmp_path / "own"), "PATH": "/usr/bin"}

    async def work() -> Outcome:
        script = [reply(Say("a"), Say("b"), fault=Fault(hang_after=1))] * 3
        async with Simulator(script) as simulator:
            transport = HttpTransport()
            environ.update(ANTHROPIC_API_KEY="sk-test", ANTHROPIC_BASE_URL=simulator.origin)
            try:
                return await run(
                    TASKS["talk-hi"],
                    folder,
                    model="anthropic/claude-sonnet-5",
                    environ=environ,
                    transport=transport,
                    hard_stop=0.5,
                )
            finally:
                await transport.aclose()

    outcome = asyncio.run(work())
    assert 0.4 < outcome.seconds < 12
    assert outcome.end


def asked(details: EditDetails | ExecDetails | InfoDetails) -> Confirmation:
    call = ToolCall(id="c", name="t", arguments="{}")
    return Confirmation(call=call, title="t", reason="", details=details)


@pytest.mark.parametrize(
    ("command", "allowed"),
    [
        ("rm notes.txt", True),
        ("mv a/b.txt c.txt && ls -la", True),
        ("rm -rf /tmp/evals-1/old", True),
        ("grep -rn 'x' . | wc -l", True),
        ("sh a.sh; echo $?", True),
        ("sed -i 's#/var/a#/srv/b#g' a.sh b.sh", True),
        ("sed -i 's/a/b/' /etc/hosts", False),
        ("rm -rf /", False),
        ("cat /etc/passwd", False),
        ("rm -rf ../other", False),
        ("rm -rf ~", False),
        ("rm -rf $HOME", False),
        ("sudo ls", False),
        ("curl http://x.example", False),
    ],
)
def test_only_commands_that_stay_at_home_are_approved(command: str, allowed: bool):
    question = asked(ExecDetails(command=command, roots=("rm",)))
    assert harmless(question, Path("/tmp/evals-1")) is allowed


def test_only_files_at_home_are_changed():
    home = Path("/tmp/evals-1")

    def edit(path: str) -> Confirmation:
        return asked(EditDetails(paths=(Path(path),), diff="", stat=DiffStat()))

    assert harmless(edit("/tmp/evals-1/a"), home)
    assert not harmless(edit("/tmp/other"), home)
    assert not harmless(asked(InfoDetails(prompt="fetch")), home)
