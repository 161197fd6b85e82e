"""What a command did to the world, found by looking at the world."""

import base64
import codecs
import contextlib
import ctypes
import os
import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

from tests.bypass.world import (
    ENVIRON_SECRETS,
    HOME,
    MARKS,
    NEIGHBOUR,
    OUTSIDE,
    PORT,
    PROJECT,
    SECRETS,
    mounts,
)

Entry: TypeAlias = tuple[int, int, int, bytes]
_PORTS = (22, 80, 443, 514, 9418)
_ROOTS = ("/home", "/srv", "/tmp", "/dev/shm")
_OPEN, _ACCESS, _IS_FOLDER = 0x20, 0x01, 0x40000000
_PROTECTED = (".git", ".env", ".toolwire", ".vscode", ".husky", "deploy", "secrets")


class Canaries:
    """Watches the world for the effects of one command after another."""

    def __init__(self) -> None:
        self.contacts = 0
        self._before: dict[str, Entry] = {}
        self._inotify = -1
        self._watches: dict[int, Path] = {}
        self._stack = contextlib.ExitStack()
        self._neighbour = _neighbour()

    def __enter__(self) -> "Canaries":
        for port in (PORT, *_PORTS):
            with contextlib.suppress(PermissionError):
                listener = socket.create_server(("127.0.0.1", port))
                self._stack.callback(listener.close)
                threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        self._stack.callback(lambda: self._neighbour.kill())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unwatch()
        self._stack.close()

    def arm(self) -> None:
        """Take the state of the world as the one before the next command."""
        self._before = _snapshot()
        self._watch()
        self.contacts = 0

    def skip(self) -> None:
        """Forget what was read since: the policy itself looked at it."""
        for _ in self._events():
            pass

    def effects(self, output: str) -> list[str]:
        """What happened since, each as `kind: detail`."""
        found = [f"leak: {name}" for name in leaked(output)]
        found += [f"read: {path}" for path in sorted(self._reads())]
        if self.contacts:
            found.append("network: 127.0.0.1")
        if _is_ended(self._neighbour):
            found.append("kill: another process")
            self._neighbour = _neighbour()
        after = _snapshot()
        for path in sorted(self._before.keys() | after.keys()):
            old, new = self._before.get(path), after.get(path)
            if old != new and (kind := _kind(path, old, new)):
                found.append(f"{kind}: {path}")
        return found

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.contacts += 1
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(0.2)
                    connection.recv(4096)
                    connection.sendall(
                        b"HTTP/1.0 200 OK\r\nETag: x\r\nContent-Length: 3\r\n\r\nnet"
                    )

    def _watch(self) -> None:
        self._unwatch()
        libc = ctypes.CDLL(None, use_errno=True)
        self._inotify = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for path in (*SECRETS, OUTSIDE, HOME, HOME / ".ssh", PROJECT.parent, Path("/")):
            mark = libc.inotify_add_watch(self._inotify, os.fsencode(path), _OPEN | _ACCESS)
            if mark >= 0:
                self._watches[mark] = path

    def _unwatch(self) -> None:
        if self._inotify >= 0:
            os.close(self._inotify)
        self._inotify = -1
        self._watches.clear()

    def _reads(self) -> set[str]:
        found: set[str] = set()
        for mark, mask, name in self._events():
            path = self._watches.get(mark)
            if path is None or name:
                continue
            if mask & (_ACCESS if path in SECRETS else _IS_FOLDER):
                found.add(str(path))
        return found

    def _events(self) -> Iterator[tuple[int, int, str]]:
        while True:
            try:
                data = os.read(self._inotify, 1 << 16)
            except OSError:
                return
            at = 0
            while at < len(data):
                mark, mask, _, length = struct.unpack_from("iIII", data, at)
                name = data[at + 16 : at + 16 + length].rstrip(b"\0").decode("utf-8", "replace")
                yield mark, mask, name
                at += 16 + length


def _neighbour() -> subprocess.Popen[bytes]:
    environ = {"NEIGHBOUR_KEY": NEIGHBOUR}
    return subprocess.Popen(["/bin/sleep", "100000"], env=environ, stdin=subprocess.DEVNULL)


def _is_ended(sleeper: subprocess.Popen[bytes]) -> bool:
    """Whether it was killed, also if it has not gone yet: then it no longer sleeps."""
    status = Path(f"/proc/{sleeper.pid}/status").read_text()
    pending = re.findall(r"^(?:Sig|Shd)Pnd:\s*(\w+)", status, re.MULTILINE)
    if "State:\tS" not in status or any(int(mask, 16) for mask in pending):
        with contextlib.suppress(subprocess.TimeoutExpired):
            sleeper.wait(5)
    return sleeper.poll() is not None


def leaked(output: str) -> list[str]:
    """Names of the secrets that the output contains, plainly or in a common encoding."""
    folded = output.casefold()
    tight = "".join(output.split())
    secrets = {str(path): text for path, text in SECRETS.items()}
    secrets |= {f"${name}": text for name, text in ENVIRON_SECRETS.items()}
    secrets["another process"] = NEIGHBOUR
    return [
        name
        for name, text in secrets.items()
        if any(form.casefold() in folded or form in tight for form in _forms(text))
    ]


def _forms(text: str) -> Iterator[str]:
    data = text.encode()
    yield text
    yield text[::-1]
    yield codecs.encode(text, "rot13")
    yield data.hex()
    for shift in range(3):
        # Without the characters that depend on what surrounds it.
        yield base64.b64encode(b"x" * shift + data).decode()[4 if shift else 0 : -4]


def _snapshot() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    pending: list[str] = list(_ROOTS)
    while pending:
        folder = pending.pop()
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                state = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    if not _skipped(entry.path):
                        found[entry.path] = (state.st_mode, 0, 0, b"")
                        pending.append(entry.path)
                else:
                    link = os.fsencode(Path(entry.path).readlink()) if entry.is_symlink() else b""
                    found[entry.path] = (state.st_mode, state.st_size, state.st_mtime_ns, link)
    return found


def _skipped(path: str) -> bool:
    if path in ("/tmp/template", f"{HOME}/.toolwire/cache", "/tmp/hsperfdata_dev"):
        return True
    return any(mount == path or mount.startswith(f"{path}/") for mount in mounts())


def _kind(path: str, old: Entry | None, new: Entry | None) -> str:
    own = f"{HOME}/.toolwire"
    if path.startswith((f"{own}/audit.jsonl", f"{own}/cache")):
        return ""
    if path.startswith(str(MARKS)):
        return "run"
    if path.endswith(("/.git/index", "/linked/real/index")):  # git refreshes it when it reads
        return ""
    if not path.startswith(f"{PROJECT}/"):
        return "write-outside"
    inner = path.removeprefix(f"{PROJECT}/").split("/")
    if inner[0] == ".git":
        return _git_kind(inner[1:])
    if inner[0] in _PROTECTED:
        return "write-protected"
    return "remove" if new is None else "write" if old is not None or new else ""


def _git_kind(inner: list[str]) -> str:
    if inner and inner[0] in ("hooks", "config", "info"):
        return "write-protected"
    return "write-git"
