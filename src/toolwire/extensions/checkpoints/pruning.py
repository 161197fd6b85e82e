"""Removes checkpoints that are too old, or too much."""

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from toolwire.errors import SessionError
from toolwire.extensions.checkpoints.folder import Checkpoint, CheckpointFolder, Ran
from toolwire.extensions.checkpoints.shadow import NAME
from toolwire.extensions.settings import CheckpointSettings
from toolwire.storage.paths import SESSION_FILES

_DAY = 86_400
_GRACE = "2.hours.ago"
"""Objects that another session may have just written are left."""
_STAMP = "checkpoints.pruned"


def prune(project: Path, settings: CheckpointSettings, now: float, *, always: bool = False) -> None:
    """Removes old checkpoints of a project's sessions, at most once a day."""
    stamp = project / _STAMP
    with suppress(OSError):
        if not always and now - stamp.stat().st_mtime < _DAY:
            return
    with suppress(OSError):
        stamp.touch()
    folders = sorted(project.glob(f"*{SESSION_FILES}"), key=_changed)
    for folder in list(folders):
        old = settings.keep_days and now - _changed(folder) > settings.keep_days * _DAY
        lost = not list(project.glob(f"{folder.stem}.sqlite*"))
        if old or (lost and now - _changed(folder) > _DAY):
            shutil.rmtree(folder, ignore_errors=True)
            folders.remove(folder)
    most = settings.max_mb * 1_000_000
    while most and len(folders) > 1 and _size(project / NAME) + sum(map(_size, folders)) > most:
        shutil.rmtree(folders.pop(0), ignore_errors=True)
        _drop_trees(project / NAME, folders)
    _drop_trees(project / NAME, folders)


def _drop_trees(git_dir: Path, folders: list[Path]) -> None:
    """Removes the names of trees that no session has, and what is only in them."""
    live: set[str] = set()
    now = time.time()
    used = {one.stem for one in folders if now - _changed(one) < 2 * _DAY}
    for folder in folders:
        with suppress(SessionError):
            for entry in CheckpointFolder(folder).entries():
                if isinstance(entry, Checkpoint) and entry.snapshot is not None:
                    live.add(entry.snapshot.tree)
                elif isinstance(entry, Ran):
                    live |= {entry.before.tree, entry.after.tree}
    gone = 0
    names = git_dir / "refs" / "toolwire"
    for name in names.rglob("*"):
        with suppress(OSError):
            if name.relative_to(names).parts[0] in used or not name.is_file():
                continue
            if name.read_text().strip() not in live:
                name.unlink()
                gone += 1
    if not gone:
        return
    with suppress(OSError, subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - no shell
            ["git", "prune", f"--expire={_GRACE}"],  # noqa: S607 - the user's own git
            env={"PATH": os.environ.get("PATH", os.defpath), "GIT_DIR": str(git_dir)},
            cwd=git_dir,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=600,
        )


def _changed(folder: Path) -> float:
    with suppress(OSError):
        return max(one.stat().st_mtime for one in (folder, *folder.iterdir()))
    return 0.0


def _size(folder: Path) -> int:
    found = 0
    for one in folder.rglob("*"):
        with suppress(OSError):
            found += one.lstat().st_size
    return found
