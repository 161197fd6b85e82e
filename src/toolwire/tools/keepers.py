"""A process that stands ready and turns into a keeper for each command: Python starts only once."""

import atexit
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolwire.tools import keeper


class Keepers:
    """Starts keepers from a process of its own; safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        environ: Mapping[str, str],
        channel: int,
        writers: Sequence[int],
    ) -> None:
        """Have a keeper watch over a command; what becomes of it is told on the channel.

        OSError if not even the process that stands ready can be started.
        """
        order = {"command": list(command), "directory": str(directory), "environ": dict(environ)}
        body = json.dumps(order).encode()
        message = struct.pack("!I", len(body)) + body
        with self._lock:
            try:
                self._send(message, (channel, *writers))
            except (BrokenPipeError, ConnectionResetError):
                # Somebody killed it, a command perhaps.
                self._close()
                self._send(message, (channel, *writers))

    @property
    def pid(self) -> int:
        """Of the process that stands ready; zero if there is none yet."""
        return self._process.pid if self._process is not None else 0

    def close(self) -> None:
        """Let the process go; commands that run have keepers of their own."""
        with self._lock:
            self._close()

    def _send(self, message: bytes, descriptors: Sequence[int]) -> None:
        line = self._ready()
        sent = socket.send_fds(line, [message], descriptors)
        line.sendall(message[sent:])

    def _ready(self) -> socket.socket:
        if self._owner != os.getpid():
            # A fork of ours must not speak on the same line.
            self._line, self._process, self._owner = None, None, os.getpid()
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
        if self._line is not None and self._owner == os.getpid():
            self._line.close()
        if self._process is not None and self._owner == os.getpid():
            self._process.wait()
        self._line, self._process = None, None


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
