"""Rates that all hosts of a batch share: requests and tokens a minute, pauses after refusals."""

import asyncio
import hashlib
import sqlite3
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from toolwire.client.http.exchange import Incoming, Outgoing, Transport, read_address

RateKind: TypeAlias = Literal["requests", "tokens"]
_KINDS: tuple[RateKind, ...] = ("requests", "tokens")
_AHEAD = 2.0
"""Seconds of a rate that may be taken at once."""
_MINUTE = 60.0
_REFUSED = (429, 529)
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 300.0
_CLEAN = 10.0
_MOST_AT_ONCE = 4096
_LOOK_AGAIN = 0.1
"""Seconds for which a key that has neither a rate nor a pause is taken to have none."""
_CHARACTERS = 4
_ANSWER = 500
"""Tokens that an answer is taken to have before it is there."""
_HEADERS: Mapping[RateKind, tuple[str, ...]] = {
    "requests": ("x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit"),
    "tokens": ("x-ratelimit-limit-tokens", "anthropic-ratelimit-tokens-limit"),
}
_CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")


class SharedLimits(Protocol):
    """Rates by key: a provider and a fingerprint of its credential."""

    def take(self, key: str, amounts: Mapping[RateKind, float]) -> float:
        """Takes all amounts and returns 0, or takes none and returns the seconds to wait."""
        ...

    def block(self, key: str, seconds: float) -> None:
        """Makes every host wait."""
        ...

    def learn(self, key: str, kind: RateKind, per_minute: int) -> None:
        """Sets a rate that the vendor reported, unless the user set one."""
        ...

    def close(self) -> None:
        """Closes what was opened."""
        ...


class Buckets:
    """The arithmetic of a rate: in no minute more than its amount is taken."""

    @staticmethod
    def capacity(per_minute: float) -> float:
        """What can be taken at once; at least one."""
        return max(1.0, per_minute * _AHEAD / _MINUTE)

    @classmethod
    def per_second(cls, per_minute: float) -> float:
        """How fast a bucket fills: with a full bucket first, a minute has no more than its rate."""
        return max(per_minute - cls.capacity(per_minute), per_minute * 0.5) / _MINUTE

    @classmethod
    def take(cls, level: float, per_minute: float, amount: float) -> tuple[float, float]:
        """The level after taking an amount and 0, or the same level and the seconds to wait.

        More than a bucket holds is taken when it is full, and owed.
        """
        missing = min(amount, cls.capacity(per_minute)) - level
        if missing > 1e-9:
            return level, missing / cls.per_second(per_minute)
        return level - amount, 0.0


