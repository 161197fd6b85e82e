"""Requests at once, in total, per key and per deployment: the others wait for their turn."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import count

from toolwire.errors import ErrorKind
from toolwire.gateway.parts import GatewayRefusal, Slot


class Waiter:
    """One request: what it waits for, and what it holds."""

    slots: tuple[Slot, ...] = ()
    """It waits for any one of them."""
    number = 0
    counted = False
    """Whether it is one of all requests at once."""
    keyed = False
    """Whether it is one of its key's, which are counted only where there is a limit."""
    slot: Slot | None = None
    """The deployment it runs at."""
    granted: Callable[[], None] | None = None
    """Called when its turn has come."""

    def __init__(self, key: str, key_most: int) -> None:
        self.key = key
        self.key_most = key_most
        """Requests of the key at once; 0 for any number."""


class Turns:
    """Grants turns: first come, first served within a key, and the keys in turn."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.running = 0
        self.by_key: Counter[str] = Counter()
        self.by_slot: Counter[str] = Counter()
        self._numbers = count(1)
        self._waiting: dict[str, dict[tuple[Slot, ...], deque[Waiter]]] = {}
        """By key, the next one first; requests for the same slots in one line."""
        self.waiting = 0

    def ask(self, waiter: Waiter) -> bool:
        """Whether its turn is now; else `waiter.granted` is called when it is."""
        if self.take(waiter):
            return True
        waiter.number = next(self._numbers)
        lines = self._waiting.setdefault(waiter.key, {})
        lines.setdefault(waiter.slots, deque()).append(waiter)
        self.waiting += 1
        return waiter in self._pump(waiter)

    def take(self, waiter: Waiter) -> bool:
        """Grants the turn if it is free and no request waits."""
        free = None if self.waiting else self._fits(waiter)
        if free is None:
            return False
        self._grant(waiter, free)
        return True

    def is_free(self, waiter: Waiter) -> bool:
        """Whether a turn could be granted at once."""
        line = self._waiting.get(waiter.key, {}).get(waiter.slots)
        return line is None and self._fits(waiter) is not None

    def leave(self, waiter: Waiter) -> None:
        """Releases everything; a request that still waits leaves the line."""
        if self.waiting:
            self._unqueue(waiter)
        self._release(waiter)
        if self.waiting:
            self.pump()

    def lend(self, waiter: Waiter) -> None:
        """Releases the deployment and the turn among all, but not the turn of the key."""
        if waiter.counted:
            self.running -= 1
            waiter.counted = False
        self._vacate(waiter)
        if self.waiting:
            self.pump()

    def moved(self, waiter: Waiter, slot: Slot) -> bool:
        """Moves a running request to a deployment; False if it may have to wait for that."""
        if slot.most or self.waiting or not waiter.counted:
            return False
        self._vacate(waiter)
        waiter.slots, waiter.slot = (slot,), slot
        self.by_slot[slot.name] += 1
        return True

    def pump(self) -> None:
        """Grants every turn that is possible."""
        self._pump(None)

    def _pump(self, asking: Waiter | None) -> list[Waiter]:
        granted: list[Waiter] = []
        while self.waiting and self.running < self.most:
            chosen = next(self._grantable(), None)
            if chosen is None:
                break
            self._unqueue(chosen)
            if chosen.key in self._waiting:
                # The key has had its turn: the others come first.
                self._waiting[chosen.key] = self._waiting.pop(chosen.key)
            self._grant(chosen, self._fits(chosen) or ())
            granted.append(chosen)
            if chosen is not asking and chosen.granted is not None:
                chosen.granted()
        return granted

    def _grantable(self) -> Iterator[Waiter]:
        for lines in self._waiting.values():
            heads = [line[0] for line in lines.values() if self._fits(line[0]) is not None]
            if heads:
                yield min(heads, key=lambda one: one.number)

    def _fits(self, waiter: Waiter) -> tuple[Slot, ...] | None:
        """Returns the slots that are free; None if the request has to wait."""
        if not waiter.counted and self.running >= self.most:
            return None
        limit = waiter.key_most
        if not waiter.keyed and limit and self.by_key[waiter.key] >= limit:
            return None
        slots = waiter.slots
        if not slots:
            return ()
        if len(slots) == 1 and not slots[0].most:
            return slots
        free = tuple(one for one in slots if not one.most or self.by_slot[one.name] < one.most)
        return free or None

    def _grant(self, waiter: Waiter, free: tuple[Slot, ...]) -> None:
        if not waiter.counted:
            self.running += 1
            waiter.counted = True
        if waiter.key_most and not waiter.keyed:
            self.by_key[waiter.key] += 1
            waiter.keyed = True
        if free:
            waiter.slot = free[0]
            self.by_slot[free[0].name] += 1

    def _release(self, waiter: Waiter) -> None:
        if waiter.counted:
            self.running -= 1
            waiter.counted = False
        if waiter.keyed:
            _less(self.by_key, waiter.key)
            waiter.keyed = False
        self._vacate(waiter)

    def _vacate(self, waiter: Waiter) -> None:
        if waiter.slot is not None:
            _less(self.by_slot, waiter.slot.name)
            waiter.slot = None

    def _unqueue(self, waiter: Waiter) -> None:
        lines = self._waiting.get(waiter.key, {})
        line = lines.get(waiter.slots)
        if line is None or waiter not in line:
            return
        line.remove(waiter)
        self.waiting -= 1
        if not line:
            del lines[waiter.slots]
        if not lines:
            del self._waiting[waiter.key]


def _less(counter: Counter[str], name: str) -> None:
    counter[name] -= 1
    if counter[name] <= 0:
        del counter[name]


class QueueTurn:
    """A request's turn, until `leave`."""

    def __init__(self, room: "WaitingRoom", waiter: Waiter) -> None:
        self._room = room
        self._waiter = waiter

    @property
    def slot(self) -> Slot | None:
        """The deployment it runs at."""
        return self._waiter.slot

    def moved(self, slot: Slot) -> bool:
        """Moves to a slot; False if it may have to wait for it."""
        return self._room.turns.moved(self._waiter, slot)

    async def move(self, slots: tuple[Slot, ...]) -> Slot:
        """Moves to the first of the slots that is free; waits for one if none is.

        While it waits, it does not count as one of all requests at once.
        """
        self._room.turns.lend(self._waiter)
        self._waiter.slots = slots
        await self._room.wait(self._waiter)
        return self._waiter.slot or slots[0]

    def leave(self) -> None:
        """Ends the turn."""
        self._room.turns.leave(self._waiter)


