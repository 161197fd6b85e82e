"""Saving what is good of a damaged session; the damaged file is kept beside it."""

import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import msgspec

from toolwire.errors import SessionError
from toolwire.sessions.files import beside, remove_files, settle_folder, words_of, write_whole
from toolwire.sessions.read_file import Scan

RESCUED = ".rescued"
"""A rescued file that is whole but has not taken its place yet."""
_META = ("session", "project", "created", "forked_from")


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """What was saved of a damaged session."""

    records: int
    """How many records are good, counted from the first."""
    lost_after: float | None
    """When the last good one was written; None if there is none."""
    damage: str
    kept_as: str = ""
    """The damaged file; empty while it is still in its place."""

    @property
    def message(self) -> str:
        """For people."""
        if self.lost_after is None:
            saved = "nothing of it could be saved"
        else:
            when = datetime.fromtimestamp(self.lost_after, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            saved = f"{self.records} records up to {when} are good, anything later is lost"
        kept = f"; the damaged file is kept as {self.kept_as}" if self.kept_as else ""
        return f"the session's file was damaged ({self.damage}): {saved}{kept}"

    def __str__(self) -> str:
        return self.message


def found_in(scan: Scan) -> Salvaged | None:
    """What can be saved of a file; None for one in order."""
    if not scan.damage:
        return None
    last = scan.rows[-1] if scan.rows else None
    return Salvaged(
        records=len(scan.rows), lost_after=last.at if last else None, damage=scan.damage
    )


def rescue(path: Path, scan: Scan) -> Salvaged:
    """Put a file with the good records in the place of the damaged one."""
    found = found_in(scan) or Salvaged(records=0, lost_after=None, damage="")
    draft = path.with_suffix(".draft")
    meta = {key: value for key, value in scan.meta.items() if key in _META}
    meta["project"] = scan.project
    try:
        write_whole(draft, meta, scan.rows)
        draft.rename(path.with_suffix(RESCUED))
        settle_folder(path.parent)
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            remove_files(draft)
        raise SessionError(
            f'session "{path.stem}" is damaged ({found.damage}) and cannot be rescued: '
            f"{words_of(error)}; free some space or make {path.parent} writable"
        ) from error
    return msgspec.structs.replace(found, kept_as=finish_rescue(path))


def finish_rescue(path: Path) -> str:
    """Give a rescued file its place, also one that an ended process left; says where the damaged
    one went.
    """
    fresh = path.with_suffix(RESCUED)
    if not fresh.exists():
        return ""
    try:
        kept = _free_name(path)
        # The old log must be gone before the new file has the name: it would be read into it.
        for ending in ("-wal", ""):
            if beside(path, ending).exists():
                beside(path, ending).rename(beside(kept, ending))
        beside(path, "-shm").unlink(missing_ok=True)
        fresh.rename(path)
        settle_folder(path.parent)
    except OSError as error:
        raise SessionError(f'cannot rescue session "{path.stem}": {words_of(error)}') from error
    return str(kept)


def _free_name(path: Path) -> Path:
    names = (path.with_suffix(f".damaged-{number}") for number in count(1))
    return next(name for name in names if not (name.exists() or beside(name, "-wal").exists()))
