"""Keys, budgets and the ledger in one SQLite file, shared by the processes of one machine."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from toolwire.errors import BadInput
from toolwire.gateway.database import Database
from toolwire.gateway.ledger_rows import (
    COLUMNS,
    KEY_COLUMNS,
    KEYS,
    SCHEMA,
    USAGE,
    USAGE_BY,
    book_entry,
    book_interrupted,
    buckets_of,
    key_values,
    read_key_row,
    read_usage_row,
    set_buckets,
    spending_of,
    typical_output,
)
from toolwire.gateway.limits import Rates
from toolwire.gateway.store import (
    Claim,
    Entry,
    LedgerFailed,
    Spending,
    UsageBy,
    UsageSum,
    VirtualKey,
    claimed,
    window_name,
)
from toolwire.ids import new_id
from toolwire.platform import lock_file
from toolwire.request import JsonObject

FILE = "ledger.sqlite"
T = TypeVar("T")


class SqliteLedger:
    """The store of one machine."""

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, owner: str = ""
    ) -> None:
        self._database = Database(path, SCHEMA, 1)
        self._clock = clock
        self._owner = owner or new_id("")
        self._locks = path.with_name(f"{path.name}.owners")
        self._lock = -1

    @property
    def failure(self) -> str:
        """Why the last write failed; empty if it succeeded."""
        return self._database.failure

    def close(self) -> None:
        """Finishes all writes."""
        self._database.close()
        if self._lock >= 0:
            with suppress(OSError):
                (self._locks / self._owner).unlink()
            os.close(self._lock)
            self._lock = -1

    async def add_key(self, key: VirtualKey) -> None:
        """Stores a new key; BadInput if its name is in use."""
        values = (*key_values(key),)
        sql = f"INSERT INTO keys ({KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constant
        try:
            await self._database.write(lambda base: base.execute(sql, values).rowcount)
        except sqlite3.IntegrityError as error:
            raise BadInput(
                f'there is a key named "{key.name}"; choose another name, or revoke that one'
            ) from error

    async def key(self, key_id: str) -> VirtualKey | None:
        """Returns a key by its id."""
        rows = self._database.read(f"{KEYS} WHERE id = ?", (key_id,))
        return read_key_row(rows[0]) if rows else None

    async def keys(self) -> list[VirtualKey]:
        """Returns all keys, the newest last."""
        return [read_key_row(row) for row in self._database.read(f"{KEYS} ORDER BY created, id")]

    async def change_key(self, key: VirtualKey) -> None:
        """Replaces a stored key."""
        values = (*key_values(key)[1:], key.id)
        sql = (
            "UPDATE keys SET name = ?, digest = ?, old_digest = ?, old_until = ?, rules = ?, "
            "created = ?, expires = ?, revoked = ? WHERE id = ?"
        )
        await self._database.write(lambda base: base.execute(sql, values).rowcount)

    async def reserve(self, claim: Claim) -> Spending | None:
        """Reserves budget in one transaction; returns the budget that is not sufficient."""
        self._hold_lock()
        return await self._write(lambda base: self._reserve(base, claim))

    def _reserve(self, base: sqlite3.Connection, claim: Claim) -> Spending | None:
        amount = claimed(claim, typical_output(base, claim.key, claim.route))
        for found in spending_of(base, claim.key, claim.budgets, claim.at):
            if amount > found.left:
                return found
        base.execute(
            "INSERT INTO reservations VALUES (?, ?, ?, ?, ?, ?, ?)",
            (claim.id, self._owner, claim.key, claim.route, claim.at, amount, claim.hard),
        )
        return None

    def release(self, request: str) -> None:
        """Drops the reservation of a request that was not sent."""
        self._database.write_soon(
            lambda base: base.execute("DELETE FROM reservations WHERE id = ?", (request,))
        )

    async def book(self, entry: Entry) -> None:
        """Stores a request with its sums and drops its reservation, once for each id."""
        await self._write(lambda base: book_entry(base, entry))

    def book_soon(self, entry: Entry) -> None:
        """Books a request without waiting for it."""
        self._database.write_soon(lambda base: book_entry(base, entry))

    async def sweep(self) -> int:
        """Drops reservations of processes that no longer run; returns how many."""
        self._hold_lock()
        return await self._database.write(self._sweep)

    def _sweep(self, base: sqlite3.Connection) -> int:
        dropped = 0
        for (owner,) in base.execute("SELECT DISTINCT owner FROM reservations").fetchall():
            if owner == self._owner or not _ended(self._locks / owner):
                continue
            rows = base.execute(
                "DELETE FROM reservations WHERE owner = ? "
                "RETURNING id, key, route, at, amount, hard",
                (owner,),
            ).fetchall()
            for row in rows:
                book_interrupted(base, *row)
            dropped += len(rows)
        for file in self._locks.iterdir() if self._locks.is_dir() else ():
            if file.name != self._owner and _ended(file):
                file.unlink(missing_ok=True)
        return dropped

    async def spending(self, key: VirtualKey, at: float) -> list[Spending]:
        """Returns the state of each budget of a key."""
        return await self._database.write(
            lambda base: list(spending_of(base, key.id, key.rules.budgets, at))
        )

    async def usage(self, by: UsageBy, since: str = "", until: str = "") -> list[UsageSum]:
        """Returns sums, of the days from `since` to `until` (`2026-11-16`)."""
        name, group, order = USAGE_BY[by]
        sql = USAGE.format(by=name, group=group, order=order)
        return [read_usage_row(row) for row in self._database.read(sql, (since, until or "~"))]

    async def requests(self, limit: int = 100, before: float | None = None) -> list[JsonObject]:
        """Returns the last requests, the newest first."""
        sql = (
            f"SELECT {', '.join(COLUMNS)} FROM requests "  # noqa: S608 - constants
            "WHERE time < ? ORDER BY time DESC LIMIT ?"
        )
        rows = self._database.read(sql, (float("inf") if before is None else before, limit))
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    async def prune(self, now: float, days: int) -> int:
        """Removes requests older than so many days; the sums stay."""
        hours = window_name("hour", now - 2 * 86_400)

        def work(base: sqlite3.Connection) -> int:
            # A part of a day is never needed again once it has passed.
            base.execute(
                "DELETE FROM spending WHERE time_window LIKE '%T%' AND time_window < ?", (hours,)
            )
            done = base.execute("DELETE FROM requests WHERE time < ?", (now - days * 86_400,))
            return done.rowcount

        return await self._database.write(work)

    async def take(self, key: str, rates: Rates, tokens: int) -> float:
        """Takes one request and its estimated tokens; else returns the seconds to wait."""
        now = self._clock()

        def work(base: sqlite3.Connection) -> float:
            state, wait = buckets_of(base, key, rates, now).take(rates, tokens, now)
            set_buckets(base, key, state)
            return wait

        return await self._database.write(work)

    def correct(self, key: str, rates: Rates, tokens: int) -> None:
        """Takes so many tokens more than was estimated; gives back a negative number."""
        if not rates.tokens:
            return
        now = self._clock()
        self._database.write_soon(
            lambda base: set_buckets(base, key, buckets_of(base, key, rates, now).less(0, tokens))
        )

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await self._database.write(work)
        except sqlite3.Error as error:
            raise LedgerFailed(f"cannot write {self._database.path}: {error}") from error

    def _hold_lock(self) -> None:
        """Holds a file lock for as long as this process runs."""
        if self._lock >= 0:
            return
        self._locks.mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(self._locks / self._owner, os.O_RDWR | os.O_CREAT, 0o600)
        lock_file(self._lock)


def _ended(lock: Path) -> bool:
    """Whether the process that holds a lock has ended."""
    try:
        handle = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        return lock_file(handle)
    finally:
        os.close(handle)
