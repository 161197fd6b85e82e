"""An image of this machine's own programs, for tests before a real daemon of docker."""

import io
import os
import re
import shutil
import subprocess
import tarfile
from functools import cache
from pathlib import Path

from toolwire.batch.containers import LABEL
from toolwire.batch.spec import read_spec

IMAGE = "toolwire-tests:1"
_PROGRAMS = (
    *("bash", "sh", "sleep", "cat", "ls", "id", "mkdir", "rm", "mv", "cp", "ln", "chmod", "chown"),
    *("touch", "test", "true", "grep", "sed", "head", "tail", "wc", "env", "printf", "setsid"),
)


def docker(*words: str, check: bool = True, given: bytes | None = None) -> str:
    """Runs docker; returns what it printed."""
    done = subprocess.run(["docker", *words], input=given, capture_output=True, timeout=120)
    assert not check or done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@cache
def missing() -> str:
    """Why no container can be started here; empty if one can."""
    if shutil.which("docker") is None:
        return "docker is not installed here"
    try:
        done = subprocess.run(
            ["docker", "info", "-f", "{{.ServerVersion}}"], capture_output=True, timeout=5
        )
        if done.returncode:
            return "no daemon of docker answers here"
        docker("import", "-", IMAGE, given=_tar())
        ran = docker("run", "--rm", "--init", "--network", "none", IMAGE, "bash", "-c", "echo hi")
    except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
        return f"no container can be started here: {error}"
    return "" if ran == "hi" else f"a container printed {ran!r}"


def containers(out: Path) -> list[str]:
    """The containers of the batch in a folder, running or not."""
    label = f"label={LABEL}={read_spec(out).id}"
    return docker("ps", "-a", "--format", "{{.Names}}", "--filter", label).splitlines()


def _tar() -> bytes:
    """The programs with their libraries, at their own paths."""
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w") as tar:
        folders = ("tmp", "root", "etc", "proc", "dev", "sys")
        for name in folders:
            tar.addfile(_folder(name))
        users = "root:x:0:0::/root:/bin/bash\napp:x:1234:1234::/:/bin/sh\n"
        tar.addfile(*_text("etc/passwd", users))
        tar.addfile(*_text("etc/group", "root:x:0:\napp:x:1234:\n"))
        known: set[str] = set()
        for name in _PROGRAMS:
            program = shutil.which(name)
            assert program is not None, name
            for path in (program, *_libraries(program)):
                if path not in known:
                    known.add(path)
                    tar.addfile(*_program(path))
            if f"/bin/{name}" not in known:
                known.add(f"/bin/{name}")
                tar.addfile(*_program(program, f"bin/{name}"))
    return body.getvalue()


def _folder(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    return info


def _text(name: str, text: str) -> tuple[tarfile.TarInfo, io.BytesIO]:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(text), 0o644
    return info, io.BytesIO(text.encode())


def _program(path: str, name: str = "") -> tuple[tarfile.TarInfo, io.BytesIO]:
    body = Path(path).read_bytes()
    info = tarfile.TarInfo(name or path.lstrip("/"))
    info.size, info.mode = len(body), 0o755
    return info, io.BytesIO(body)


def _libraries(program: str) -> list[str]:
    printed = subprocess.run(["ldd", os.path.realpath(program)], capture_output=True, text=True)
    return re.findall(r"(/\S+) \(0x", printed.stdout)
