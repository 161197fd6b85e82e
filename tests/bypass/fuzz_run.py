"""Runs a text in bash and records its effects; only inside the container."""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from types import FrameType

import msgspec

BIN = Path("/srv/bin")
_FOLDER = Path("/srv/case")
_LOG = "/tmp/fuzz-log"
_REAL = ("cat", "ls", "head", "tail", "wc", "sort", "env", "uniq", "tr", "grep")
_SECONDS = 3.0
_LINE = re.compile(rb"bash: (?:-c: )?line \d+: ")
# The links of /proc are as many as there are processes.
_PROCESSES = re.compile(rb"(?m)^dr-xr-xr-x +\d+(?=.* proc$)")
_STREAMS = ("/tmp/fuzz-out", "/tmp/fuzz-err")
_SUBREAPER = 36
_BROKEN_PIPE = re.compile(rb"Broken pipe|write error$")


class Effects(msgspec.Struct, frozen=True):
    """All that a text did."""

    status: int
    out: bytes
    err: tuple[bytes, ...]
    """Sorted, without the numbers of lines, which written anew are others."""
    started: tuple[bytes, ...]
    """What the probes recorded, sorted: parts of a pipeline run in any order."""
    files: tuple[tuple[str, bytes], ...]


class Runner:
    """One folder in which texts run, one after the other."""

    def __init__(self, home: str) -> None:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        signal.signal(signal.SIGALRM, self._late)
        self._child = 0
        self.environ = {"PATH": str(BIN), "HOME": home, "LANG": "C.UTF-8", "FOO": "foo"}
        Path(home).mkdir(parents=True, exist_ok=True)
        (Path(home) / "x").write_text("home\n")
        self._home = home
        _build()
        os.chdir(_FOLDER)
        self._clean = _files(_FOLDER)
        self._clean_home = _files(Path(home))

    def run(self, text: str) -> Effects:
        """The effects of that text, given to bash as the shell tool does."""
        for path in (*_STREAMS, _LOG):
            Path(path).write_bytes(b"")
        flags = os.O_WRONLY | os.O_APPEND
        self._child = os.posix_spawn(
            "/bin/bash",
            ["bash", "-c", "--", f"{text}\n\n"],
            self.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, _STREAMS[0], flags, 0o600),
                (os.POSIX_SPAWN_OPEN, 2, _STREAMS[1], flags, 0o600),
            ],
            setpgroup=0,
        )
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        status = self._wait()
        signal.setitimer(signal.ITIMER_REAL, 0)
        out, err = (Path(path).read_bytes() for path in _STREAMS)
        effects = Effects(
            status=status,
            out=_PROCESSES.sub(b"", _LINE.sub(b"", out))[:4096],
            err=_messages(err),
            started=tuple(sorted(Path(_LOG).read_bytes().splitlines())),
            files=self._changes(),
        )
        return effects

    def _wait(self) -> int:
        status = -1
        while True:
            try:
                child, ended = os.waitpid(-1, 0)
            except ChildProcessError:
                return status
            if child == self._child:
                status = ended

    def _late(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child, signal.SIGKILL)

    def _changes(self) -> tuple[tuple[str, bytes], ...]:
        found: list[tuple[str, bytes]] = []
        for folder, clean in ((_FOLDER, self._clean), (Path(self._home), self._clean_home)):
            now = _files(folder)
            if now != clean:
                found += sorted(now.items())
                os.chdir("/")
                _build()
                shutil.rmtree(self._home)
                Path(self._home).mkdir()
                (Path(self._home) / "x").write_text("home\n")
                os.chdir(_FOLDER)
        return tuple(found)


def _messages(err: bytes) -> tuple[bytes, ...]:
    lines = _LINE.sub(b"", err)[:4096].splitlines()
    return tuple(sorted(line for line in lines if not _BROKEN_PIPE.search(line)))


def compile_probe() -> None:
    """Make the folder of programs: a few real ones, all others the probe."""
    BIN.mkdir(parents=True)
    source = Path(__file__).with_name("probe.c")
    subprocess.run(["cc", "-O1", "-w", "-o", str(BIN / "p"), str(source)], check=True)
    for name in (
        "q",
        "git",
        "find",
        "sed",
        "rg",
        "awk",
        "jq",
        "npm",
        "make",
        "curl",
        "python3",
        "a",
    ):
        os.link(BIN / "p", BIN / name)
    for name in (
        "rm",
        "touch",
        "mkdir",
        "cp",
        "mv",
        "diff",
        "tree",
        "xargs",
        "node",
        "pip",
        "tee",
        "if",
    ):
        os.link(BIN / "p", BIN / name)
    for name in _REAL:
        found = shutil.which(name, path="/usr/bin:/bin")
        if found:
            (BIN / name).symlink_to(found)


def _build() -> None:
    if _FOLDER.exists():
        shutil.rmtree(_FOLDER)
    (_FOLDER / "sub/deep").mkdir(parents=True)
    for name, text in {
        "a.txt": "alpha\nbeta\n",
        "b.txt": "beta\n",
        "sub/c.txt": "c\n",
        "s b": "space\n",
        "-n": "",
        "a*": "star\n",
        "é.txt": "e\n",
        ".hidden": "h\n",
        "src/main.py": "x\n",
    }.items():
        (_FOLDER / name).parent.mkdir(exist_ok=True)
        (_FOLDER / name).write_text(text)


def _files(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    pending = [str(folder)]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    found[entry.path] = b"folder"
                    pending.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    found[entry.path] = _LINE.sub(b"", Path(entry.path).read_bytes())
                else:
                    found[entry.path] = b"other"
    return found
