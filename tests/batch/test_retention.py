"""Batches that were not used for longer than `batch.keep_days`."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.batch.batches import Bench, answer, write_tasks
from tests.fakes.postgres import postgres_url
from tests.fakes.simulated import Simulated

DAYS = 86_400


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulated]:
    with Simulated(answer) as running:
        yield running


def made(bench: Bench, name: str, age: int = 0) -> Path:
    """A batch that ended, as old as so many days."""
    out = bench.place.root / name
    file = write_tasks(bench.place.work / "tasks.jsonl", [{"id": "t", "prompt": "RUN echo x"}])
    given = ("--upstream", bench.sim.upstream(), "-q")
    done = bench.batch("run", str(file), "-o", str(out), *given)
    assert done.code == 0, done.err
    then = time.time() - age * DAYS
    for path in out.iterdir():
        os.utime(path, (then, then))
    return out


@pytest.mark.parametrize("server", [False, True])
def test_old_batches_go_with_all_that_they_made(sim: Simulated, tmp_path: Path, server: bool):
    bench, url = Bench(tmp_path, sim), postgres_url() if server else ""
    (bench.place.home / "config.toml").write_text(f'[sessions]\nstore = "{url}"\n')
    old, young, mixed = made(bench, "old", 31), made(bench, "young", 29), made(bench, "mixed", 40)
    (mixed / "notes.txt").write_text("the user's own")
    moved = made(bench, "moved", 50).rename(tmp_path / "elsewhere")
    listed = bench.batch("prune", "--days", "30", "--dry-run")
    assert sorted(listed.out.split()) == [str(mixed), str(old)], listed.err
    assert old.exists()
    pruned = bench.batch("prune", "--days", "30")
    assert pruned.code == 0, pruned.err
    assert not old.exists()
    assert [path.name for path in mixed.iterdir()] == ["notes.txt"]
    assert (young / "report.json").exists()
    assert (moved / "report.json").exists(), "no longer where it was noted"
    assert bench.batch("status", str(young)).code == 0
    if server:
        with psycopg.connect(url, autocommit=True) as connection:
            for table, left in (("batches", 2), ("runs", 2), ("sessions", 2)):
                counted = connection.execute(f"SELECT count(*) FROM {table}".encode())
                assert counted.fetchall() == [(left,)], table


def test_the_next_run_removes_what_the_setting_makes_old(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    old, young = made(bench, "old", 8), made(bench, "young", 6)
    refused = bench.batch("prune")
    assert refused.code != 0
    assert "batch.keep_days is 0" in refused.err
    (bench.place.home / "config.toml").write_text("[batch]\nkeep_days = 7\n")
    new = made(bench, "new")
    assert [path.exists() for path in (old, young, new)] == [False, True, True]


def test_a_batch_that_runs_is_not_removed(sim: Simulated, tmp_path: Path):
    bench = Bench(tmp_path, sim)
    wait = f"RUN touch {tmp_path}/mark; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    file = write_tasks(bench.place.work / "tasks.jsonl", [{"id": "t", "prompt": wait}])
    given = ("--upstream", sim.upstream(), "-q", "--sandbox", "copy")
    (bench.place.home / "config.toml").write_text('[tools]\nsandbox = "off"\n')
    driver = bench.place.start("batch", "run", str(file), "-o", str(bench.out), *given)
    end = time.monotonic() + 60
    while not (tmp_path / "mark").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    for path in bench.out.iterdir():
        os.utime(path, (0, 0))
    assert bench.batch("prune", "--days", "1").code == 0
    (tmp_path / "go").touch()
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 0, err
    assert (bench.out / "report.json").exists()
