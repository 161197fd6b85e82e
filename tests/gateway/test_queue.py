import asyncio
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from toolwire.gateway.parts import GatewayRefusal, Slot
from toolwire.gateway.queue import QueueTurn, Turns, Waiter, WaitingRoom

KEYS = {"a": 0, "b": 2, "c": 1}
SLOTS = (Slot("x", 1), Slot("y", 2), Slot("z"))
SOME = [*permutations(SLOTS, 1), *permutations(SLOTS, 2)]


class Waiting(RuleBasedStateMachine):
    """Any order of arrivals, moves and departures, checked against the rules themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns(4)
        self.running: list[Waiter] = []
        self.line: list[Waiter] = []

    def _ask(self, waiter: Waiter) -> None:
        self.line.append(waiter)
        waiter.granted = lambda: self._granted(waiter)
        if self.turns.ask(waiter):
            self._granted(waiter)

    def _granted(self, waiter: Waiter) -> None:
        earlier = self.line[: self.line.index(waiter)]
        same = [one for one in earlier if one.key == waiter.key and one.slots == waiter.slots]
        assert not same, "overtaken within a key"
        self.line.remove(waiter)
        self.running.append(waiter)

    @rule(key=st.sampled_from(sorted(KEYS)), slots=st.sampled_from([(), *SOME]))
    def arrive(self, key: str, slots: tuple[Slot, ...]) -> None:
        waiter = Waiter(key, KEYS[key])
        waiter.slots = slots
        self._ask(waiter)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        waiter = data.draw(st.sampled_from(self.running))
        self.running.remove(waiter)
        self.turns.leave(waiter)

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        waiter = data.draw(st.sampled_from(self.line))
        self.line.remove(waiter)
        self.turns.leave(waiter)
        self.turns.leave(waiter)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), slots=st.sampled_from(SOME))
    def move(self, data: st.DataObject, slots: tuple[Slot, ...]) -> None:
        waiter = data.draw(st.sampled_from(self.running))
        self.running.remove(waiter)
        self.turns.lend(waiter)
        waiter.slots = slots
        self._ask(waiter)

    @rule(most=st.integers(1, 6))
    def change(self, most: int) -> None:
        self.turns.most = most
        self.turns.pump()

    @invariant()
    def counts_are_those_of_what_runs(self) -> None:
        turns = self.turns
        assert turns.running == len(self.running)
        assert turns.waiting == len(self.line)
        held = [one.key for one in (*self.running, *self.line) if one.keyed]
        assert turns.by_key == Counter(held)
        slots = Counter(one.slot.name for one in self.running if one.slot is not None)
        assert turns.by_slot == slots
        assert all(slots[slot.name] <= slot.most for slot in SLOTS if slot.most)
        assert all(turns.by_key[key] <= most for key, most in KEYS.items() if most)

    @invariant()
    def none_waits_that_could_run(self) -> None:
        heads = {(one.key, one.slots): one for one in reversed(self.line)}
        assert not any(self.turns._fits(one) is not None for one in heads.values())


Waiting.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestWaiting = Waiting.TestCase


def test_a_noisy_key_does_not_starve_the_others() -> None:
    turns = Turns(1)
    order: list[str] = []
    running = Waiter("noisy", 0)
    assert turns.ask(running)
    waiters = [Waiter("noisy", 0) for _ in range(50)] + [Waiter(key, 0) for key in ("b", "c")]
    for waiter in waiters:
        waiter.granted = lambda one=waiter: order.append(one.key)
        assert not turns.ask(waiter)
    for _ in range(4):
        turns.leave(running)
        running = next(one for one in waiters if one.counted)
    assert order == ["noisy", "b", "c", "noisy"]


async def _entered(room: WaitingRoom, count: int, key: str = "k") -> list[QueueTurn]:
    return [await room.enter(key) for _ in range(count)]


def test_a_full_queue_and_a_long_wait_are_refused() -> None:
    async def run() -> None:
        room = WaitingRoom(most=2, queue=1, seconds=0.05)
        turns = await _entered(room, 2)
        waiting = asyncio.ensure_future(room.enter("k"))
        await asyncio.sleep(0)
        with pytest.raises(GatewayRefusal, match="too many requests are waiting") as refused:
            await room.enter("other")
        assert (refused.value.kind, refused.value.retry_after) == ("overloaded", 5.0)
        with pytest.raises(GatewayRefusal, match=r"no turn within 0\.05 s"):
            await waiting
        for turn in turns:
            turn.leave()
            turn.leave()
        assert (room.turns.running, room.turns.waiting) == (0, 0)

    asyncio.run(run())


def test_a_request_that_waits_for_a_deployment_lets_others_run() -> None:
    async def run() -> None:
        room = WaitingRoom(most=1, queue=10, seconds=10)
        only = (Slot("busy", 1),)
        first = await room.enter("a")
        await first.move(only)
        room.turns.most = 2
        second = await room.enter("b")
        moving = asyncio.ensure_future(second.move(only))
        await asyncio.sleep(0)
        third = await room.enter("c")
        assert not moving.done()
        first.leave()
        assert (await moving).name == "busy"
        second.leave()
        third.leave()
        assert (room.turns.running, room.turns.waiting, room.turns.by_slot) == (0, 0, {})

    asyncio.run(run())


def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async def run() -> None:
        room = WaitingRoom(most=1, queue=10, seconds=10)
        turn = await room.enter("a")
        waiting = [asyncio.ensure_future(room.enter("b")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        turn.leave()
        # Granted and cancelled before it could run.
        waiting[1].cancel()
        await asyncio.wait(waiting[:2])
        (await waiting[2]).leave()
        assert (room.turns.running, room.turns.waiting, room.turns.by_key) == (0, 0, {})

    asyncio.run(run())


def test_a_full_queue_for_one_deployment_does_not_refuse_requests_for_another() -> None:
    async def run() -> None:
        room = WaitingRoom(most=10, queue=1, seconds=10)
        first, second, third = await _entered(room, 3)
        await first.move((Slot("busy", 1),))
        waiting = asyncio.ensure_future(second.move((Slot("busy", 1),)))
        await asyncio.sleep(0)
        assert (await third.move((Slot("idle", 1),))).name == "idle"
        first.leave()
        await waiting

    asyncio.run(run())
