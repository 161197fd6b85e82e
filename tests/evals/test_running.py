import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evals import multi_step, one_step
from evals.approving import harmless
from evals.report import judge, line, table
from evals.running import run
from evals.task import Outcome, Task
from toolwire.agent.questions import Confirmation, EditDetails, ExecDetails, InfoDetails
from toolwire.client.http.transport import Incoming, Outgoing
from toolwire.messages import ToolCall
from toolwire.tools.proposals import DiffStat

TASKS = {task.id: task for task in (*one_step.TASKS, *multi_step.TASKS)}


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
        text = json.dumps(arguments).replace("ROOT", str(self._folder))
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
    score = judge(task, outcome, "one-step")
    assert (score.tool, score.arguments, score.done, score.invalid_executed) == (
        True,
        True,
        True,
        0,
    )
    assert outcome.calls[0].started
    assert outcome.calls[0].success


def test_a_guess_is_no_right_call(tmp_path: Path):
    task = TASKS["read-version"]
    score = judge(task, outcome_of(task, tmp_path, "It is version 1.0."), "one-step")
    assert (score.tool, score.arguments, score.done) == (False, False, False)
    assert line(score).startswith("MISS")


def test_a_deletion_is_approved_and_checked_on_the_disk(tmp_path: Path):
    task = TASKS["run-delete"]
    outcome = outcome_of(
        task, tmp_path, ("run_shell_command", {"command": "rm notes.txt"}), "It is gone."
    )
    assert judge(task, outcome, "one-step").done


def test_several_steps_mend_a_bug(tmp_path: Path):
    task = TASKS["fix-longest"]
    change = {
        "file_path": "ROOT/counting.py",
        "instruction": "mend",
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
    assert judge(task, outcome, "multi-step").missing == ""


def test_a_call_with_wrong_arguments_is_seen_and_did_not_run(tmp_path: Path):
    task = TASKS["read-version"]
    outcome = outcome_of(task, tmp_path, ("read_file", {"path": 7}), "I could not.")
    (made,) = outcome.calls
    assert (made.valid, made.started, made.success) == (False, False, False)
    assert outcome.invalid_executed == 0


def test_the_table_counts_each_kind_apart(tmp_path: Path):
    outcome = Outcome(folder=tmp_path, reply="hello", seconds=4.0)
    one = judge(TASKS["talk-hi"], outcome, "one-step")
    other = judge(TASKS["fix-longest"], Outcome(folder=tmp_path, seconds=9.0), "multi-step")
    assert table([one, other], "p/m").splitlines()[2:] == [
        "| p/m | 1 one-step | 1/1 | 1/1 | 1/1 | 0 | 4 |",
        "| p/m | 1 multi-step | – | – | 0/1 | 0 | 9 |",
    ]


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
