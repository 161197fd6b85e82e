import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.gateway.test_routing import World
from toolwire.events import Usage
from toolwire.gateway.admission import AdmittedRequest, KeyAdmission, KeyCaller
from toolwire.gateway.database import SqliteDatabase
from toolwire.gateway.keys import new_key
from toolwire.gateway.ledger import SqliteLedger
from toolwire.gateway.limits import LocalRates
from toolwire.gateway.parts import Caller, Estimate, GatewayRefusal
from toolwire.gateway.queue import WaitingRoom
from toolwire.gateway.record import RequestRecord
from toolwire.gateway.store import NANO, Budget, Entry, KeyRules
from toolwire.ids import new_id

PRICED = """
[models."one/priced"]
output = 4000
prices = { input = 1.0, output = 10.0, cache_write = 2.0 }
[models."two/dear"]
output = 1000
prices = { input = 5.0, output = 50.0 }
[gateway.routes.r]
to = ["one/priced"]
fallback = ["two/dear"]
[gateway.routes.free]
to = ["one/unknown"]
"""
AT = 1_794_839_400.0


class Desk:
    """An admission on a real ledger."""

    def __init__(self, tmp_path: Path, **options: Any) -> None:
        self.world = World(tmp_path, PRICED)
        self.world.now = AT
        self.store = SqliteLedger(tmp_path / "l.sqlite", clock=lambda: self.world.now)
        self.room = WaitingRoom(most=100, queue=100, seconds=5)
        self.admission = KeyAdmission(
            store=self.store,
            room=self.room,
            rates=LocalRates(lambda: self.world.now),
            clock=lambda: self.world.now,
            monotonic=lambda: self.world.now,
            **options,
        )

    async def key(self, name: str = "ci", expires: float | None = None, **rules: Any) -> str:
        key, text = new_key(name, KeyRules(**rules), now=self.world.now, expires=expires)
        await self.store.add_key(key)
        return text

    async def caller(self, **rules: Any) -> Caller:
        return await self.admission.identify([await self.key(**rules)], "10.0.0.1")

    async def admit(
        self, caller: Caller, route: str = "r", **members: Any
    ) -> tuple[AdmittedRequest, RequestRecord]:
        record = RequestRecord(
            id=new_id("req_"), time=self.world.now, key=caller.key, key_id=caller.id
        )
        found = await self.world.routes.find(route)
        record.route, record.bytes_in = found.name, 4000
        estimate = Estimate(input=1000, **members)
        return await self.admission.admit(caller, record, estimate, found), record

    def end(self, admitted: AdmittedRequest, record: RequestRecord) -> None:
        """What the gateway does at the end of a request."""
        admitted.settle(record)
        if not self.admission.ended(record.id):
            self.store.book_soon(Entry(record, record.key_id))

    async def figures(self, caller: Caller) -> tuple[int, int]:
        assert isinstance(caller, KeyCaller)
        (found,) = await self.store.spending(caller.stored, self.world.now)
        return found.spent, found.reserved


def with_desk(tmp_path: Path, work: Callable[[Desk], Awaitable[None]], **options: Any) -> None:
    desk = Desk(tmp_path, **options)

    async def run() -> None:
        await work(desk)

    asyncio.run(run())
    desk.store.close()


