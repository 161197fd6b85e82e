"""This process as a worker of the store: one heartbeat for all sessions that it holds."""

import os
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import msgspec

from toolwire import __version__
from toolwire.errors import SessionError
from toolwire.ids import new_id
from toolwire.sessions.postgres.link import Connection, ConnectionBroken, Link

LEASE_SECONDS = float(os.environ.get("TOOLWIRE_LEASE_SECONDS", "60"))
"""Shortened by tests only: all processes of a store need the same."""
_BEATS = 5
"""Heartbeats in a lease."""
_PATIENCE = 2.0
"""Seconds until a server that cannot be reached is reported, before a session is held."""
_SAFE_SHARE = 0.7
"""Share of the lease after which no effect is started without another heartbeat."""
_BEAT = (
    "INSERT INTO workers VALUES (%(id)s, %(host)s, %(pid)s, %(version)s, %(place)s, "
    "now() + make_interval(secs => %(lease)s)) "
    "ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until"
)
_HELD = (
    "SELECT id, epoch FROM sessions WHERE id = ANY(%(ids)s) "
    "UNION ALL SELECT id, epoch FROM batches WHERE id = ANY(%(ids)s)"
)
_RELEASE = (
    "UPDATE sessions SET holder = NULL, claim = '' "
    "WHERE id = %(session)s AND epoch = %(epoch)s AND holder = %(id)s"
)
_COMMANDS = "DELETE FROM commands WHERE session = ANY(%(ids)s) RETURNING session, kind"
_COMMANDS_EVERY = 1.0
"""Seconds; polled, since poolers that share connections deliver no notifications."""
_LEAVE = "DELETE FROM workers WHERE id = %(id)s OR alive_until < now() - interval '1 day'"


class Held(msgspec.Struct, frozen=True):
    """A session or a batch that this process holds."""

    epoch: int
    lose: Callable[[str], None]
    """Called once, with the reason, when the session is no longer ours."""
    command: Callable[[str], None] | None = None
    """Called with the kind of each command of another process."""


class StoreWorker:
    """Keeps the leases of this process; it has a heartbeat while it holds a session."""

    def __init__(self, url: str, lease: float) -> None:
        self.id = new_id("w")
        self.lease = lease
        self.records = Link(url, self._guard)
        """For records and questions."""
        self._beats = Link(url, self._guard)
        self._held: dict[str, Held] = {}
        self._owed: dict[str, int] = {}
        """Sessions that ended without an answer of the server, by their epoch."""
        self._guarded = threading.Lock()
        self._lock = threading.Lock()
        self._beating = threading.Lock()
        self._claims = 0
        self._stop: threading.Event | None = None
        self._last_good = 0.0

    @property
    def fresh(self) -> bool:
        """Whether the last good heartbeat is young enough to start an effect."""
        return time.monotonic() - self._last_good < self.lease * _SAFE_SHARE

    @contextmanager
    def claiming(self) -> Generator[None]:
        """Makes this worker known as alive while it claims a session."""
        with self._lock:
            self._claims += 1
        try:
            if not self.fresh:
                self.records.patiently(self.beat, _PATIENCE)
            yield
        finally:
            with self._lock:
                self._claims -= 1
            self._rest()

    def hold(self, session: str, held: Held) -> None:
        """Renews the lease of this session, too."""
        with self._lock:
            self._held[session] = held
            if self._stop is None:
                self._stop = threading.Event()
                for work in (self._keep_beating, self._listen):
                    threading.Thread(target=work, args=(self._stop,), daemon=True).start()

    def release(self, session: str, *, owed: int = 0) -> None:
        """Ends the lease of a session; the last one ends the heartbeat.

        `owed` is the epoch of one that the server may still show as held: the heartbeat goes on
        for other sessions, so the next one that is answered releases it.
        """
        with self._lock:
            self._held.pop(session, None)
            if owed:
                self._owed[session] = owed
        self._rest()

    def _rest(self) -> None:
        """Stops the heartbeat if there is nothing to hold."""
        with self._lock:
            if self._held or self._claims:
                return
            if self._stop is not None:
                self._stop.set()
                self._stop = None
            self._last_good = 0.0
            with suppress(ConnectionBroken, SessionError):
                self.records.run(lambda connection: connection.execute(_LEAVE, {"id": self.id}))
            self._beats.close()

    def beat(self) -> None:
        """Renews the lease; raises `ConnectionBroken` if that is not known to have worked."""
        with self._lock:
            held, owed = dict(self._held), dict(self._owed)
        values = {
            "id": self.id,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": __version__,
            "place": process_table(),
            "lease": self.lease,
        }

        def beat(connection: Connection) -> dict[str, int]:
            for session, epoch in owed.items():
                named = {"session": session, "epoch": epoch, "id": self.id}
                connection.execute(_RELEASE, named)
            connection.execute(_BEAT, values)
            if not held:
                return {}
            return dict(connection.execute(_HELD, {"ids": list(held)}).fetchall())

        with self._beating:
            # Counted from before the statement: the server's lease begins later than this.
            began = time.monotonic()
            epochs = self._beats.run(beat)
            self._last_good = began
        with self._lock:
            for session, epoch in owed.items():
                if self._owed.get(session) == epoch:
                    del self._owed[session]
        for session, one in held.items():
            if epochs.get(session) != one.epoch:
                one.lose("another process has taken it over")

    def _keep_beating(self, stop: threading.Event) -> None:
        while not stop.wait(self.lease / _BEATS):
            with suppress(ConnectionBroken, SessionError):
                self.beat()

    def _listen(self, stop: threading.Event) -> None:
        """Delivers what other processes ask of the sessions that this one holds."""
        while not stop.wait(_COMMANDS_EVERY):
            with self._lock:
                held = {id: one.command for id, one in self._held.items() if one.command}
            if not held:
                continue
            with suppress(ConnectionBroken, SessionError):
                for session, kind in self._beats.ask(_COMMANDS, {"ids": list(held)}):
                    held[session](kind)

    def _guard(self) -> None:
        """Starts to watch the connections; once, also before anything is held."""
        if self._guarded.acquire(blocking=False):
            threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        """Cuts statements that get no answer, and gives sessions up whose lease is over."""
        while True:
            time.sleep(self.lease / 60)
            # Without the lock: a statement that waits for an answer may have it.
            held = tuple(self._held.values())
            for link in (self.records, self._beats):
                link.cut_if_silent(self.lease / _BEATS if held else self.lease)
            if held and time.monotonic() - self._last_good > self.lease:
                for one in held:
                    one.lose(f"the session store did not answer for {self.lease:.0f} s")


@cache
def process_table() -> str:
    """Returns what names the process table of this boot of this machine; empty if not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def has_ended(place: str, pid: int) -> bool:
    """Whether a worker is known to have ended: its lease need not be waited for."""
    if not place or place != process_table():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


_workers: dict[tuple[str, float, int], StoreWorker] = {}
_workers_lock = threading.Lock()


def worker_for(url: str, lease: float = LEASE_SECONDS) -> StoreWorker:
    """Returns the one worker of this process for a store."""
    with _workers_lock:
        key = (url, lease, os.getpid())
        if key not in _workers:
            _workers[key] = StoreWorker(url, lease)
        return _workers[key]
