"""Programs in namespaces of their own, so that hostile commands can really run."""

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

_SCRIPT = Path(__file__).with_name("container.sh")
_REPOSITORY = Path(__file__).resolve().parents[2]
_NAMESPACES = ("--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts")


def contained(
    program: Sequence[str], *, given: str = "", binds: Sequence[Path] = (), seconds: float = 600
) -> subprocess.CompletedProcess[str]:
    """Run a program in the container, from the top of the repository."""
    with tempfile.TemporaryDirectory(prefix="container-") as root:
        return subprocess.run(
            _command(Path(root), program, binds),
            input=given,
            cwd=_REPOSITORY,
            env={"PATH": os.environ["PATH"], "HOME": "/home/dev", "LANG": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=seconds,
            errors="surrogateescape",
        )


@functools.cache
def why_not() -> str:
    """The reason why this machine cannot make a container; empty if it can."""
    if sys.platform != "linux" or not shutil.which("unshare"):
        return "needs Linux and the program unshare"
    try:
        done = contained(["python3", "-c", "print(6 * 7)"], seconds=60)
    except subprocess.TimeoutExpired:
        return "making namespaces takes too long here"
    return "" if done.stdout == "42\n" else f"namespaces cannot be made here: {done.stderr.strip()}"


def _command(root: Path, program: Sequence[str], binds: Sequence[Path]) -> list[str]:
    shown = dict.fromkeys(
        str(one)
        for one in (_REPOSITORY, Path(sys.prefix), Path(sys.base_prefix), *binds)
        if not one.is_relative_to("/usr")
    )
    return [
        "unshare",
        *_NAMESPACES,
        "--fork",
        "--kill-child",
        "sh",
        str(_SCRIPT),
        str(root),
        *shown,
        "--",
        *program,
    ]
