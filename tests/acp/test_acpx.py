"""Another program's client: acpx (npm, Node 22.13 or newer) drives an edit, a command, a load.

`npm install --prefix build acpx node@22` puts both where this looks.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import LONGEST, Place, Simulated
from toolwire.simulator import Call, Reply, Say

BIN = Path(__file__).parents[2] / "build" / "node_modules" / ".bin"
PATH = os.pathsep.join((str(BIN), os.environ.get("PATH", "")))


def version() -> tuple[int, ...]:
    node = shutil.which("node", path=PATH)
    if node is None:
        return ()
    done = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    return tuple(int(each) for each in done.stdout.strip().lstrip("v").split(".") if each)


ACPX = shutil.which("acpx", path=PATH)
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(ACPX is None, reason="acpx is not installed"),
    pytest.mark.skipif(ACPX is not None and version() < (22, 13), reason="needs Node 22.13"),
]


class Acpx:
    """The program, in a folder of its own."""

    def __init__(self, place: Place, sim: Simulated) -> None:
        agent = f"{sys.executable} -m toolwire acp --upstream {sim.upstream()}"
        # Its own process keeps the agent for a while after a prompt: a second here.
        self._words = (
            *(str(ACPX), "--agent", agent, "--cwd", str(place.work)),
            *("--format", "json", "--ttl", "1"),
        )
        self._env = place.environ(PATH=PATH)
        self._cwd = place.work

    def __call__(self, *args: str, approve: str = "--approve-all") -> list[dict[str, Any]]:
        done = subprocess.run(
            [*self._words, approve, *args],
            env=self._env,
            cwd=self._cwd,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def wait_until_idle(self) -> None:
        """Returns when its own process and the agent have ended."""
        end = time.monotonic() + LONGEST
        while self("status")[0]["status"] != "idle":
            assert time.monotonic() < end
            time.sleep(0.2)


def updates(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    found = [one["params"]["update"] for one in messages if one.get("method") == "session/update"]
    return [one for one in found if one["sessionUpdate"] == kind]


def test_an_edit_a_command_and_a_load(tmp_path: Path):
    place = Place(tmp_path)
    path = place.work / "a.txt"
    path.write_text("one\n")
    edit = Call.of(
        "replace", file_path=str(path), instruction="x", old_string="one", new_string="two"
    )
    run = Call.of("run_shell_command", command="echo from a command; touch made")
    replies = [
        *(Reply(pieces=(edit,)), Reply(pieces=(run,)), Reply(pieces=(Say("all done"),))),
        Reply(pieces=(Say("still here"),)),
    ]
    with Simulated(replies) as sim:
        acpx = Acpx(place, sim)
        acpx("sessions", "new")
        first = acpx("prompt", "change the file")
        assert path.read_text() == "two\n"
        assert (place.work / "made").exists()
        ends = [one["status"] for one in updates(first, "tool_call_update") if "status" in one]
        assert ends == ["in_progress", "completed"] * 2
        assert any(one.get("method") == "fs/write_text_file" for one in first)
        assert first[-1]["result"] == {"stopReason": "end_turn"}
        acpx.wait_until_idle()
        # The session is loaded by another agent.
        second = acpx("prompt", "and now?")
        methods = [one["method"] for one in second if "method" in one and "id" in one]
        assert {"session/load", "session/resume"} & set(methods)
        assert "all done" in json.dumps(sim.bodies[-1]["messages"])
        [listed] = acpx("sessions")[0]["sessions"]
        assert (listed["cwd"], listed["title"]) == (str(place.work), "change the file")
        assert acpx("set-mode", "plan")[0]["modeId"] == "plan"
        acpx.wait_until_idle()
        assert sim.refusals == []
