"""A connection to PostgreSQL that is opened again after it broke, and can be cut from outside."""

import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeAlias, TypeVar

from toolwire.errors import SessionError

try:
    import psycopg
    import psycopg.conninfo
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus
except ImportError as error:
    raise SessionError(
        "sessions.store names a PostgreSQL server, and psycopg is not installed; install "
        "toolwire[postgres], or empty sessions.store to use files"
    ) from error

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
_ADVISORY = 0x746F6F6C
_META = (
    "SELECT 1 FROM pg_class c WHERE c.relname = 'meta' AND c.relkind = 'r' "
    "AND c.relnamespace = current_schema()::regnamespace"
)
_FIRST_WAIT = 0.05
_LONGEST_WAIT = 5.0
_CONNECT_SECONDS = 10


class ConnectionBroken(Exception):
    """The server could not be reached, or the answer to a statement did not arrive.

    Whether the statement was carried out is not known.
    """


class Link:
    """One connection, used by one thread at a time."""

    def __init__(self, url: str, connected: Callable[[], None] = lambda: None) -> None:
        """`connected` is called with each new connection."""
        self.url = url
        self._connected = connected
        self._lock = threading.RLock()
        self._connection: Connection | None = None
        self._busy_since: float | None = None

    @property
    def shown(self) -> str:
        """The address without a password."""
        try:
            known = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.Error:
            return "of sessions.store"
        return f"{known.get('host') or 'localhost'}/{known.get('dbname') or ''}"

    def run(self, work: Callable[[Connection], T], *, endless: bool = False) -> T:
        """Returns what the work returns; raises `ConnectionBroken` if the connection broke.

        `endless` work is not taken for a silent server, however long it takes.
        """
        with self._lock:
            try:
                connection = self._opened()
                self._busy_since = None if endless else time.monotonic()
                return work(connection)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                held = self._connection
                if held is not None and not held.closed and not held.broken:
                    raise self._failed(error) from error
                self._drop()
                raise ConnectionBroken(_words(error)) from error
            except psycopg.Error as error:
                raise self._failed(error) from error
            finally:
                self._busy_since = None

    def ask(
        self, statement: str, values: Mapping[str, object] | None = None, *, patience: float = 0.0
    ) -> list[tuple[Any, ...]]:
        """Returns the rows of a statement that may be repeated: one that only reads."""

        def rows(connection: Connection) -> list[tuple[Any, ...]]:
            return _executed(connection, statement, values)

        return self.patiently(lambda: self.run(rows), patience)

    def patiently(self, work: Callable[[], T], patience: float) -> T:
        """Returns what the work returns, repeated while the connection breaks."""
        for wait in waits(patience):
            try:
                return work()
            except ConnectionBroken as error:
                if wait is None:
                    raise SessionError(
                        f"cannot reach the session store {self.shown}: {error}; is the server "
                        "running? sessions.store names it"
                    ) from error
                time.sleep(wait)
        raise AssertionError("unreachable")

    def cut_if_silent(self, seconds: float) -> None:
        """Ends a statement that has had no answer for so long; from any thread."""
        since, connection = self._busy_since, self._connection
        if since is None or connection is None or time.monotonic() - since < seconds:
            return
        with suppress(OSError, psycopg.Error):
            handle = socket.socket(fileno=socket.dup(connection.fileno()))
            with handle:
                handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes the connection; the next use opens it again."""
        with self._lock:
            self._drop()

    def _opened(self) -> Connection:
        if self._connection is None:
            try:
                # Statements are not prepared: poolers that share connections lose them.
                self._connection = psycopg.connect(
                    self.url,
                    autocommit=True,
                    prepare_threshold=None,
                    connect_timeout=_CONNECT_SECONDS,
                    application_name="toolwire",
                )
            except psycopg.OperationalError as error:
                raise ConnectionBroken(_words(error)) from error
            except psycopg.Error as error:
                raise self._failed(error) from error
            # A server may go silent here, too.
            self._busy_since = time.monotonic()
            self._connected()
            try:
                migrate(self._connection)
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                self._drop()
                raise ConnectionBroken(_words(error)) from error
            except psycopg.Error as error:
                self._drop()
                raise self._failed(error) from error
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                connection.close()

    def _failed(self, error: psycopg.Error) -> SessionError:
        return SessionError(f"the session store {self.shown} refused a statement: {_words(error)}")


def waits(patience: float) -> Iterator[float | None]:
    """Yields growing waits until the time is over, then None."""
    end = time.monotonic() + patience
    wait = _FIRST_WAIT
    while time.monotonic() < end:
        yield min(wait, max(end - time.monotonic(), 0.0))
        wait = min(wait * 2, _LONGEST_WAIT)
    yield None


def migrate(connection: Connection) -> None:
    """Brings the tables up to date, in one transaction; concurrent ones wait for each other."""
    steps = sorted(
        (int(file.name.partition(".")[0]), file.read_text(encoding="utf-8"))
        for file in (files("toolwire.sessions.postgres") / "migrations").iterdir()
        if file.name.endswith(".sql")
    )
    newest = steps[-1][0]
    if _version(connection) == newest:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ADVISORY,))
        version = _version(connection)
        if version > newest:
            raise SessionError(
                f"the session store has tables of version {version}, this toolwire knows {newest}; "
                "update toolwire on this machine"
            )
        if not version:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS meta (key text PRIMARY KEY, value text NOT NULL)"
            )
        for number, text in steps:
            if number > version:
                connection.execute(text.encode())
        connection.execute(
            "INSERT INTO meta VALUES ('schema', %s) "
            "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (str(newest),),
        )


def _version(connection: Connection) -> int:
    """The version of the tables; 0 if there are none."""
    # Not to_regclass: its cache may not know of a table that was made a moment ago.
    if connection.execute(_META).fetchone() is None:
        return 0
    row = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    return int(row[0]) if row is not None else 0


def returned(
    connection: Connection, statement: bytes, values: list[bytes], formats: list[int]
) -> bool:
    """Whether a statement returned a row; by libpq alone, at half the cost of a cursor."""
    result = connection.pgconn.exec_params(statement, values, param_formats=formats)
    if result.status == ExecStatus.TUPLES_OK:
        return result.ntuples > 0
    if connection.broken or connection.closed:
        raise psycopg.OperationalError(result.error_message.decode("utf-8", "replace"))
    raise error_from_result(result)


def _executed(
    connection: Connection, statement: str, values: Mapping[str, object] | None
) -> list[tuple[Any, ...]]:
    cursor = connection.execute(statement.encode(), values)
    return cursor.fetchall() if cursor.description is not None else []


def _words(error: psycopg.Error) -> str:
    return " ".join(str(error).split()) or type(error).__name__
