"""A process that stands ready and forks keepers of commands: Python starts only once."""

import atexit
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from toolwire.tools import keeper

_SPARE = 2
"""Keepers that wait for a next command."""


class Kept(msgspec.Struct, frozen=True, eq=False):
    """What speaks with the keeper of a command."""

    channel: socket.socket
    keeper: int = 0
    """The number of its process; zero until it has told."""


class Keepers:
    """Starts commands with a keeper beside each; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._spare: list[Kept] = []

    def start(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        environ: Mapping[str, str],
        writers: Sequence[int],
    ) -> Kept:
        """Have a keeper watch over a command; what becomes of it is told on the channel.

        OSError if no keeper can be had.
        """
        order = {"command": list(command), "directory": str(directory), "environ": dict(environ)}
        body = json.dumps(order).encode()
        message = keeper.ORDER + struct.pack("!I", len(body)) + body
        with self._lock:
            self._own()
            if self._process is not None and self._process.poll() is not None:
                # Its keepers would have nobody to see to what they leave if they were killed.
                self._close()
            # Whoever stopped one of them must not hold us.
            keeper.signal_each(self.pids, signal.SIGCONT)
            while self._spare:
                kept = self._spare.pop()
                if _sent(kept.channel, message, writers):
                    return kept
            kept = self._fresh()
            if not _sent(kept.channel, message, writers):
                # Somebody killed the process that stood ready, just now.
                self._close()
                kept = self._fresh()
                if not _sent(kept.channel, message, writers):
                    raise ConnectionResetError
            return kept

    def take_back(self, kept: Kept) -> None:
        """Let a keeper of which the command is gone wait for the next."""
        kept.channel.setblocking(True)
        with self._lock:
            if kept.keeper and self._owner == os.getpid() and len(self._spare) < _SPARE:
                self._spare.append(kept)
            else:
                kept.channel.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the process that stands ready, if there is one yet, and of keepers that wait."""
        ready = (self._process.pid,) if self._process is not None else ()
        return (*ready, *(kept.keeper for kept in self._spare))

    def close(self) -> None:
        """Let all of them go; commands that run have keepers of their own."""
        with self._lock:
            self._own()
            self._close()

    def _own(self) -> None:
        """A fork of ours must not speak on the same lines."""
        if self._owner != os.getpid():
            self._line, self._process, self._spare = None, None, []
            self._owner = os.getpid()

    def _fresh(self) -> Kept:
        """A new keeper, which may turn out to be dead."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                line = self._ready()
                if not _sent(line, b"f", (theirs.fileno(),)):
                    self._close()
                    _sent(self._ready(), b"f", (theirs.fileno(),))
            except BaseException:
                ours.close()
                raise
        return Kept(ours)

    def _ready(self) -> socket.socket:
        if self._line is None:
            ours, theirs = socket.socketpair()
            try:
                self._process = _stand_ready(theirs.fileno())
            except BaseException:
                ours.close()
                raise
            finally:
                theirs.close()
            self._line = ours
            atexit.register(self.close)
        return self._line

    def _close(self) -> None:
        atexit.unregister(self.close)
        for kept in self._spare:
            kept.channel.close()
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            self._process.wait()
        self._line, self._process, self._spare = None, None, []


def _sent(line: socket.socket, message: bytes, descriptors: Sequence[int]) -> bool:
    """False, and the line is closed, if nobody is at its other end any more."""
    try:
        sent = socket.send_fds(line, [message], descriptors)
        line.sendall(message[sent:])
    except (BrokenPipeError, ConnectionResetError):
        line.close()
        return False
    return True


def _stand_ready(line: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own file, by our own Python
        (sys.executable, "-I", "-S", keeper.__file__, str(line)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(line,),
        cwd="/",
        env={},
        start_new_session=True,
    )


KEEPERS = Keepers()
"""Of this process."""
