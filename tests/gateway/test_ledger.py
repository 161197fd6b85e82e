import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.postgres import postgres_url
from toolwire.errors import BadInput
from toolwire.events import Usage
from toolwire.gateway.ledger import Ledger, SqliteLedger
from toolwire.gateway.limits import Rates
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import (
    NANO,
    Budget,
    Claim,
    Entry,
    GatewayStore,
    KeyRules,
    LedgerFailed,
    UsageSum,
    VirtualKey,
    window_end,
    window_name,
    window_start,
)

T = TypeVar("T")
AT = 1_794_839_400.0
"""2026-11-16T14:10:00Z."""
KEY = VirtualKey(id="k1", name="ci", digest=b"d", created=1.0)


def on_server(folder: Path) -> Ledger:
    del folder
    url = postgres_url()
    from toolwire.gateway.postgres import PostgresLedger

    return PostgresLedger(url, clock=lambda: AT)


# Each store is held to the same tests.
STORES: dict[str, Callable[[Path], Ledger]] = {
    "sqlite": lambda folder: SqliteLedger(folder / "ledger.sqlite", clock=lambda: AT),
    "postgres": on_server,
}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GatewayStore]:
    made = STORES[request.param](tmp_path)
    yield made
    made.close()


def run(work: Awaitable[T]) -> T:
    async def awaited() -> T:
        return await work

    return asyncio.run(awaited())


def claim(number: int, budgets: tuple[Budget, ...], **members: object) -> Claim:
    usual: dict[str, object] = {
        "key": "k1",
        "route": "fast",
        "at": AT,
        "input_cost": 100,
        "output_price": 1.0,
    }
    return Claim(id=f"r{number}", budgets=budgets, **usual | members)  # pyright: ignore[reportArgumentType]


def record(number: int, *, cost: float | None = 0.0, **members: object) -> RequestRecord:
    usual: dict[str, object] = {"time": AT, "key": "ci", "route": "fast", "provider": "groq"}
    usual |= {"model": "qwen-3", "status": 200, "cost": cost}
    return RequestRecord(id=f"r{number}", **usual | members)  # pyright: ignore[reportArgumentType]


def test_a_key_is_stored_changed_and_listed(store: GatewayStore) -> None:
    async def work() -> None:
        rules = KeyRules(models=("groq/*",), budgets=(Budget(20.0, "month"),), rpm=5, hard=True)
        key = VirtualKey(id="a", name="ci", digest=b"x", rules=rules, created=1.0, expires=9.0)
        await store.add_key(key)
        assert await store.key("a") == key
        assert await store.key("b") is None
        with pytest.raises(BadInput, match='there is a key named "ci"'):
            await store.add_key(VirtualKey(id="b", name="ci", digest=b"y"))
        revoked = VirtualKey(id="a", name="ci", digest=b"x", rules=rules, created=1.0, revoked=2.0)
        await store.change_key(revoked)
        await store.add_key(VirtualKey(id="b", name="ci", digest=b"y", created=3.0))
        assert [one.id for one in await store.keys()] == ["a", "b"]
        await store.book(Entry(record(1), "b"))
        assert [one.last_used for one in await store.keys()] == [None, AT]

    run(work())


def test_a_reservation_counts_until_the_request_is_booked(store: GatewayStore) -> None:
    budget = (Budget(0.000005, "day"),)

    async def work() -> None:
        key = VirtualKey(id="k1", name="ci", digest=b"", rules=KeyRules(budgets=budget))
        assert await store.reserve(claim(1, budget)) is None
        assert await store.reserve(claim(2, budget)) is None
        refused = await store.reserve(claim(3, budget))
        assert refused is not None
        assert (refused.spent, refused.reserved, refused.left) == (0, 4200, 800)
        assert refused.resets == window_end("day", AT)
        await store.book(Entry(record(1, cost=0.000001), "k1"))
        assert await store.reserve(claim(3, budget, max_output=1700)) is None
        store.release("r2")
        (found,) = await store.spending(key, AT)
        assert (found.spent, found.reserved) == (1000, 1800)

    run(work())