class SqliteLimits:
    """The rates of a batch on one machine, in a file that its hosts share."""

    def __init__(
        self,
        out: Path,
        requests: int = 0,
        tokens: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._set: dict[RateKind, int] = {"requests": requests, "tokens": tokens}
        self._free_until: dict[str, float] = {}
        self._connection = sqlite3.connect(
            out / "limits.sqlite", isolation_level=None, timeout=30, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS limits (key TEXT, kind TEXT, per_minute REAL, level REAL, "
            "at REAL, PRIMARY KEY (key, kind)) WITHOUT ROWID"
        )
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS pauses (key TEXT PRIMARY KEY, until REAL) WITHOUT ROWID"
        )

    def take(self, key: str, amounts: Mapping[RateKind, float]) -> float:
        """Takes all amounts and returns 0, or takes none and returns the seconds to wait."""
        now = self._clock()
        if now < self._free_until.get(key, 0.0):
            return 0.0
        row = self._connection.execute("SELECT until FROM pauses WHERE key = ?", (key,)).fetchone()
        if row is not None and row[0] > now:
            return row[0] - now
        rates = self._rates(key)
        if not rates:
            self._free_until[key] = now + _LOOK_AGAIN
            return 0.0
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            wait = self._taken(key, rates, amounts, self._clock())
        finally:
            self._connection.execute("COMMIT")
        return wait

    def _rates(self, key: str) -> dict[RateKind, float]:
        rates: dict[RateKind, float] = {kind: n for kind, n in self._set.items() if n}
        known = self._connection.execute(
            "SELECT kind, per_minute FROM limits WHERE key = ?", (key,)
        )
        for kind, per_minute in known:
            rates.setdefault(kind, per_minute)
        return rates

    def _taken(
        self,
        key: str,
        rates: Mapping[RateKind, float],
        amounts: Mapping[RateKind, float],
        now: float,
    ) -> float:
        levels: dict[RateKind, float] = {}
        wait = 0.0
        for kind, per_minute in rates.items():
            row = self._connection.execute(
                "SELECT level, at FROM limits WHERE key = ? AND kind = ?", (key, kind)
            ).fetchone()
            most = Buckets.capacity(per_minute)
            level = most
            if row is not None:
                level = min(most, row[0] + (now - row[1]) * Buckets.per_second(per_minute))
            levels[kind], needed = Buckets.take(level, per_minute, amounts.get(kind, 0.0))
            wait = max(wait, needed)
        if not wait:
            self._connection.executemany(
                "INSERT OR REPLACE INTO limits VALUES (?, ?, ?, ?, ?)",
                [(key, kind, rates[kind], level, now) for kind, level in levels.items()],
            )
        return wait

    def block(self, key: str, seconds: float) -> None:
        """Makes every host wait."""
        self._free_until.pop(key, None)
        self._connection.execute(
            "INSERT INTO pauses VALUES (?, ?) ON CONFLICT (key) DO UPDATE "
            "SET until = max(until, excluded.until)",
            (key, self._clock() + seconds),
        )

    def learn(self, key: str, kind: RateKind, per_minute: int) -> None:
        """Sets a rate that the vendor reported, unless the user set one."""
        if self._set[kind]:
            return
        self._free_until.pop(key, None)
        self._connection.execute(
            "INSERT INTO limits VALUES (?, ?, ?, ?, ?) ON CONFLICT (key, kind) DO UPDATE "
            "SET per_minute = excluded.per_minute",
            (key, kind, per_minute, Buckets.capacity(per_minute) / 2, self._clock()),
        )

    def close(self) -> None:
        """Closes the file."""
        with suppress(sqlite3.Error):
            self._connection.close()


class RequestGate:
    """How many requests of one key run at once: half after a refusal, one more each clean time."""

    def __init__(self) -> None:
        self.most = _MOST_AT_ONCE
        self.running = 0
        self._refusals = 0
        self._changed = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Waits for room."""
        while self.running >= self.most:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._wake()
                raise
        self.running += 1

    def leave(self) -> None:
        """Makes room."""
        self.running -= 1
        self._wake()

    def _wake(self) -> None:
        """Lets as many look again as there is room for."""
        room = self.most - self.running
        while self._waiting and room > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                room -= 1

    def refused(self, now: float) -> float:
        """Halves; returns the pause if the vendor names none."""
        self._refusals += 1
        if now - self._changed > 1.0:
            # Answers to requests of the same moment are one refusal.
            self.most = max(1, min(self.most, self.running) // 2)
            self._changed = now
        return min(_FIRST_PAUSE * 2 ** min(self._refusals - 1, 10), _LONGEST_PAUSE)

    def passed(self, now: float) -> None:
        """Counts a clean answer."""
        self._refusals = 0
        if self.most < _MOST_AT_ONCE and now - self._changed > _CLEAN:
            self.most += 1
            self._changed = now
            self._wake()


class LimitedTransport:
    """Sends requests within the shared limits."""

    def __init__(self, inner: Transport, limits: SharedLimits) -> None:
        self._inner = inner
        self._limits = limits
        self._gates: dict[str, RequestGate] = {}
        self._learned: dict[tuple[str, str], int] = {}

    def open(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Sends when there is room; a refusal makes every host wait."""
        return self._open(request)

    @asynccontextmanager
    async def _open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        key = _key_of(request)
        gate = self._gates.setdefault(key, RequestGate())
        await gate.enter()
        try:
            amounts: Mapping[RateKind, float] = {
                "requests": 1.0,
                "tokens": len(request.body) / _CHARACTERS + _ANSWER,
            }
            while True:
                wait = self._limits.take(key, amounts)
                if not wait:
                    break
                await asyncio.sleep(wait)
            async with self._inner.open(request) as incoming:
                self._seen(key, gate, incoming)
                yield incoming
        finally:
            gate.leave()

    def _seen(self, key: str, gate: RequestGate, incoming: Incoming) -> None:
        now = time.monotonic()
        if incoming.status in _REFUSED:
            pause = gate.refused(now)
            named = incoming.headers.get("retry-after", "")
            self._limits.block(key, float(named) if _is_number(named) else pause)
            return
        gate.passed(now)
        for kind in _KINDS:
            for name in _HEADERS[kind]:
                value = incoming.headers.get(name, "")
                if value.isdigit() and int(value) and self._learned.get((key, kind)) != int(value):
                    self._learned[key, kind] = int(value)
                    self._limits.learn(key, kind, int(value))


def _key_of(request: Outgoing) -> str:
    secret = "".join(value for name, value in request.headers if name.lower() in _CREDENTIALS)
    return _fingerprint(request.url, secret)


@lru_cache(maxsize=64)
def _fingerprint(url: str, secret: str) -> str:
    host = read_address(url).shown
    return f"{host} {hashlib.sha256(secret.encode()).hexdigest()[:12]}"


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
