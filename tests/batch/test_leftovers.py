"""A batch in the sandbox that is killed: processes, mounts and worktrees are as before."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.batch.batches import Bench, answer, lines_of, processes_with, until, write_tasks
from tests.fakes.simulated import Simulated
from toolwire.tools.shell.sandbox import detect

pytestmark = pytest.mark.sweep

SLEEP = f"31{os.getpid()}"
"""Seconds that no other program sleeps: what names our commands in the table of processes."""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def repository(folder: Path) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("first\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def table(root: Path, repo: Path) -> dict[str, Any]:
    """Our processes, the mounts, and the worktrees of the repository."""
    return {
        "processes": sorted((*processes_with(str(root)), *processes_with(f"sleep {SLEEP}"))),
        "mounts": Path("/proc/self/mountinfo").read_text(),
        "worktrees": git(repo, "worktree", "list"),
        "references": git(repo, "for-each-ref"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["namespaces", "bubblewrap"])
def test_nothing_is_left_of_a_batch_in_the_sandbox_that_was_killed(tmp_path: Path, kind: str):
    environ = {detect.VARIABLE: kind}
    if detect.kind(environ) != kind:
        pytest.skip(f"{kind} does not work here")
    repo = repository(tmp_path / "repo")
    tasks: list[dict[str, Any]] = [
        {
            "id": f"t{n}",
            "prompt": f"RUN echo new > b.txt; touch started; sleep {SLEEP}\nRUN cat a.txt b.txt",
            "workspace": {"git": str(repo)},
            "check": {"command": "test -f b.txt"},
        }
        for n in range(3)
    ]
    before = table(tmp_path, repo)
    with Simulated(answer) as sim:
        bench = Bench(tmp_path, sim)
        file = write_tasks(bench.place.work / "tasks.jsonl", tasks)
        given = ("--upstream", sim.upstream(), "-q")
        options = ("-o", str(bench.out), "--sandbox", "bwrap", "-j", "3")
        driver = bench.place.start("batch", "run", str(file), *options, *given, env=environ)
        until(lambda: len(list(bench.out.glob("work/*/*/started"))) == 3)
        assert len(table(tmp_path, repo)["processes"]) > 3
        for pid in (driver.pid, *(int(note.name) for note in (bench.out / "hosts").iterdir())):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        driver.communicate()
        # What ran in the sandbox ends with its host, before anything is resumed.
        until(lambda: table(tmp_path, repo) == before)
        resumed = bench.batch("resume", str(bench.out), *given, env=environ)
        assert resumed.code == 0, resumed.err
    assert {line["state"] for line in lines_of(bench.out).values()} == {"passed"}
    assert sum(line["unknown"] for line in lines_of(bench.out).values()) == 3
    assert table(tmp_path, repo) == before
    assert [*(bench.out / "work").iterdir(), *(bench.out / "hosts").iterdir()] == []
    assert [*(bench.out / "starts").iterdir()] == []