def test_a_request_is_booked_once(store: GatewayStore) -> None:
    async def work() -> list[UsageSum]:
        for _ in range(3):
            await store.book(Entry(record(1, cost=0.5, usage=Usage(input=10, output=5)), "k1"))
        return await store.usage("key")

    expected = UsageSum(name="ci", requests=1, input=10, output=5, cost=0.5)
    assert run(work()) == [expected]


def test_cached_tokens_are_counted_once_whatever_the_vendor_includes(store: GatewayStore) -> None:
    inside = Usage(input=100, output=20, cached=60, cache_write=10, reasoning=5)
    outside = Usage(
        input=30,
        output=15,
        cached=60,
        cache_write=10,
        reasoning=5,
        cache_in_input=False,
        reasoning_in_output=False,
    )

    async def work() -> list[UsageSum]:
        await store.book(Entry(record(1, usage=inside, model="a"), "k1"))
        await store.book(Entry(record(2, usage=outside, model="b"), "k1"))
        return await store.usage("model")

    counts = {"requests": 1, "input": 100, "output": 20, "cached": 60}
    counts |= {"cache_write": 10, "reasoning": 5}
    assert run(work()) == [UsageSum(name="groq/a", **counts), UsageSum(name="groq/b", **counts)]


def test_sums_are_kept_by_day_key_and_model_and_outlive_the_requests(store: GatewayStore) -> None:
    day = 86_400

    async def work() -> None:
        await store.book(Entry(record(1, cost=1.0), "k1"))
        await store.book(Entry(record(2, cost=2.0, time=AT - 100 * day), "k1"))
        unknown = record(3, cost=None, usage=Usage(input=1), error="server", key="b", time=AT + day)
        await store.book(Entry(unknown, "k2"))
        assert await store.prune(AT, 90) == 1
        assert [row["id"] for row in await store.requests()] == ["r3", "r1"]
        assert await store.usage("day") == [
            UsageSum(name="2026-08-08", requests=1, cost=2.0),
            UsageSum(name="2026-11-16", requests=1, cost=1.0),
            UsageSum(name="2026-11-17", requests=1, errors=1, input=1, unpriced=1),
        ]
        assert [one.name for one in await store.usage("key", "2026-11-01")] == ["ci", "b"]
        assert await store.usage("key", "2026-11-17", "2026-11-17") == [
            UsageSum(name="b", requests=1, errors=1, input=1, unpriced=1)
        ]

    run(work())


def test_a_budget_is_that_of_its_window(store: GatewayStore) -> None:
    budgets = (Budget(1.0, "hour"), Budget(2.0, "day"), Budget(2.5, "month"))
    hour = 3600

    async def refused(at: float) -> str | None:
        found = await store.reserve(claim(int(at), budgets, at=at))
        if found is None:
            store.release(f"r{int(at)}")
        return None if found is None else found.budget.window

    async def work() -> list[str | None]:
        await store.book(Entry(record(1, cost=1.0), "k1"))
        found = [await refused(AT), await refused(AT + hour)]
        await store.book(Entry(record(2, cost=1.0, time=AT + hour), "k1"))
        found += [await refused(AT + 2 * hour), await refused(AT + 24 * hour)]
        await store.book(Entry(record(3, cost=0.9, time=AT + 24 * hour), "k1"))
        found += [await refused(AT + 48 * hour), await refused(AT + 31 * 24 * hour)]
        return found

    assert run(work()) == ["hour", None, "day", None, "month", None]


def test_windows_begin_and_end_in_utc() -> None:
    assert window_name("hour", AT) == "2026-11-16T14"
    assert window_name("month", AT) == "2026-11"
    assert window_name("total", AT) == "total"
    for window in ("hour", "day", "month"):
        start, end = window_start(window, AT), window_end(window, AT)
        assert end is not None
        assert start <= AT < end
        assert window_name(window, start) == window_name(window, end - 1)
        assert window_name(window, end) != window_name(window, AT)
        assert window_name(window, start - 1) != window_name(window, AT)


