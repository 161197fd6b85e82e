"""Rates on a PostgreSQL server, which hosts of all machines share."""

from collections.abc import Mapping
from typing import Any

from toolwire.batch.limits import Buckets, RateKind
from toolwire.sessions.postgres.link import Connection
from toolwire.sessions.postgres.worker import LEASE_SECONDS, worker_for


class PostgresLimits:
    """Rates that all hosts of all machines share: requests and tokens a minute by key."""

    def __init__(
        self, url: str, requests: int = 0, tokens: int = 0, *, lease: float = LEASE_SECONDS
    ) -> None:
        self._set: dict[RateKind, int] = {"requests": requests, "tokens": tokens}
        self._link = worker_for(url, lease).records
        self._lease = lease

    def take(self, key: str, amounts: Mapping[RateKind, float]) -> float:
        """Takes all amounts and returns 0, or takes none and returns the seconds to wait."""

        def take(connection: Connection) -> float:
            with connection.transaction():
                rows = connection.execute(
                    "SELECT kind, per_minute, tokens, extract(epoch FROM clock_timestamp() - at), "
                    "extract(epoch FROM blocked_until - clock_timestamp()) "
                    "FROM limits WHERE key = %s ORDER BY kind FOR UPDATE",
                    (key,),
                ).fetchall()
                return self._taken(connection, key, amounts, rows)

        return self._link.patiently(lambda: self._link.run(take), self._lease)

    def _taken(
        self,
        connection: Connection,
        key: str,
        amounts: Mapping[RateKind, float],
        rows: list[tuple[Any, ...]],
    ) -> float:
        known = {row[0]: row[1:] for row in rows}
        blocked = max((float(row[4]) for row in rows if row[4] is not None), default=0.0)
        if blocked > 0:
            return blocked
        rates: dict[RateKind, float] = {kind: n for kind, n in self._set.items() if n}
        for kind, (per_minute, *_) in known.items():
            if per_minute:
                rates.setdefault(kind, per_minute)
        levels: list[tuple[str, RateKind, float, float]] = []
        wait = 0.0
        for kind, per_minute in rates.items():
            level = most = Buckets.capacity(per_minute)
            if kind in known:
                _, tokens, since, _ = known[kind]
                level = min(most, tokens + float(since) * Buckets.per_second(per_minute))
            level, needed = Buckets.take(level, per_minute, amounts.get(kind, 0.0))
            levels.append((key, kind, per_minute, level))
            wait = max(wait, needed)
        if not wait:
            with connection.cursor() as cursor:
                cursor.executemany(
                    "INSERT INTO limits (key, kind, per_minute, tokens, at) "
                    "VALUES (%s, %s, %s, %s, clock_timestamp()) ON CONFLICT (key, kind) DO UPDATE "
                    "SET per_minute = excluded.per_minute, tokens = excluded.tokens, "
                    "at = excluded.at",
                    levels,
                )
        return wait

    def block(self, key: str, seconds: float) -> None:
        """Makes every host wait."""
        self._link.ask(
            "INSERT INTO limits (key, kind, per_minute, tokens, blocked_until) "
            "VALUES (%(key)s, 'requests', 0, 0, now() + make_interval(secs => %(seconds)s)) "
            "ON CONFLICT (key, kind) DO UPDATE "
            "SET blocked_until = greatest(limits.blocked_until, excluded.blocked_until)",
            {"key": key, "seconds": seconds},
            patience=self._lease,
        )

    def learn(self, key: str, kind: RateKind, per_minute: int) -> None:
        """Sets a rate that the vendor reported, unless the user set one."""
        if self._set[kind]:
            return
        self._link.ask(
            "INSERT INTO limits (key, kind, per_minute, tokens) "
            "VALUES (%(key)s, %(kind)s, %(rate)s, %(level)s) "
            "ON CONFLICT (key, kind) DO UPDATE SET per_minute = excluded.per_minute",
            {
                **{"key": key, "kind": kind, "rate": per_minute},
                "level": Buckets.capacity(per_minute) / 2,
            },
            patience=self._lease,
        )

    def close(self) -> None:
        """Nothing to close: the connection is the process's."""
