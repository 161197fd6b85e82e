"""A program on a pseudo terminal: what it shows, what it writes, and what it costs."""

import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte

COLUMNS, ROWS = 120, 40
_TICK = os.sysconf("SC_CLK_TCK")
_ANSWERS = {
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b]11;?": b"\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
    b"\x1b]10;?": b"\x1b]10;rgb:dddd/dddd/dddd\x1b\\",
}
# pyte takes the end of these for text.
_UNKNOWN = re.compile(rb"\x1b\[[<>=][0-9;]*[a-zA-Z]")


class Program:
    """A program on a terminal of its own."""

    def __init__(self, command: list[str], folder: Path, environ: Mapping[str, str]) -> None:
        self._main, other = pty.openpty()
        size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
        fcntl.ioctl(self._main, termios.TIOCSWINSZ, size)
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = threading.Condition()
        self._home = os.fsencode(environ.get("HOME") or "?")
        self.written = 0
        self.frames = 0
        self.started = time.monotonic()
        self.process: subprocess.Popen[Any] = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environ),
            start_new_session=True,
            stdin=other,
            stdout=other,
            stderr=other,
        )
        os.close(other)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._main, 65536)
            except OSError:
                return
            if not data:
                return
            for asked, answer in _ANSWERS.items():
                if asked in data:
                    self.press(answer)
            if b"\x1b[6n" in data:
                cursor = self._screen.cursor
                self.press(b"\x1b[%d;%dR" % (cursor.y + 1, cursor.x + 1))
            with self._changed:
                self.written += len(data)
                self.frames += data.count(b"\x1b[?2026h")
                with suppress(Exception):
                    self._stream.feed(_UNKNOWN.sub(b"", data))
                self._changed.notify_all()

    def press(self, data: bytes) -> None:
        """Types bytes."""
        with suppress(OSError):
            os.write(self._main, data)

    def rows(self) -> list[str]:
        """The rows of the screen."""
        with self._changed:
            return [row.rstrip() for row in self._screen.display]

    def wait(self, words: str, patience: float = 60.0) -> float:
        """Waits for words on the screen; returns the time when they were there."""
        try:
            return self.until(lambda rows: any(words in row for row in rows), patience)
        except TimeoutError as error:
            raise TimeoutError(f"{words!r} did not appear:\n{error}") from error

    def until(self, test: Callable[[list[str]], bool], patience: float) -> float:
        """Waits until the rows of the screen pass a test; returns the time when they did."""
        until = time.monotonic() + patience
        with self._changed:
            while not test(self._screen.display):
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError("\n".join(map(str.rstrip, self._screen.display)).strip())
                self._changed.wait(left)
            return time.monotonic()

    def cpu(self, *, tree: bool = True) -> float:
        """Seconds of CPU so far, of the program and all its processes."""
        processes = self._tree() if tree else [self.process.pid]
        return sum(map(_cpu, processes)) / _TICK

    def memory(self) -> float:
        """Megabytes in memory, of the program and all its processes."""
        return sum(map(_resident, self._tree())) / 1024

    def _tree(self) -> list[int]:
        parents: dict[int, int] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError, IndexError, ValueError):
                    parents[int(entry.name)] = int(_stat(int(entry.name))[1])
        # Servers that a program starts beside itself belong to it too: its home is in their names.
        found = [self.process.pid, *(pid for pid in parents if self._home in _command(pid))]
        for one in found:
            found += [pid for pid, parent in parents.items() if parent == one]
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """Ends the program and what it started."""
        for pid in reversed(self._tree()):
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._main)


class Relay:
    """Passes one connection at a time to a server; knows when the end of an answer came."""

    def __init__(self, origin: str, end: bytes) -> None:
        host, _, port = origin.removeprefix("http://").partition(":")
        self._server = (host, int(port))
        self._end = end
        self.ended = 0.0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if self._end in data:
                    self.ended = time.monotonic()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Takes no more connections."""
        self._listening.close()


def _command(pid: int) -> bytes:
    """The program of a process, as the system has it."""
    with suppress(OSError):
        return os.fsencode(os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH115 - bytes
    return b""


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name: state, parent, …"""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> int:
    """Ticks of a process and of those of its children that ended."""
    with suppress(OSError, IndexError):
        return sum(map(int, _stat(pid)[11:15]))
    return 0


def _resident(pid: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
    return 0
