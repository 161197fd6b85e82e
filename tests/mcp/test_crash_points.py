"""Servers and clients that end at every point: no process is left, no call is sent twice."""

import asyncio
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.simulated import Place, Simulated
from tests.mcp.crash_client import CALLS, run
from tests.mcp.crashing_server import POINTS, WAYS
from toolwire.simulator import Reply
from toolwire.simulator.script import Call

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
OWN = [
    (point, how, once)
    for point, how, once in itertools.product(POINTS, WAYS[:-1], (True, False))
    # A server that is stopped for ever costs the limit of time at each start.
    if not (how in ("stop", "close output") and not once)
]
CLIENT = [(point, "kill client", True) for point in POINTS]
RANDOM = 200 - len(OWN) - len(CLIENT)
SAMPLE = [
    ("initialize half answered", "kill", True),
    ("list received", "exit 3", True),
    ("call received", "kill", False),
    ("call done", "kill", True),
    ("call progress", "abort", True),
    ("call done", "close output", True),
    ("end of input", "stop", True),
    ("call done", "kill client", True),
    ("initialize received", "kill client", True),
]


def left(token: str) -> list[str]:
    """The command lines of processes that have the token in them or in their environment."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            words = (folder / "cmdline").read_bytes()
            known = words + (folder / "environ").read_bytes()
        except OSError:
            continue
        if token.encode() in known:
            found.append(words.replace(b"\0", b" ").decode("utf-8", "replace"))
    return found


def none_left(token: str, seconds: float) -> list[str]:
    end = time.monotonic() + seconds
    while (found := left(token)) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def recorded(folder: Path) -> list[str]:
    file = folder / "record"
    return file.read_text().split() if file.exists() else []


def settings(folder: Path, point: str, how: str, once: bool) -> tuple[str, dict[str, Any]]:
    token = str(random.SystemRandom().randrange(10**11, 10**12))
    given: dict[str, Any] = {"token": token, "record": str(folder / "record")}
    given |= {"point": point, "how": how}
    return token, given | ({"once": str(folder / "crashed")} if once else {})


def check(folder: Path, point: str, how: str, once: bool) -> None:
    token, given = settings(folder, point, how, once)
    if how == "kill client":
        kill_client(folder, token, given, None)
        return
    answers = asyncio.run(run(folder, given))
    assert none_left(token, 0) == []
    assert len(answers) == CALLS
    calls = recorded(folder)
    assert len(calls) == len(set(calls)), "a call was sent twice"
    good = {answer for answer in answers if answer.isdigit()}
    assert good <= set(calls)
    if once and how != "stop":
        # One crash costs at most the call in flight.
        assert len(good) >= CALLS - 1, answers


def kill_client(folder: Path, token: str, given: dict[str, Any], after: float | None) -> None:
    words = [sys.executable, "-m", "tests.mcp.crash_client", str(folder), json.dumps(given)]
    environ = {**os.environ, "CRASH_TOKEN": token}
    client = subprocess.Popen(words, cwd=ROOT, env=environ, stdout=subprocess.PIPE)
    if after is not None:
        time.sleep(after)
        client.kill()
    client.communicate(timeout=60)
    assert none_left(token, 15) == []
    calls = recorded(folder)
    assert len(calls) == len(set(calls)), "a call was sent twice"


@pytest.mark.parametrize(("point", "how", "once"), SAMPLE, ids=str)
def test_a_crash_leaves_no_process_and_repeats_no_call(
    tmp_path: Path, point: str, how: str, once: bool
):
    check(tmp_path, point, how, once)


@pytest.mark.sweep
@pytest.mark.parametrize(("point", "how", "once"), [*OWN, *CLIENT], ids=str)
def test_every_crash_leaves_no_process_and_repeats_no_call(
    tmp_path: Path, point: str, how: str, once: bool
):
    check(tmp_path, point, how, once)


@pytest.mark.sweep
@pytest.mark.parametrize("number", range(RANDOM))
def test_a_client_killed_at_any_time_leaves_no_process(tmp_path: Path, number: int):
    token, given = settings(tmp_path, "never", "kill", False)
    # From the start of the interpreter to the end of the calls.
    kill_client(tmp_path, token, given, 1.5 * number / RANDOM)


_CALLING = """
from pathlib import Path
import subprocess, time
subprocess.Popen(["sleep", "1000.0{token}"], start_new_session=True)
Path("{folder}/calling").touch()
time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_run_that_is_ended_in_a_call_leaves_no_process(tmp_path: Path, number: signal.Signals):
    place = Place(tmp_path)
    token = str(random.SystemRandom().randrange(10**11, 10**12))
    program = _CALLING.format(token=token, folder=tmp_path)
    words = json.dumps([str(Path(__file__).with_name("raw_server.py")), program])
    table = f'[mcp_servers.slow]\ncommand = "{sys.executable}"\nargs = {words}\n'
    (place.home / "config.toml").write_text(table)
    with Simulated([Reply(pieces=(Call.of("echo"),))]) as sim:
        # A child inherits what is ignored: below nohup, the hangup.
        before = signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        run = place.start("run", "go", "--yolo", "--upstream", sim.upstream())
        if before is not None:
            signal.signal(number, before)
        end = time.monotonic() + 60
        while not (tmp_path / "calling").exists():
            assert run.poll() is None, run.communicate()
            assert time.monotonic() < end
            time.sleep(0.02)
        assert left(token)
        run.send_signal(number)
        run.communicate(timeout=60)
    assert none_left(token, 15) == []