def test_a_reservation_learns_from_the_answers_of_the_key(store: GatewayStore) -> None:
    budget = (Budget(1.0),)

    async def reserved(number: int, **members: object) -> int:
        assert await store.reserve(claim(number, budget, **members)) is None
        key = VirtualKey(id="k1", name="ci", digest=b"", rules=KeyRules(budgets=budget))
        (found,) = await store.spending(key, AT)
        store.release(f"r{number}")
        return found.reserved - 100

    async def work() -> list[int]:
        found = [await reserved(1), await reserved(2, max_output=500)]
        for number in range(3, 103):
            answer = Usage(output=number if number < 100 else 5000)
            await store.book(Entry(record(number, usage=answer), "k1"))
        found += [await reserved(200), await reserved(201, max_output=100)]
        found += [await reserved(202, max_output=9000, hard=True)]
        return [*found, await reserved(203, route="other")]

    assert run(work()) == [2000, 500, 194, 100, 9000, 2000]


def test_rates_are_shared_by_all_who_use_the_store(store: GatewayStore) -> None:
    rates = Rates(3, 100)

    async def work() -> list[float]:
        found = [await store.take("k1", rates, 50) for _ in range(3)]
        store.correct("k1", rates, -50)
        return [*found, await store.take("k1", rates, 10), await store.take("k2", rates, 10)]

    assert run(work()) == [0.0, 0.0, 30.0, 0.0, 0.0]


REQUESTS = st.lists(
    st.tuples(st.integers(1, 4000), st.floats(0, 1), st.floats(0.5, 1.5)), min_size=1, max_size=40
)


@settings(max_examples=25)
@given(requests=REQUESTS, hard=st.booleans(), dollars=st.integers(1, 40_000))
def test_a_hard_budget_is_never_exceeded_and_another_by_the_errors_only(
    tmp_path_factory: pytest.TempPathFactory,
    requests: list[tuple[int, float, float]],
    hard: bool,
    dollars: int,
) -> None:
    store = SqliteLedger(tmp_path_factory.mktemp("ledger") / "l.sqlite", clock=lambda: AT)
    budget = Budget(dollars / NANO, "month")
    errors: list[int] = []

    async def one(number: int, most: int, share: float, wrong: float) -> None:
        true_input = 1000 if hard else int(1000 * wrong)
        asked = claim(number, (budget,), input_cost=1000, max_output=most, hard=hard)
        if await store.reserve(asked) is not None:
            return
        true = true_input + int(most * share)
        ((amount,),) = await store._database.fetch(
            "SELECT amount FROM reservations WHERE id = ?", (asked.id,)
        )
        errors.append(max(0, true - amount))
        await asyncio.sleep(0)
        answer = Usage(output=int(most * share))
        await store.book(Entry(record(number, cost=true / NANO, usage=answer), "k1"))

    async def work() -> tuple[int, int]:
        async with asyncio.TaskGroup() as group:
            for number, (most, share, wrong) in enumerate(requests):
                group.create_task(one(number, most, share, wrong))
        key = VirtualKey(id="k1", name="ci", digest=b"", rules=KeyRules(budgets=(budget,)))
        (found,) = await store.spending(key, AT)
        return found.spent, found.reserved

    try:
        spent, reserved = asyncio.run(work())
    finally:
        store.close()
    assert reserved == 0
    assert spent <= dollars + (0 if hard else sum(errors))


@pytest.mark.parametrize("hard", [True, False])
def test_a_thousand_requests_at_once_near_the_limit_stay_within_it(
    tmp_path: Path, hard: bool
) -> None:
    store = SqliteLedger(tmp_path / "l.sqlite", clock=lambda: AT)
    budget = Budget(100_000 / NANO)
    counts = {"sent": 0}

    async def one(number: int) -> None:
        if await store.reserve(claim(number, (budget,), max_output=900, hard=hard)) is None:
            counts["sent"] += 1
            await store.book(Entry(record(number, cost=1000 / NANO), "k1"))

    async def work() -> tuple[int, int]:
        await store.book(Entry(record(-1, cost=60_500 / NANO), "k1"))
        async with asyncio.TaskGroup() as group:
            for number in range(1000):
                group.create_task(one(number))
        key = VirtualKey(id="k1", name="ci", digest=b"", rules=KeyRules(budgets=(budget,)))
        (found,) = await store.spending(key, AT)
        return found.spent, found.reserved

    assert asyncio.run(work()) == (99_500, 0)
    store.close()
    # Exactly those that fit were sent: a reservation is never larger than what is left.
    assert counts["sent"] == 39


