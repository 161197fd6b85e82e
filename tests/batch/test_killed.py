"""What the model reads after a driver was killed or stopped while its call ran."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.batch.batches import Bench, answer, lines_of, until, write_tasks
from tests.fakes.simulated import Simulated

pytestmark = pytest.mark.sweep


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulated]:
    with Simulated(answer) as running:
        yield running


@pytest.mark.parametrize("signals", [(signal.SIGKILL,), (signal.SIGINT, signal.SIGINT)])
def test_a_call_that_a_host_ended_reads_as_interrupted(
    sim: Simulated, tmp_path: Path, signals: tuple[signal.Signals, ...]
):
    bench = Bench(tmp_path, sim)
    (bench.place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    mark, go = tmp_path / "mark", tmp_path / "go"
    wait = f"RUN echo x >> {mark}; while [ ! -e {go} ]; do sleep 0.02; done\nRUN echo end"
    file = write_tasks(bench.place.work / "tasks.jsonl", [{"id": "t", "prompt": wait}])
    given = ("--upstream", sim.upstream(), "-q")
    driver = bench.place.start("batch", "run", str(file), "-o", str(bench.out), *given)
    until(mark.exists)
    (host,) = (bench.out / "hosts").iterdir()
    for one in signals:
        driver.send_signal(one)
        time.sleep(0.3)
    driver.communicate(timeout=60)
    # The host notices that its driver is gone, and ends by itself.
    until(lambda: not Path(f"/proc/{host.name}/task").exists())
    before = len(sim.bodies)
    go.touch()
    assert bench.batch("resume", str(bench.out), *given).code == 0
    read = msgspec.json.encode(sim.bodies[before:]).decode()
    assert "interrupted, outcome unknown: the session ended while this ran" in read
    assert "cancelled by user" not in read
    line = lines_of(bench.out)["t"]
    assert (line["state"], line["unknown"], line["calls"]) == ("finished", 1, 2)
    assert mark.read_text() == "x\n"


def test_calls_are_not_run_again_after_an_error_of_the_patch(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    (bench.place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    mark, broken, tools = tmp_path / "mark", tmp_path / "broken", tmp_path / "bin"
    tools.mkdir()
    git = shutil.which("git")
    (tools / "git").write_text(
        f'#!/bin/sh\nif [ -e {broken} ]; then rm {broken}; exit 3; fi\nexec {git} "$@"\n'
    )
    (tools / "git").chmod(0o755)
    command = f"RUN echo x >> {mark}; echo new > a.txt; touch {broken}"
    task = {"id": "t", "prompt": command, "workspace": {"files": {"a.txt": "old"}}}
    done = bench.run([task], PATH=f"{tools}:{os.environ['PATH']}")
    assert done.code == 0, done.err
    line = lines_of(bench.out)["t"]
    assert (line["state"], line["tries"], line["patch"]["files"]) == ("finished", 2, 1)
    assert not broken.exists()
    assert mark.read_text() == "x\n"
