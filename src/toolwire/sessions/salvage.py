"""Salvages the good records of a damaged session and keeps the damaged file."""

import sqlite3
from contextlib import suppress
from itertools import count
from pathlib import Path

import msgspec

from toolwire.errors import SessionError
from toolwire.sessions.files import beside, remove_files, settle_folder, words_of, write_whole
from toolwire.sessions.read_file import Scan
from toolwire.sessions.store import Salvaged

SALVAGED = ".rescued"
"""A salvaged file that is complete but not yet renamed."""
_META = ("session", "project", "created", "forked_from")


def found_in(scan: Scan) -> Salvaged | None:
    """What can be salvaged of a file; None for an intact one."""
    if not scan.damage:
        return None
    last = scan.rows[-1] if scan.rows else None
    return Salvaged(
        records=len(scan.rows), lost_after=last.at if last else None, damage=scan.damage
    )


def salvage(path: Path, scan: Scan) -> Salvaged:
    """Replace the damaged file with one that has the good records."""
    found = found_in(scan) or Salvaged(records=0, lost_after=None, damage="")
    draft = path.with_suffix(".draft")
    meta = {key: value for key, value in scan.meta.items() if key in _META}
    meta["project"] = scan.project
    try:
        write_whole(draft, meta, scan.rows)
        draft.rename(path.with_suffix(SALVAGED))
        settle_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            remove_files(draft)
        raise SessionError(
            f'session "{path.stem}" is damaged ({found.damage}) and cannot be salvaged:  '
            f"{words_of(error)}; free some space or make {path.parent} writable"
        ) from error
    return msgspec.structs.replace(found, kept_as=finish_salvage(path))


def finish_salvage(path: Path) -> str:
    """Rename a salvaged file into place, also one that a killed process left; returns the name of
    the damaged one.
    """
    fresh = path.with_suffix(SALVAGED)
    if not fresh.exists():
        return ""
    try:
        kept = _free_name(path)
        # Remove the old log before the rename: SQLite would replay it into the new file.
        for ending in ("-wal", ""):
            if beside(path, ending).exists():
                beside(path, ending).rename(beside(kept, ending))
        beside(path, "-shm").unlink(missing_ok=True)
        fresh.rename(path)
        settle_folder(path.parent)
    except OSError as error:
        raise SessionError(f'cannot salvage session "{path.stem}": {words_of(error)}') from error
    return str(kept)


def _free_name(path: Path) -> Path:
    names = (path.with_suffix(f".damaged-{number}") for number in count(1))
    return next(name for name in names if not (name.exists() or beside(name, "-wal").exists()))
