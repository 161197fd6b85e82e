"""The example of the documentation, whole and with everything killed in the middle."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.examples import ROOT
from tests.fakes.simulated import Place, Simulated
from toolwire.simulator import Question, Reply, load


def slow(question: Question) -> Reply:
    """The example's own script, with a little time for each answer."""
    time.sleep(0.15)
    return SCRIPT.answering()(question)


SCRIPT = load(ROOT / "examples" / "tasks.toml")
TASKS = str(ROOT / "examples" / "tasks.jsonl")


def figures(out: Path) -> dict[str, Any]:
    """What a report says besides times, tokens and numbers of tries."""
    report = msgspec.json.decode((out / "report.json").read_bytes())
    return {name: report[name] for name in ("states", "passed", "by_tag", "errors", "limits")}


def resumes_after_everything_was_killed(tmp_path: Path):
    place = Place(tmp_path)
    killed = tmp_path / "killed"
    with Simulated(slow) as sim:
        run = ("--upstream", sim.upstream(), "-j", "2", "-q")
        process = place.start("batch", "run", TASKS, "-o", str(killed), *run)
        end = time.monotonic() + 60
        asked = len(sim.requests)
        while len(sim.requests) < asked + 2 and time.monotonic() < end:
            time.sleep(0.01)
        hosts = [int(note.name) for note in (killed / "hosts").iterdir()]
        for pid in (process.pid, *hosts):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        done = place.toolwire("batch", "resume", str(killed), "--upstream", sim.upstream(), "-q")
        assert (done.code, done.out) == (0, "passed 3 of 3 (100 %, 44–100 %)\n"), done.err
    assert figures(killed)["states"] == {"passed": 3, "finished": 1}


@pytest.mark.sweep
def test_the_example_ends_in_the_same_report_as_without_a_kill(tmp_path: Path):
    place, whole = Place(tmp_path / "whole"), tmp_path / "out"
    place.root.mkdir()
    with Simulated(slow) as sim:
        done = place.toolwire(
            "batch", "run", TASKS, "-o", str(whole), "--upstream", sim.upstream(), "-q"
        )
    assert (done.code, done.out) == (0, "passed 3 of 3 (100 %, 44–100 %)\n"), done.err
    (tmp_path / "other").mkdir()
    resumes_after_everything_was_killed(tmp_path / "other")
    assert figures(tmp_path / "other" / "killed") == figures(whole)


def test_without_a_model_it_says_how_to_get_one(tmp_path: Path):
    done = Place(tmp_path).toolwire("batch", "run", TASKS, "-o", str(tmp_path / "out"))
    assert done.code == 41
    assert "set a key such as" in done.err or "pip" in done.err
    assert not (tmp_path / "out").exists()