def test_the_token_a_key_and_nothing_else_are_let_in(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        identify = desk.admission.identify
        admin = await identify(["wrong", "secret-token"], "a")
        assert admin == Caller(key="admin", id="admin", tenant="admin", admin=True)
        text = await desk.key(scopes=("raw",))
        caller = await identify(["junk", text], "a")
        assert (caller.key, caller.scopes, caller.admin) == ("ci", frozenset({"raw"}), False)
        assert caller.tenant == f"key:{text[3:11]}"
        for credentials in ([], [""], ["junk"], [text[:-1]], [text[:-1] + "!"]):
            with pytest.raises(GatewayRefusal) as refused:
                await identify(credentials, "a")
            assert (refused.value.status, refused.value.kind) == (401, "auth")

    with_desk(tmp_path, work, token="secret-token")


def test_unknown_expired_and_revoked_keys_are_refused_in_the_same_words(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        expired = await desk.key("old", expires=AT + 10)
        revoked = await desk.key("gone")
        stored = await desk.store.key(revoked[3:11])
        assert stored is not None
        await desk.store.change_key(msgspec.structs.replace(stored, revoked=AT))
        desk.world.now += 20
        messages: set[str] = set()
        for text in (expired, revoked, "tw-00000000-" + "x" * 43, "sk-other"):
            with pytest.raises(GatewayRefusal) as refused:
                await desk.admission.identify([text], "a")
            messages.add(str(refused.value))
        assert messages == {"the API key is not valid"}

    with_desk(tmp_path, work)


def test_without_a_token_every_caller_is_let_in_and_keys_still_count(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        assert (await desk.admission.identify(["dummy"], "a")).key == "anonymous"
        assert (await desk.admission.identify([await desk.key()], "a")).key == "ci"

    with_desk(tmp_path, work, open_to_all=True)


def test_an_address_that_guesses_is_refused_but_not_the_keys_known_from_there(
    tmp_path: Path,
) -> None:
    async def work(desk: Desk) -> None:
        known, other = await desk.key("known"), await desk.key("other")
        await desk.admission.identify([known], "10.0.0.1")
        for _ in range(20):
            with pytest.raises(GatewayRefusal, match="not valid"):
                await desk.admission.identify(["tw-00000000-" + "x" * 43], "10.0.0.1")
        with pytest.raises(GatewayRefusal, match="too many wrong keys") as refused:
            await desk.admission.identify([other], "10.0.0.1")
        assert (refused.value.status, refused.value.retry_after) == (429, 60.0)
        assert (await desk.admission.identify([known], "10.0.0.1")).key == "known"
        assert (await desk.admission.identify([other], "10.0.0.2")).key == "other"
        desk.world.now += 61
        assert (await desk.admission.identify([other], "10.0.0.1")).key == "other"

    with_desk(tmp_path, work)


def test_a_key_uses_only_its_routes_and_models(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        narrow = await desk.caller(models=("one/*",))
        admitted, record = await desk.admit(narrow)
        route = await desk.world.routes.find("r")
        assert [admitted.allows(one) for one in route.all] == [True, False]
        admitted.settle(record)
        for rules in ({"models": ("three/*",)}, {"routes": ("fast",)}):
            caller = await desk.caller(name=f"k{len(rules)}{next(iter(rules))}", **rules)
            with pytest.raises(GatewayRefusal, match='may not use "r"') as refused:
                await desk.admit(caller)
            assert (refused.value.status, refused.value.should_retry) == (403, False)

    with_desk(tmp_path, work)


def test_a_rate_is_refused_with_the_wait_and_corrected_by_the_true_tokens(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(tpm=1500)
        admitted, record = await desk.admit(caller)
        with pytest.raises(GatewayRefusal, match="limited to 1,500 tokens a minute") as refused:
            await desk.admit(caller)
        assert (refused.value.status, refused.value.retry_after) == (429, 20.0)
        record.usage = Usage(input=100, output=100)
        admitted.settle(record)
        admitted.settle(record)
        (await desk.admit(caller))[0].settle(record)

    with_desk(tmp_path, work)


def test_a_key_runs_so_many_requests_at_once_and_the_others_wait(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(concurrent=2)
        first, record = await desk.admit(caller)
        await desk.admit(caller)
        waiting = asyncio.ensure_future(desk.admit(caller))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        desk.world.now += 3
        first.settle(record)
        third, waited = await waiting
        assert waited.waited == 3.0
        third.settle(waited)

    with_desk(tmp_path, work)


def test_several_processes_count_the_requests_of_a_key_together(tmp_path: Path) -> None:
    store = SqliteLedger(tmp_path / "l.sqlite", clock=lambda: AT)

    async def work(desk: Desk) -> None:
        other = KeyAdmission(
            store=store,
            room=WaitingRoom(most=100, queue=100, seconds=5),
            rates=LocalRates(lambda: AT),
            turns=store,
            clock=lambda: desk.world.now,
            monotonic=lambda: desk.world.now,
        )
        here = desk.admission
        caller = await desk.caller(concurrent=2)
        first, record = await desk.admit(caller)
        desk.admission = other
        second, another = await desk.admit(caller)
        waiting = asyncio.ensure_future(desk.admit(caller))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})
        waiting = asyncio.ensure_future(desk.admit(caller))
        first.settle(record)
        third, last = await waiting
        desk.admission = here
        waiting = asyncio.ensure_future(desk.admit(caller))
        await asyncio.sleep(0.05)
        desk.world.now += 6
        with pytest.raises(GatewayRefusal, match="no turn within 5 s"):
            await waiting
        second.settle(another)
        third.settle(last)
        assert (await desk.admit(caller))[1].waited == 0.0

    shared = SqliteLedger(tmp_path / "l.sqlite", clock=lambda: AT)
    with_desk(tmp_path, work, turns=shared)
    shared.close()
    store.close()


def test_a_budget_is_reserved_then_settled_with_the_true_cost(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(budgets=(Budget(0.05, "month"),))
        admitted, record = await desk.admit(caller)
        # 1,000 tokens in at $1 and 2,000 out at $10 a million.
        assert await desk.figures(caller) == (0, 21_000_000)
        second, other = await desk.admit(caller)
        with pytest.raises(GatewayRefusal, match="budget of this month") as refused:
            await desk.admit(caller)
        assert (refused.value.status, refused.value.kind) == (429, "quota")
        assert (refused.value.code, refused.value.should_retry) == ("insufficient_quota", False)
        assert "$0.0000 of $0.0500, $0.0420 reserved" in str(refused.value)
        assert "2026-12-01 00:00 UTC" in str(refused.value)
        record.cost = 0.001
        await admitted.book(record)
        admitted.settle(record)
        desk.end(second, other)
        assert await desk.figures(caller) == (1_000_000, 0)
        assert desk.room.turns.running == 0

    with_desk(tmp_path, work)


def test_a_hard_budget_reserves_the_most_that_a_request_can_cost(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(budgets=(Budget(1.0),), hard=True)
        admitted, record = await desk.admit(caller)
        # 6,000 tokens in at $5, or $2 if written to the cache; 4,000 out at $50 a million.
        assert await desk.figures(caller) == (0, 30_000_000 + 200_000_000)
        desk.end(admitted, record)
        _, record = await desk.admit(caller, max_output=100)
        assert await desk.figures(caller) == (0, 30_000_000 + 5_000_000)
        with pytest.raises(GatewayRefusal, match="no price of one/unknown is known"):
            await desk.admit(caller, "free")

    with_desk(tmp_path, work)


def test_a_model_without_a_price_is_counted_unless_the_key_refuses_it(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(budgets=(Budget(1.0),))
        admitted, record = await desk.admit(caller, "free")
        record.usage = Usage(input=5, output=5)
        await admitted.book(record)
        (found,) = await desk.store.usage("key")
        assert (found.requests, found.unpriced, found.cost) == (1, 1, 0.0)
        strict = await desk.caller(name="strict", refuse_unpriced=True)
        with pytest.raises(GatewayRefusal, match="no price of one/unknown is known") as refused:
            await desk.admit(strict, "free")
        assert refused.value.status == 403

    with_desk(tmp_path, work)


def test_without_a_ledger_no_budget_is_spent(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(budgets=(Budget(1.0),))
        free = await desk.caller(name="free")
        database = desk.store._database
        assert isinstance(database, SqliteDatabase)
        database._writing.execute("PRAGMA query_only = ON")
        with pytest.raises(GatewayRefusal, match="the ledger cannot be written") as refused:
            await desk.admit(caller)
        assert (refused.value.kind, refused.value.retry_after) == ("overloaded", 10.0)
        admitted, record = await desk.admit(free)
        admitted.settle(record)
        assert desk.room.turns.running == 0
        assert "readonly" in desk.store.failure

    with_desk(tmp_path, work)


def test_a_request_that_is_cancelled_while_it_is_admitted_leaves_nothing(tmp_path: Path) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(budgets=(Budget(1.0),))
        tasks = [asyncio.ensure_future(desk.admit(caller)) for _ in range(50)]
        for number, task in enumerate(tasks):
            await asyncio.sleep(0)
            if number % 2:
                task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        for one in done:
            if isinstance(one, tuple):
                desk.end(*one)
        assert (desk.room.turns.running, desk.room.turns.waiting) == (0, 0)
        assert await desk.figures(caller) == (0, 0)

    with_desk(tmp_path, work)


@pytest.mark.parametrize("hard", [True, False])
def test_a_thousand_requests_at_once_do_not_exceed_the_budget(tmp_path: Path, hard: bool) -> None:
    async def work(desk: Desk) -> None:
        caller = await desk.caller(budgets=(Budget(2.0, "day"),), hard=hard)
        counts = {"sent": 0, "refused": 0}

        async def one() -> None:
            try:
                admitted, record = await desk.admit(caller, max_output=500)
            except GatewayRefusal:
                counts["refused"] += 1
                return
            try:
                await asyncio.sleep(0)
                # The dearest model of the route, the whole of its answer.
                record.cost = (1000 * 5.0 + 500 * 50.0) / 1e6 if hard else 0.006
                await admitted.book(record)
            finally:
                admitted.settle(record)
            counts["sent"] += 1

        desk.room.change(most=100, queue=1000, seconds=60)
        async with asyncio.TaskGroup() as group:
            for _ in range(1000):
                group.create_task(one())
        spent, reserved = await desk.figures(caller)
        assert reserved == 0
        assert counts["sent"] + counts["refused"] == 1000
        assert counts["refused"] > 0
        assert 1.9 * NANO < spent <= 2 * NANO

    with_desk(tmp_path, work)
