"""A batch on a server: one driver of all machines, results written once, limits for all hosts."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.batch.batches import Bench, answer, lines_of, write_tasks
from tests.fakes.postgres import postgres_url
from tests.fakes.simulated import Simulated
from toolwire.batch.results import Result, State
from toolwire.batch.store import BatchLost
from toolwire.batch.tasks import Task
from toolwire.errors import BadInput
from toolwire.sessions.sqlite import SqliteStore

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

from tests.fakes.cutting_proxy import CuttingProxy  # noqa: E402
from toolwire.batch.postgres import PostgresBatch  # noqa: E402
from toolwire.batch.postgres_limits import PostgresLimits  # noqa: E402
from toolwire.sessions.postgres.store import PostgresStore  # noqa: E402
from toolwire.sessions.postgres.worker import StoreWorker  # noqa: E402


def made(url: str, count: int = 3) -> PostgresBatch:
    store = PostgresBatch.create(url, "b1")
    store.add((Task(id=f"t{n}", prompt="x") for n in range(count)), ["m"], 1)
    return store


def elsewhere(url: str) -> PostgresBatch:
    """The batch as another machine sees it."""
    store = PostgresBatch(url, "b1")
    store._worker = StoreWorker(url, 60.0)  # pyright: ignore[reportPrivateUsage]
    store._link = store._worker.records  # pyright: ignore[reportPrivateUsage]
    return store


def test_a_second_driver_is_refused_until_the_first_is_done() -> None:
    url = postgres_url()
    store = made(url)
    assert not store.is_taken()
    assert store.take() == 1
    other = elsewhere(url)
    assert other.is_taken()
    with pytest.raises(BadInput, match=r"being run by process \d+ on"):
        other.take()
    store.close()
    assert other.take() == 2
    other.close()


def test_a_driver_that_was_given_up_changes_nothing() -> None:
    url = postgres_url()
    store = made(url)
    store.take()
    store._rows("UPDATE batches SET epoch = 9 WHERE id = %(batch)s")  # pyright: ignore[reportPrivateUsage]
    for change in (lambda: store.claim(1, "h"), lambda: store.give_back(1), store.recover):
        with pytest.raises(BatchLost):
            change()
    store.close()


def test_a_result_cut_at_any_place_is_stored_once(tmp_path: Path) -> None:
    url = postgres_url()
    made(url, 40)
    proxy = CuttingProxy(url, tmp_path)
    store = PostgresBatch(proxy.url, "b1")
    store.take()
    for n in range(1, 21):
        claim = store.claim(n, "h")
        proxy.cut_after("asked" if n % 2 else "answered", n * 7)
        assert store.finish(claim, Result(id=f"t{n - 1}", state=State.PASSED, cost=1.0))
        assert not store.finish(claim, Result(id=f"t{n - 1}", state=State.FAILED))
    assert store.totals().states == {"passed": 20, "waiting": 20}
    assert store.totals().cost == 20.0
    store.close()


def test_values_of_a_batch_are_kept() -> None:
    url = postgres_url()
    store = made(url)
    store.set_meta("note", 'a "quoted" text')
    assert PostgresBatch(url, "b1").meta("note") == 'a "quoted" text'
    assert store.meta("none") == ""


def test_what_is_dropped_takes_its_attempts_along() -> None:
    store = made(postgres_url())
    store.take()
    store.drop(["t1"])
    assert store.ids() == ["t0", "t2"]
    assert [one.id for one in store.waiting(0, 9)] == ["t0", "t2"]
    with pytest.raises(BadInput, match="no task"):
        store.task("t1")
    store.close()


def test_hosts_together_take_no_more_than_the_rate() -> None:
    url = postgres_url()
    taken: list[float] = []
    end = time.monotonic() + 1.5

    def host() -> None:
        limits = PostgresLimits(url, requests=600)
        while time.monotonic() < end:
            wait = limits.take("k", {"requests": 1.0})
            if wait:
                time.sleep(min(wait, 0.05))
            else:
                taken.append(time.monotonic())

    threads = [threading.Thread(target=host) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Ten a second, and what may be taken ahead.
    assert 5 <= len(taken) <= 600 * (1.5 + 2.5) / 60 + 1


def test_a_refusal_holds_for_every_host_and_rates_are_learned() -> None:
    url = postgres_url()
    limits = PostgresLimits(url)
    assert limits.take("k", {"requests": 1.0}) == 0.0
    PostgresLimits(url).block("k", 30)
    assert 25 < limits.take("k", {"requests": 1.0}) <= 30
    limits.learn("other", "requests", 60)
    waits = [PostgresLimits(url).take("other", {"requests": 1.0}) for _ in range(10)]
    assert waits[0] == 0.0
    assert max(waits) > 0.0


def test_a_batch_runs_on_a_server_and_goes_on_after_a_kill(tmp_path: Path) -> None:
    url = postgres_url()
    tasks: list[dict[str, Any]] = [
        {
            "id": f"t{n}",
            "prompt": f"RUN echo {n} >> out.txt; sleep {2 if n == 3 else 0}",
            "workspace": {"files": {"in.txt": "input"}},
            "check": {"command": f"test $(grep -c {n} out.txt) = 1"},
        }
        for n in range(4)
    ]
    with Simulated(answer) as sim:
        bench = Bench(tmp_path, sim)
        (bench.place.home / "config.toml").write_text(f'[sessions]\nstore = "{url}"\n')
        file = write_tasks(bench.place.work / "tasks.jsonl", tasks)
        given = ("--upstream", sim.upstream(), "-j", "2", "-q", "-o", str(bench.out))
        driver = bench.place.start("batch", "run", str(file), *given)
        deadline = time.monotonic() + 60
        while not list(bench.out.glob("tasks/*/session/id")):
            assert time.monotonic() < deadline, driver.communicate()
            assert driver.poll() is None, driver.communicate()
            time.sleep(0.05)
        driver.kill()
        driver.communicate()
        # On this machine nobody waits for the lease of a process that has ended.
        resumed = bench.batch("resume", str(bench.out), "-q", "--upstream", sim.upstream())
        assert resumed.code == 0, resumed.err
        shown = bench.batch("show", str(bench.out), "t0", "--session")
        assert "RUN echo 0" in shown.out, shown.err
    lines = lines_of(bench.out)
    assert sorted(lines) == [task["id"] for task in tasks]
    for line in lines.values():
        # The kill may hit a command before its start or its first effect: it is never run again,
        # and the model reads that it was not run or that its outcome is unknown.
        lost = line["unknown"] or any(
            word in line["response"] for word in ("not run", "interrupted")
        )
        assert line["state"] == "passed" or (line["state"] == "failed" and lost), line
        # Beside its id the session is exported, as it is on the server.
        copy = SqliteStore(bench.out / "tasks" / line["id"] / "session").export_rows(
            line["session"]
        )
        assert copy.rows == PostgresStore(url).export_rows(line["session"]).rows
    assert not (bench.out / "batch.sqlite").exists()
    with psycopg.connect(url, autocommit=True) as connection:
        sessions = connection.execute("SELECT id FROM sessions").fetchall()
        assert {line["session"] for line in lines.values()} <= {row[0] for row in sessions}
