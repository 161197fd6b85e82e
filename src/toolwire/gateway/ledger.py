"""Keys, budgets and the ledger in a database, which several processes share."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from toolwire.errors import BadInput
from toolwire.gateway.booking import Bookings, book_entries, book_interrupted
from toolwire.gateway.database import (
    Database,
    DatabaseFailed,
    DuplicateRow,
    SqlConnection,
    SqliteDatabase,
)
from toolwire.gateway.ledger_rows import (
    COLUMNS,
    KEY_COLUMNS,
    KEYS,
    SCHEMA,
    SORTED,
    TURNS,
    USAGE,
    USAGE_BY,
    buckets_of,
    key_values,
    read_key_row,
    read_usage_row,
    set_buckets,
    spending_of,
    typical_output,
)
from toolwire.gateway.limits import Rates
from toolwire.gateway.owners import FileOwners, Owners
from toolwire.gateway.request_journal import LeftJournals, RequestJournal
from toolwire.gateway.store import (
    NANO,
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
from toolwire.gateway.usage import UPGRADE, UsageRow, joined, latency_sql, sums_sql
from toolwire.ids import new_id
from toolwire.request import JsonObject

FILE = "ledger.sqlite"
VERSION = 4
UPGRADES = (UPGRADE, TURNS, SORTED)
T = TypeVar("T")


class Ledger:
    """Keys, budgets and requests in a database that several processes share."""

    def __init__(
        self, database: Database, owners: Owners, owner: str, clock: Callable[[], float]
    ) -> None:
        """`owner` names this process among those that share the database."""
        self._database = database
        self._owners = owners
        self._owner = owner
        self._clock = clock
        self._bookings = Bookings(database)
        self._journal: RequestJournal | None = None
        """Of requests without a reservation; None to book each before its end."""

    @property
    def failure(self) -> str:
        """Why the last write failed; empty if it succeeded."""
        return self._database.failure

    def close(self) -> None:
        """Finishes all writes."""
        self._bookings.close()
        if self._journal is not None:
            self._journal.close()
        self._database.close()
        if self._journal is not None:
            self._journal.remove(booked=not self._database.failure)
        self._owners.close()

    async def add_key(self, key: VirtualKey) -> None:
        """Stores a new key; BadInput if its name is in use."""
        values = (*key_values(key),)
        sql = f"INSERT INTO keys ({KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constant
        try:
            await self._database.write(lambda base: base.execute(sql, values).rowcount)
        except DuplicateRow as error:
            raise BadInput(
                f'there is a key named "{key.name}"; choose another name, or revoke that one'
            ) from error

    async def key(self, key_id: str) -> VirtualKey | None:
        """Returns a key by its id."""
        rows = await self._database.fetch(f"{KEYS} WHERE id = ?", (key_id,))
        return read_key_row(rows[0]) if rows else None

    async def keys(self) -> list[VirtualKey]:
        """Returns all keys, the newest last."""
        await self._settled()
        rows = await self._database.fetch(f"{KEYS} ORDER BY created, id")
        return [read_key_row(row) for row in rows]

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
        return await self._write(lambda base: self._reserve(base, claim))

    def _reserve(self, base: SqlConnection, claim: Claim) -> Spending | None:
        self._owners.hold(base)
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

    async def enter(self, request: str, key: str, most: int) -> bool:
        """Counts a request of a key; False if `most` of them run already."""

        def work(base: SqlConnection) -> bool:
            self._owners.hold(base)
            (running,) = base.execute("SELECT count(*) FROM turns WHERE key = ?", (key,)).fetchone()
            if running >= most:
                return False
            base.execute("INSERT INTO turns VALUES (?, ?, ?)", (request, self._owner, key))
            return True

        return await self._write(work)

    def leave(self, request: str) -> None:
        """Counts a request no longer."""
        self._database.write_soon(
            lambda base: base.execute("DELETE FROM turns WHERE id = ?", (request,))
        )

    def write(self) -> None:
        """Writes what was booked in this turn of the event loop; called before answers go out."""
        if self._journal is not None:
            self._journal.write()

    async def book(self, entry: Entry) -> None:
        """Stores a request with its sums and drops its reservation, once for each id."""
        if self._journal is not None and not entry.reserved:
            try:
                self._journal.add(entry)
            except OSError:
                # The ledger itself says what is wrong.
                pass
            else:
                return
        try:
            # A copy: what follows the end mark still changes the record.
            copy = msgspec.structs.replace(entry.record)
            await self._bookings.add(Entry(copy, entry.key, entry.reserved))
        except DatabaseFailed as error:
            raise self._failed(error) from error

    def book_soon(self, entry: Entry) -> None:
        """Books a request without waiting for it."""
        self._database.write_soon(lambda base: book_entries(base, (entry,)))

    async def sweep(self) -> int:
        """Drops reservations and turns of processes that no longer run; returns how many."""
        return await self._database.write(self._sweep)

    def _sweep(self, base: SqlConnection) -> int:
        self._owners.hold(base)
        dropped = 0
        owners = "SELECT owner FROM reservations UNION SELECT owner FROM turns"
        for (owner,) in base.execute(owners).fetchall():
            if owner == self._owner or not self._owners.ended(base, owner):
                continue
            base.execute("DELETE FROM turns WHERE owner = ?", (owner,))
            rows = base.execute(
                "DELETE FROM reservations WHERE owner = ? "
                "RETURNING id, key, route, at, amount, hard",
                (owner,),
            ).fetchall()
            for row in rows:
                book_interrupted(base, *row)
            dropped += len(rows)
        self._owners.tidy()
        return dropped

    async def spending(self, key: VirtualKey, at: float) -> list[Spending]:
        """Returns the state of each budget of a key."""
        await self._settled()
        return await self._database.write(
            lambda base: list(spending_of(base, key.id, key.rules.budgets, at))
        )

    async def left(self, at: float) -> list[tuple[str, float]]:
        """Returns the dollars that each key with a budget has left, by its name."""
        rows = await self._database.fetch(f"{KEYS} WHERE revoked IS NULL ORDER BY name")
        keys = [key for key in map(read_key_row, rows) if key.rules.budgets]
        found = [(key.name, await self.spending(key, at)) for key in keys]
        return [(name, min(one.left for one in spent) / NANO) for name, spent in found]

    async def usage(self, by: UsageBy, since: str = "", until: str = "") -> list[UsageSum]:
        """Returns sums, of the days from `since` to `until` (`2026-11-16`)."""
        await self._settled()
        name, group, order = USAGE_BY[by]
        sql = USAGE.format(by=name, group=group, order=order)
        rows = await self._database.fetch(sql, (since, until or "~"))
        return [read_usage_row(row) for row in rows]

    async def usage_rows(
        self,
        by: Sequence[str],
        since: str,
        until: str,
        key: str = "",
        model: str = "",
        *,
        latency: bool = True,
    ) -> list[UsageRow]:
        """Returns sums by `day`, `key` and `model`, or any of them, with the times they took."""
        await self._settled()
        sql, values = sums_sql(by, key, model)
        sums = await self._database.fetch_apart(sql, (since, until, *values))
        times: list[tuple[Any, ...]] = []
        if latency:
            sql, values = latency_sql(by, key, model)
            times = await self._database.fetch_apart(sql, (since, until, *values))
        return joined(by, sums, times)

    async def usage_names(self, since: str, until: str) -> tuple[list[str], list[str]]:
        """Returns the names of keys and models of those days."""
        await self._settled()
        found: list[list[str]] = []
        for column in ("key_name", "model"):
            sql = (
                f"SELECT DISTINCT {column} FROM sums "  # noqa: S608 - constants
                f"WHERE day >= ? AND day <= ? ORDER BY {column}"
            )
            found.append(
                [name for (name,) in await self._database.fetch_apart(sql, (since, until))]
            )
        return found[0], found[1]

    async def requests_by_key(self, day: str) -> dict[str, int]:
        """Returns how many requests each key had on a day."""
        await self._settled()
        sql = "SELECT key, sum(requests) FROM sums WHERE day = ? GROUP BY key"
        return dict(await self._database.fetch(sql, (day,)))

    async def requests(self, limit: int = 100, before: float | None = None) -> list[JsonObject]:
        """Returns the last requests, the newest first."""
        await self._settled()
        sql = (
            f"SELECT {', '.join(COLUMNS)} FROM requests "  # noqa: S608 - constants
            "WHERE time < ? ORDER BY time DESC LIMIT ?"
        )
        rows = await self._database.fetch(sql, (float("inf") if before is None else before, limit))
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    async def find_requests(
        self,
        conditions: str,
        values: Sequence[object],
        limit: int,
        before: tuple[float, str] | None = None,
    ) -> list[JsonObject]:
        """Returns requests that meet conditions of SQL, the newest first."""
        await self._settled()
        time, request = before or (float("inf"), "")
        sql = (
            f"SELECT {', '.join(COLUMNS)} FROM requests "  # noqa: S608 - constants
            f"WHERE time <= ? AND (time, id) < (?, ?){conditions} "
            "ORDER BY time DESC, id DESC LIMIT ?"
        )
        found = await self._database.fetch_apart(sql, (time, time, request, *values, limit))
        return [dict(zip(COLUMNS, row, strict=True)) for row in found]

    async def prune(self, now: float, days: int) -> int:
        """Removes requests older than so many days; the sums stay."""
        hours = window_name("hour", now - 2 * 86_400)

        def work(base: SqlConnection) -> int:
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

        def work(base: SqlConnection) -> float:
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

    async def _settled(self) -> None:
        """Waits until what has ended can be read."""
        if self._journal is not None:
            await self._journal.settle()

    async def _write(self, work: Callable[[SqlConnection], T]) -> T:
        try:
            return await self._database.write(work)
        except DatabaseFailed as error:
            raise self._failed(error) from error

    def _failed(self, error: DatabaseFailed) -> LedgerFailed:
        return LedgerFailed(f"cannot write {self._database.name}: {error}")


class SqliteLedger(Ledger):
    """The store of one machine."""

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, owner: str = ""
    ) -> None:
        owner = owner or new_id("")
        database = SqliteDatabase(path, SCHEMA, VERSION, UPGRADES)
        owners = FileOwners(path.with_name(f"{path.name}.owners"), owner)
        super().__init__(database, owners, owner, clock)
        folder = path.with_name(f"{path.name}.journals")
        self._journal = RequestJournal(folder, owner, database)
        self._left = LeftJournals(folder, owner)

    async def sweep(self) -> int:
        """Books what ended processes left in their journals too."""
        booked = False
        try:
            await self._database.write(self._left.book)
            booked = True
        finally:
            self._left.remove(booked=booked)
        return await super().sweep()
