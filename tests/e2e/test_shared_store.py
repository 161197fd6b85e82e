"""One PostgreSQL server, two machines: a session goes on where it was left, and is never shared."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.postgres import postgres_url
from tests.fakes.simulated import Place, Simulated
from toolwire.simulator import Reply
from toolwire.simulator.script import Call, Say

pytestmark = pytest.mark.sweep

REMOTE = "https://git.example.org/team/app.git"


def machine(root: Path, url: str) -> Place:
    """A home and a clone of its own."""
    root.mkdir()
    place = Place(root)
    (place.home / "config.toml").write_text(f'[sessions]\nstore = "{url}"\n')
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    subprocess.run(["git", "-C", str(place.work), "remote", "add", "origin", REMOTE], check=True)
    return place


def test_a_session_goes_on_on_another_machine_and_is_refused_while_in_use(tmp_path: Path) -> None:
    url = postgres_url()
    here, there = machine(tmp_path / "a", url), machine(tmp_path / "b", url)
    waits = Call(
        name="run_shell_command", arguments=json.dumps({"command": "touch started; sleep 30"})
    )
    said = (Say("noted: blue"), Say("it was blue"), waits)
    replies = [Reply(pieces=(one,)) for one in said]
    with Simulated(replies) as sim:
        first = here.run(sim, "--output-format", "json", "remember blue")
        assert first.code == 0, first.err
        session = json.loads(first.out)["session_id"]
        assert not list((here.home / "sessions").glob("**/*.sqlite"))
        second = there.run(sim, "--continue", "what was it?")
        assert (second.code, second.out.strip()) == (0, "it was blue"), second.err
        assert "remember blue" in json.dumps(sim.bodies[-1])
        going = here.start(
            *("run", "--upstream", sim.upstream(), "--approval-mode", "yolo"),
            *("--session", session, "wait"),
        )
        try:
            for _ in range(600):
                if (here.work / "started").exists():
                    break
                assert going.poll() is None, going.communicate()
                subprocess.run(["sleep", "0.1"], check=True)
            refused = there.run(sim, "--session", session, "me too")
            assert refused.code != 0
            assert f"in use by process {going.pid} on" in refused.err
        finally:
            going.terminate()
            going.communicate()
    listed = there.toolwire("sessions", "list", "--json")
    assert [one["id"] for one in json.loads(listed.out)] == [session]


def test_a_turn_is_followed_and_ended_from_another_machine(tmp_path: Path) -> None:
    url = postgres_url()
    here, there = machine(tmp_path / "a", url), machine(tmp_path / "b", url)
    waits = Call(name="run_shell_command", arguments=json.dumps({"command": "sleep 300"}))
    with Simulated([Reply(pieces=(waits,))]) as sim:
        going = here.start("run", "--upstream", sim.upstream(), "--approval-mode", "yolo", "wait")
        try:
            listed: list[Any] = []
            while not listed:
                listed = json.loads(there.toolwire("sessions", "list", "--json").out)
                assert going.poll() is None, going.communicate()
            [session] = [one["id"] for one in listed]
            follower = there.start("sessions", "show", session, "--follow")
            lines = [follower.stdout.readline().decode() for _ in range(2)]
            done = there.toolwire("sessions", "cancel", session)
            assert (done.code, done.out) == (0, ""), done.err
            assert f"asked process {going.pid} on" in done.err
            going.communicate(timeout=60)
            assert going.returncode == 130
            lines += [follower.stdout.readline().decode() for _ in range(2)]
            follower.send_signal(signal.SIGINT)
            follower.communicate(timeout=60)
        finally:
            going.kill()
    assert [line.partition("  ")[2].split()[0] for line in lines] == [
        "user:",
        "run_shell_command",
        "run_shell_command:",
        "turn",
    ]
    again = there.toolwire("sessions", "cancel", session)
    assert again.code != 0
    assert "not in use" in again.err
