"""A batch on a PostgreSQL server: hosts of several machines work from it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolwire.batch import results, tasks
from toolwire.batch.plan import Trial
from toolwire.batch.results import Result, State
from toolwire.batch.store import BatchLost, Claim, Totals
from toolwire.batch.tasks import Task
from toolwire.errors import BadInput, ToolwireError
from toolwire.sessions.postgres.link import Connection
from toolwire.sessions.postgres.worker import LEASE_SECONDS, Held, has_ended, worker_for

Values = Mapping[str, object]
NO_VALUES: Values = {}
_RUNS = "SELECT n, id, model, attempt, tries FROM runs WHERE batch = %(batch)s"
_HOLDER = """
SELECT w.pid, w.host, w.place FROM batches b
JOIN workers w ON w.id = b.holder AND w.alive_until > now()
WHERE b.id = %(batch)s"""
_BODIES = """
SELECT n, result FROM runs WHERE batch = %(batch)s AND result IS NOT NULL
AND state NOT IN ('waiting', 'running', 'stopped') AND n > %(after)s ORDER BY n LIMIT %(most)s"""
_AGAIN = """
UPDATE runs SET state = 'waiting', tries = 0, epoch = epoch + 1, session = NULL
WHERE batch = %(batch)s AND (id = ANY(%(ids)s) OR state = ANY(%(states)s))
AND state NOT IN ('waiting', 'running') RETURNING n, id, model, attempt"""
_SESSIONS_OF = """
DELETE FROM sessions WHERE id IN (
    SELECT s.id FROM runs r JOIN sessions s ON s.id = r.session
    WHERE r.batch = %(batch)s LIMIT %(most)s) RETURNING id"""
_AT_ONCE = 1_000
_DELETED_AT_ONCE = 500


class PostgresBatch:
    """One batch on a server. A driver holds it by a lease, as a session is held."""

    def __init__(self, url: str, id: str, *, lease: float = LEASE_SECONDS) -> None:
        self.id = id
        self._worker = worker_for(url, lease)
        self._link = self._worker.records
        self._epoch = 0
        if not self._rows("SELECT 1 FROM batches WHERE id = %(batch)s"):
            raise BadInput(f'no batch "{id}" on {self._link.shown}')

    @classmethod
    def create(cls, url: str, id: str, *, lease: float = LEASE_SECONDS) -> "PostgresBatch":
        """An empty batch with this id."""
        link = worker_for(url, lease).records
        made = link.ask(
            "INSERT INTO batches (id) VALUES (%(id)s) ON CONFLICT DO NOTHING RETURNING id",
            {"id": id},
        )
        if not made:
            raise BadInput(f'{link.shown} already has a batch "{id}"')
        return cls(url, id, lease=lease)

    def add(self, given: Iterable[Task], models: Sequence[str], attempts: int) -> int:
        """Adds tasks with an attempt for each model and number; all of them or none."""
        listed = list(given)

        def add(connection: Connection) -> int:
            with connection.transaction(), connection.cursor() as cursor:
                # Locked: two that add at once do not use the same numbers.
                cursor.execute("SELECT 1 FROM batches WHERE id = %s FOR UPDATE", (self.id,))
                cursor.execute("SELECT coalesce(max(n), 0) FROM runs WHERE batch = %s", (self.id,))
                (last,) = cursor.fetchone() or (0,)
                lines = [
                    (self.id, task.id, line, task.digest, tasks.encode(task))
                    for line, task in enumerate(listed, last + 1)
                ]
                cursor.executemany(
                    "INSERT INTO tasks (batch, id, line, digest, spec) VALUES (%s, %s, %s, %s, %s) "
                    "ON CONFLICT (batch, id) DO UPDATE SET digest = excluded.digest, "
                    "spec = excluded.spec, line = excluded.line",
                    lines,
                )
                runs = [
                    (self.id, task.id, model, attempt)
                    for task in listed
                    for model in ((task.model,) if task.model else models)
                    for attempt in range(1, attempts + 1)
                ]
                cursor.executemany(
                    "INSERT INTO runs (n, batch, id, model, attempt) VALUES (%s, %s, %s, %s, %s)",
                    [(n, *run) for n, run in enumerate(runs, last + 1)],
                )
                return len(runs)

        return self._link.patiently(lambda: self._link.run(add, endless=True), 0.0)

    def publish(self) -> None:
        """Nothing to do: a batch is found by its folder's specification."""

    def take(self) -> int:
        """Takes the batch over; a second driver is refused, naming the first."""

        def take(connection: Connection) -> int:
            with connection.transaction():
                connection.execute("SELECT 1 FROM batches WHERE id = %s FOR UPDATE", (self.id,))
                holder = connection.execute(_HOLDER.encode(), {"batch": self.id}).fetchone()
                if holder is not None and not has_ended(holder[2], holder[0]):
                    raise BadInput(
                        f'batch "{self.id}" is being run by process {holder[0]} on {holder[1]}; '
                        "look at it with toolwire batch status, or end it with toolwire batch stop"
                    )
                row = connection.execute(
                    "UPDATE batches SET epoch = epoch + 1, holder = %s, facts = facts - 'stop' "
                    "WHERE id = %s RETURNING epoch",
                    (self._worker.id, self.id),
                ).fetchone()
            return int(row[0]) if row else 0

        with self._worker.claiming():
            self._epoch = self._link.patiently(lambda: self._link.run(take), 0.0)
            self._worker.hold(self.id, Held(self._epoch, self._lose))
        return self._epoch

    def is_taken(self) -> bool:
        """Whether a driver has the batch."""
        return any(not has_ended(place, pid) for pid, _, place in self._rows(_HOLDER))

    def meta(self, key: str) -> str:
        """A value of the batch; empty if it has none."""
        found = self._rows(
            "SELECT facts ->> %(key)s FROM batches WHERE id = %(batch)s", {"key": key}
        )
        return str(found[0][0] or "") if found else ""

    def set_meta(self, key: str, value: str) -> None:
        """Stores a value of the batch."""
        self._rows(
            "UPDATE batches SET facts = facts || "
            "jsonb_build_object(%(key)s::text, %(value)s::text) WHERE id = %(batch)s",
            {"key": key, "value": value},
        )

    def waiting(self, after: int, most: int) -> list[Trial]:
        """Attempts that are to be run, in their order, after this number."""
        rows = self._rows(
            f"{_RUNS} AND state = 'waiting' AND n > %(after)s ORDER BY n LIMIT %(most)s",
            {"after": after, "most": most},
        )
        return [Trial(n=n, id=id, model=model, attempt=k, tries=t) for n, id, model, k, t in rows]

    def recover(self) -> int:
        """Marks attempts that were in flight or stopped as waiting; returns how many."""
        return len(
            self._own(
                "UPDATE runs SET state = 'waiting', epoch = epoch + 1, "
                "tries = greatest(0, tries - 1) "
                "WHERE batch = %(batch)s AND state IN ('running', 'stopped') RETURNING n"
            )
        )

    def errors(self) -> list[tuple[int, int, Result]]:
        """Attempts in the state `error`: number, tries, result."""
        rows = self._rows(
            "SELECT n, tries, result FROM runs WHERE batch = %(batch)s AND state = 'error' "
            "AND result IS NOT NULL ORDER BY n"
        )
        return [(n, tries, results.decode(bytes(body))) for n, tries, body in rows]

    def bodies(self) -> Iterator[bytes]:
        """The lines of ended attempts, in the order of the tasks."""
        after = 0
        while rows := self._rows(_BODIES, {"after": after, "most": _AT_ONCE}):
            for _, body in rows:
                yield bytes(body)
            after = rows[-1][0]

    def claim(self, n: int, host: str) -> Claim:
        """Marks an attempt as running by this host."""
        [row] = self._own(
            "UPDATE runs SET state = 'running', tries = tries + 1, epoch = epoch + 1, "
            "host = %(host)s WHERE batch = %(batch)s AND n = %(n)s "
            "RETURNING epoch, id, model, attempt, tries, coalesce(session, '')",
            {"n": n, "host": host},
        ) or [None]
        if row is None:
            raise ToolwireError(f'batch "{self.id}" has no attempt {n}')
        epoch, id, model, attempt, tries, session = row
        return Claim(
            n=n, epoch=epoch, id=id, model=model, attempt=attempt, tries=tries, session=session
        )

    def holds(self, claim: Claim) -> bool:
        """Whether the claim is still current."""
        return bool(
            self._rows(
                "SELECT 1 FROM runs WHERE batch = %(batch)s AND n = %(n)s AND epoch = %(epoch)s "
                "AND state = 'running'",
                {"n": claim.n, "epoch": claim.epoch},
            )
        )

    def begin(self, claim: Claim, session: str) -> bool:
        """Notes the session of an attempt before it does anything.

        False if the claim is over, or another host with the same claim began one.
        """
        return bool(
            self._rows(
                "UPDATE runs SET session = %(session)s WHERE batch = %(batch)s AND n = %(n)s "
                "AND epoch = %(epoch)s AND state = 'running' "
                "AND coalesce(session, '') IN (%(before)s, %(session)s) RETURNING n",
                {
                    **{"n": claim.n, "epoch": claim.epoch},
                    **{"session": session, "before": claim.session},
                },
            )
        )

    def task(self, id: str) -> Task:
        """The task with this id."""
        found = self._rows(
            "SELECT spec FROM tasks WHERE batch = %(batch)s AND id = %(id)s", {"id": id}
        )
        if not found:
            raise BadInput(f'no task "{id}" in batch "{self.id}"')
        return tasks.decode(bytes(found[0][0]))

    def digests(self) -> dict[str, str]:
        """The digest of each task by its id."""
        return dict(self._rows("SELECT id, digest FROM tasks WHERE batch = %(batch)s"))

    def finish(self, claim: Claim, result: Result) -> bool:
        """Stores the result of an attempt; False if the claim is no longer current."""
        body = results.encode(result)
        values: dict[str, object] = {
            **{"n": claim.n, "epoch": claim.epoch, "state": result.state, "result": body},
            **{"cost": result.cost, "host": result.host, "sent": 0},
            "tokens": result.usage.input + result.usage.output,
        }

        def finish(connection: Connection) -> bool:
            done = connection.execute(
                "UPDATE runs SET state = %(state)s, result = %(result)s, cost = %(cost)s, "
                "tokens = %(tokens)s, host = %(host)s WHERE batch = %(batch)s AND n = %(n)s "
                "AND epoch = %(epoch)s AND state = 'running'",
                {**values, "batch": self.id},
            ).rowcount
            values["sent"] = 1
            return done == 1

        def again() -> bool:
            # Without an answer the first time, it may have been stored.
            repeated = bool(values["sent"])
            values["sent"] = 1
            if self._link.run(finish):
                return True
            return repeated and bool(
                self._rows(
                    "SELECT 1 FROM runs WHERE batch = %(batch)s AND n = %(n)s "
                    "AND epoch = %(epoch)s AND result = %(result)s",
                    values,
                )
            )

        return self._link.patiently(again, self._worker.lease)

    def fail(self, n: int, result: Result) -> None:
        """Stores the result of an attempt that no host can report any more."""
        self._own(
            "UPDATE runs SET state = %(state)s, result = %(result)s, epoch = epoch + 1 "
            "WHERE batch = %(batch)s AND n = %(n)s",
            {"n": n, "state": result.state, "result": results.encode(result)},
        )

    def give_back(self, n: int) -> None:
        """Marks an attempt as waiting again; its last host can no longer finish it."""
        self._own(
            "UPDATE runs SET state = 'waiting', epoch = epoch + 1 "
            "WHERE batch = %(batch)s AND n = %(n)s",
            {"n": n},
        )

    def again(self, states: Sequence[str], ids: Sequence[str] = ()) -> list[Trial]:
        """Marks ended attempts as waiting, by state or by id; returns them."""
        rows = self._own(_AGAIN, {"ids": list(ids), "states": [] if ids else list(states)})
        return [Trial(n=n, id=id, model=model, attempt=k) for n, id, model, k in sorted(rows)]

    def drop(self, ids: Sequence[str]) -> None:
        """Removes tasks and their attempts."""
        self._own(
            "DELETE FROM tasks WHERE batch = %(batch)s AND id = ANY(%(ids)s)", {"ids": list(ids)}
        )

    def ended(self, n: int) -> Result | None:
        """The result of an attempt that has ended; None if it waits or runs."""
        found = self._rows(
            "SELECT result FROM runs WHERE batch = %(batch)s AND n = %(n)s "
            "AND state NOT IN ('waiting', 'running') AND result IS NOT NULL",
            {"n": n},
        )
        return results.decode(bytes(found[0][0])) if found else None

    def results(self) -> Iterator[Result]:
        """The results of ended attempts, in the order of the tasks."""
        return map(results.decode, self.bodies())

    def of_task(self, id: str) -> list[tuple[Trial, State, Result | None]]:
        """The attempts at one task."""
        rows = self._rows(
            "SELECT n, model, attempt, tries, state, result FROM runs "
            "WHERE batch = %(batch)s AND id = %(id)s ORDER BY n",
            {"id": id},
        )
        return [
            (
                Trial(n=n, id=id, model=model, attempt=k, tries=tries),
                State(state),
                None if body is None else results.decode(bytes(body)),
            )
            for n, model, k, tries, state, body in rows
        ]

    def unfinished(self) -> Iterator[int]:
        """The numbers of attempts that are to go on, in the states `waiting` to `stopped`."""
        rows = self._rows(
            "SELECT n FROM runs WHERE batch = %(batch)s "
            "AND state IN ('waiting', 'running', 'stopped')"
        )
        return (n for (n,) in rows)

    def ids(self) -> list[str]:
        """The ids of all tasks."""
        rows = self._rows("SELECT id FROM tasks WHERE batch = %(batch)s ORDER BY line")
        return [id for (id,) in rows]

    def totals(self) -> Totals:
        """Counts of states, cost and tokens."""
        rows = self._rows(
            "SELECT state, count(*), coalesce(sum(cost), 0), sum(tokens)::bigint FROM runs "
            "WHERE batch = %(batch)s GROUP BY state"
        )
        return Totals(
            states={state: count for state, count, _, _ in rows},
            cost=sum(cost for _, _, cost, _ in rows),
            tokens=sum(tokens for _, _, _, tokens in rows),
        )

    def delete(self) -> None:
        """Removes the batch and its sessions, in chunks."""
        while self._rows(_SESSIONS_OF, {"most": _DELETED_AT_ONCE}):
            pass
        self._rows("DELETE FROM batches WHERE id = %(batch)s")

    def close(self) -> None:
        """Releases the batch."""
        if not self._epoch:
            return
        epoch, self._epoch = self._epoch, 0
        try:
            self._rows(
                "UPDATE batches SET holder = NULL WHERE id = %(batch)s AND epoch = %(epoch)s",
                {"epoch": epoch},
            )
        finally:
            self._worker.release(self.id)

    def _lose(self, why: str) -> None:
        del why
        self._epoch = -1

    def _own(self, statement: str, values: Values = NO_VALUES) -> list[tuple[Any, ...]]:
        """Returns the rows of a change by the driver; raises if another one took over."""

        def change(connection: Connection) -> list[tuple[Any, ...]]:
            with connection.transaction():
                ours = connection.execute(
                    "SELECT 1 FROM batches WHERE id = %s AND epoch = %s FOR SHARE",
                    (self.id, self._epoch),
                ).fetchone()
                if ours is None or self._epoch <= 0:
                    raise BatchLost(f'another driver has taken over batch "{self.id}"')
                cursor = connection.execute(statement.encode(), {**values, "batch": self.id})
                return cursor.fetchall() if cursor.description is not None else []

        return self._link.patiently(lambda: self._link.run(change), self._worker.lease)

    def _rows(self, statement: str, values: Values = NO_VALUES) -> list[tuple[Any, ...]]:
        """Returns the rows of a statement that may be repeated."""
        values = {**values, "batch": self.id}
        return self._link.ask(statement, values, patience=self._worker.lease)