class WaitingRoom:
    """Waits for turns, with limits on how many wait and how long."""

    def __init__(self, *, most: int, queue: int, seconds: float) -> None:
        self.turns = Turns(most)
        self._queue = queue
        self.seconds = seconds
        """How long a request waits for its turn."""

    def change(self, *, most: int, queue: int, seconds: float) -> None:
        """Applies new limits; requests that wait may get their turn at once."""
        self.turns.most, self._queue, self.seconds = most, queue, seconds
        self.turns.pump()

    def enter_now(self, key: str) -> QueueTurn | None:
        """Returns the turn of a key without a limit; None if it would have to wait."""
        waiter = Waiter(key, 0)
        return QueueTurn(self, waiter) if self.turns.take(waiter) else None

    async def enter(self, key: str, key_most: int = 0) -> QueueTurn:
        """Waits for the turn among all requests and those of the key."""
        waiter = Waiter(key, key_most)
        await self.wait(waiter)
        return QueueTurn(self, waiter)

    async def wait(self, waiter: Waiter) -> None:
        """Waits until the turn is granted; GatewayRefusal if too many wait, or too long."""
        turns = self.turns
        if turns.waiting >= self._queue and not turns.is_free(waiter):
            turns.leave(waiter)
            raise busy("too many requests are waiting")
        if turns.ask(waiter):
            return
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        waiter.granted = lambda: None if granted.done() else granted.set_result(None)
        try:
            async with asyncio.timeout(self.seconds):
                await granted
        except TimeoutError as error:
            if granted.done() and not granted.cancelled():
                # Granted in the same turn of the loop.
                return
            turns.leave(waiter)
            raise busy(f"no turn within {self.seconds:g} s") from error
        except asyncio.CancelledError:
            turns.leave(waiter)
            raise


def busy(why: str) -> GatewayRefusal:
    """The refusal of a request for which there is no room."""
    return GatewayRefusal(
        ErrorKind.OVERLOADED, f"the gateway is busy: {why}; try again later", retry_after=5.0
    )
