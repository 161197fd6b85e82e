import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.gateway.test_ledger import AT, STORES, record
from toolwire.events import Usage
from toolwire.gateway.booking import Bookings
from toolwire.gateway.database import SqlConnection, SqliteDatabase
from toolwire.gateway.ledger import UPGRADES, VERSION, Ledger, SqliteLedger
from toolwire.gateway.ledger_rows import SCHEMA
from toolwire.gateway.store import NANO, Entry, LedgerFailed, UsageSum


class CountingDatabase(SqliteDatabase):
    """Counts its transactions."""

    transactions = 0

    def _begun(self) -> SqlConnection:
        self.transactions += 1
        return super()._begun()


@pytest.mark.parametrize("kind", sorted(STORES))
def test_requests_that_end_together_are_all_booked_once(kind: str, tmp_path: Path):
    store: Ledger = STORES[kind](tmp_path)
    used = Usage(input=10, output=5)

    async def work() -> list[UsageSum]:
        async with asyncio.TaskGroup() as group:
            for number in (*range(100), *range(50)):
                entry = Entry(record(number, cost=1000 / NANO, usage=used), f"k{number % 3}")
                group.create_task(store.book(entry))
        rows = await store.requests(limit=1000)
        assert len({str(row["id"]) for row in rows}) == len(rows) == 100
        return await store.usage("day")

    (day,) = asyncio.run(work())
    store.close()
    assert (day.requests, day.input, day.output, day.cost) == (100, 1000, 500, 100_000 / NANO)


def test_many_share_a_transaction(tmp_path: Path):
    base = CountingDatabase(tmp_path / "l.sqlite", SCHEMA, VERSION, UPGRADES)
    bookings = Bookings(base)

    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(bookings.add(Entry(record(number), "k1")))
        assert await base.fetch("SELECT count(*) FROM requests") == [(200,)]

    asyncio.run(work())
    base.close()
    assert base.transactions <= 3


def test_one_that_cannot_be_booked_does_not_stop_the_others(tmp_path: Path):
    store = SqliteLedger(tmp_path / "l.sqlite")
    broken = record(0)
    broken.client = object()  # pyright: ignore[reportAttributeAccessIssue]

    async def work() -> None:
        entries = [Entry(broken, "k1"), *(Entry(record(number), "k1") for number in range(1, 9))]
        done = await asyncio.gather(*map(store.book, entries), return_exceptions=True)
        assert [type(one) for one in done] == [LedgerFailed, *[type(None)] * 8]
        assert len(await store.requests()) == 8

    asyncio.run(work())
    store.close()


def test_requests_that_were_booked_before_do_not_stop_the_others_of_their_batch(tmp_path: Path):
    store = SqliteLedger(tmp_path / "l.sqlite")

    async def book(*numbers: int) -> None:
        entries = [Entry(record(number, cost=1e-6), "k1") for number in numbers]
        await asyncio.gather(*map(store.book, entries))

    async def work() -> None:
        await book(1, 2)
        await book(0, 1, 2, 3, 4)
        assert sorted(str(row["id"]) for row in await store.requests()) == [
            *("r0", "r1", "r2", "r3", "r4")
        ]
        (day,) = await store.usage("day")
        assert (day.requests, day.cost) == (5, 5e-6)
        assert not store.failure

    asyncio.run(work())
    store.close()


def test_many_keys_and_models_of_one_batch_each_get_their_sums(tmp_path: Path):
    store = SqliteLedger(tmp_path / "l.sqlite")

    async def work() -> None:
        for round in range(2):
            entries = [
                Entry(record(1000 * round + number, model=f"m{number}", duration=0.1), f"k{number}")
                for number in range(100)
            ]
            await asyncio.gather(*map(store.book, entries))
        rows = await store.usage_rows(("model",), "", "~")
        assert [(row.requests, row.p50) for row in rows] == [(2, 0.1076)] * 100
        assert len(rows) == 100

    asyncio.run(work())
    store.close()


def test_an_older_ledger_is_upgraded_with_its_requests(tmp_path: Path):
    path = tmp_path / "l.sqlite"
    older = SqliteDatabase(path, SCHEMA, 3, UPGRADES[:2])
    row = "INSERT INTO requests (id, time, key, key_name, route, output) VALUES (?, ?, ?, ?, ?, ?)"

    async def fill() -> None:
        rows = [(f"r{n}", AT + n % 2, "k1", "ci", "fast", n) for n in range(4)]
        await older.write(lambda base: base.executemany(row, rows))

    asyncio.run(fill())
    older.close()
    store = SqliteLedger(path)

    async def work() -> None:
        await store.book(Entry(record(0), "k1"))
        assert await store.usage("day") == []
        await store.book(Entry(record(4, time=AT + 2), "k1"))
        found = [(row["id"], row["output"]) for row in await store.find_requests("", (), 10)]
        assert found == [("r4", 0), ("r3", 3), ("r1", 1), ("r2", 2), ("r0", 0)]

    asyncio.run(work())
    store.close()


def test_what_waits_when_the_ledger_closes_is_booked(tmp_path: Path):
    path = tmp_path / "l.sqlite"
    store = SqliteLedger(path)

    async def work() -> None:
        tasks = [asyncio.create_task(store.book(Entry(record(n), "k1"))) for n in range(5)]
        await asyncio.sleep(0)
        store.close()
        for task in tasks:
            task.cancel()

    asyncio.run(work())
    again = SqliteLedger(path)
    assert len(asyncio.run(again.requests())) == 5
    again.close()


BOOKING = """
import asyncio, sys
from itertools import count
from pathlib import Path
from toolwire.gateway.ledger import SqliteLedger
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import Entry

async def one(store, numbers):
    for number in numbers:
        record = RequestRecord(id=f"r{number}", time=1794839400.0, key="ci", cost=1e-06)
        await store.book(Entry(record, "k1"))
        print(record.id, flush=True)

async def main():
    store, numbers = SqliteLedger(Path(sys.argv[1])), count()
    await asyncio.gather(*(one(store, numbers) for _ in range(40)))

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [1, 40, 333])
def test_after_a_kill_between_batches_all_that_ended_is_booked(after: int, tmp_path: Path):
    path = tmp_path / "l.sqlite"
    other = subprocess.Popen(
        [sys.executable, "-c", BOOKING, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    read: Callable[[], str] = other.stdout.readline
    ended = [read().strip() for _ in range(after)]
    os.kill(other.pid, signal.SIGKILL)
    # A line may be cut by the kill.
    ended += [line.strip() for line in other.stdout.readlines() if line.endswith("\n")]
    other.wait()
    store = SqliteLedger(path)

    async def work() -> tuple[set[str], int]:
        rows = await store.requests(limit=100_000)
        (day,) = await store.usage("day")
        assert day.cost * NANO == pytest.approx(1000 * len(rows))
        return {str(row["id"]) for row in rows}, day.requests

    booked, counted = asyncio.run(work())
    store.close()
    assert set(ended) <= booked
    assert counted == len(booked)