OTHER = """
import asyncio, sys
from toolwire.gateway.ledger import SqliteLedger
from toolwire.gateway.store import Budget, Claim, Entry
from toolwire.gateway.record import RequestRecord
from pathlib import Path

async def main():
    store = SqliteLedger(Path(sys.argv[1]))
    hard = sys.argv[2] == "hard"
    for number in range(40):
        claim = Claim(id=f"r{number}", key="k1", route="fast", at=1794839400.0, hard=hard,
            budgets=(Budget(1.0),), input_cost=100, output_price=1.0, max_output=900)
        assert await store.reserve(claim) is None
        assert await store.enter(f"r{number}", "k1", 40)
        if number % 2:
            record = RequestRecord(id=f"r{number}", time=1794839400.0, key="ci", cost=5e-07)
            await store.book(Entry(record, "k1"))
            print("booked", flush=True)
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("hard", [True, False])
def test_after_a_kill_no_reservation_is_left_and_all_that_ended_is_booked(
    tmp_path: Path, hard: bool
) -> None:
    path = tmp_path / "l.sqlite"
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, str(path), "hard" if hard else "usual"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    booked = sum(line == "booked\n" for line in iter(other.stdout.readline, "ready\n"))
    store = SqliteLedger(path, clock=lambda: AT)
    rules = KeyRules(budgets=(Budget(1.0),))
    key = VirtualKey(id="k1", name="ci", digest=b"", rules=rules)

    async def figures() -> tuple[int, int]:
        (found,) = await store.spending(key, AT)
        return found.spent, found.reserved

    async def work() -> None:
        # The process still runs: its reservations are not touched.
        assert await store.sweep() == 0
        assert await figures() == (booked * 500, 20 * 1000)
        assert not await store.enter("mine", "k1", 40)
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        assert await store.sweep() == 20
        assert await figures() == (booked * 500 + (20 * 1000 if hard else 0), 0)
        assert await store.sweep() == 0
        assert await store.enter("mine", "k1", 1)
        assert not await store.enter("second", "k1", 1)
        rows = await store.requests(limit=1000)
        assert sum(row["error"] == "interrupted" for row in rows) == 20
        assert len(rows) == 40
        assert len(list((tmp_path / "l.sqlite.owners").iterdir())) == 1

    run(work())
    store.close()
    assert booked == 20


def test_a_file_that_is_not_a_ledger_is_named(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(BadInput, match=r"cannot use .*l\.sqlite: .*; move it away to start anew"):
        SqliteLedger(path)


def test_a_ledger_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "l.sqlite"
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 99")
    base.commit()
    base.close()
    with pytest.raises(BadInput, match="written by a newer version of toolwire"):
        SqliteLedger(path)


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
def test_only_the_owner_can_read_the_files_of_a_ledger(tmp_path: Path) -> None:
    store = SqliteLedger(tmp_path / "gateway" / "l.sqlite")
    run(store.reserve(claim(1, (Budget(1.0),))))
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.rglob("*")}
    assert {mode for name, mode in modes.items() if name.startswith("l.sqlite")} <= {0o600, 0o700}
    assert modes["gateway"] == 0o700
    store.close()


def test_a_write_that_fails_is_reported_and_the_next_one_works(tmp_path: Path) -> None:
    store = SqliteLedger(tmp_path / "l.sqlite")

    async def work() -> None:
        broken = record(1)
        broken.client = object()  # pyright: ignore[reportAttributeAccessIssue]
        with pytest.raises(LedgerFailed, match="type 'object' is not supported"):
            await store.book(Entry(broken, "k1"))
        assert store.failure
        await store.book(Entry(record(2), "k1"))
        assert not store.failure

    run(work())
    store.close()
