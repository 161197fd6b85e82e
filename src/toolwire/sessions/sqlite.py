"""Sessions in SQLite: one file each, written by one process at a time."""

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from toolwire.errors import SessionError
from toolwire.ids import new_id
from toolwire.messages import Message
from toolwire.sessions.files import (
    Row,
    beside,
    copy_folder,
    create,
    media_folder,
    remove_files,
    words_of,
)
from toolwire.sessions.read_file import meta_of, readable, records_in, scan
from toolwire.sessions.records import Redact, unredacted
from toolwire.sessions.salvage import SALVAGED, found_in
from toolwire.sessions.sqlite_journal import SqliteJournal
from toolwire.sessions.store import (
    Contents,
    Copied,
    Summary,
    find_id,
    forked_row,
    missing_rows,
)
from toolwire.sessions.summaries import contains, messages_in, summary_of
from toolwire.storage.locks import SessionLock, holding_process
from toolwire.storage.paths import SESSION_FILES

_FILE = ".sqlite"
_OWN_META = ("session", "project", "created", "schema")


def project_key(project: Path) -> str:
    """A folder's name in the store: readable, unique per real path."""
    real = project.resolve()
    slug = re.sub(r"[^a-z0-9]+", "-", real.name.lower()).strip("-")[:40] or "root"
    return f"{slug}-{hashlib.sha256(str(real).encode('utf-8', 'surrogateescape')).hexdigest()[:10]}"


class SqliteStore:
    """The sessions below one folder. Every method blocks; only journals are for event loops."""

    def __init__(
        self,
        root: Path,
        *,
        redact: Redact = unredacted,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[str], str] = new_id,
    ) -> None:
        self._root = root
        self._redact = redact
        self._clock = clock
        self._new_id = new_id

    def create(self, project: str) -> SqliteJournal:
        """A new session of this folder, open for writing."""
        folder = Path(project)
        path = self._root / project_key(folder) / f"{self._new_id('')}{_FILE}"
        create(path, self._meta(path, str(folder.resolve())))
        try:
            return self._open(path)
        except BaseException:
            remove_files(path)
            raise

    def open(self, name: str, *, take: bool = False) -> SqliteJournal:
        """Open a session for writing; refused while another process has it, salvaged if damaged.

        The lock of a file ends with its process: there is nothing to take over.
        """
        del take
        return self._open(self.path(name))

    def cancel(self, name: str) -> str:
        """Refused: only a server carries what one process asks of another."""
        raise SessionError(
            f'session "{self.find(name)}" is a file of this machine; end its turn where it runs'
        )

    def read(self, name: str, *, after: int = 0) -> Contents:
        """The contents of a session, without locking or changing it."""
        path = self.path(name)
        found = scan(_file(path), path.stem, after)
        kept, skipped = records_in(found.rows)
        return Contents(
            id=path.stem,
            project=found.project,
            records=tuple(kept),
            salvaged=found_in(found),
            skipped=skipped,
        )

    def rows(self, name: str, after: int = 0) -> tuple[Row, ...]:
        """The stored records after that number, also of a session in use."""
        path = self.path(name)
        return scan(_file(path), path.stem, after).rows

    def files(self) -> dict[str, Path]:
        """The file of each session."""
        return {path.stem: _file(path) for path in self._paths()}

    def held_by(self, name: str) -> int | None:
        """The process that has a session open; None if no process has it."""
        return holding_process(self.path(name).with_suffix(".lock"))

    def find(self, name: str) -> str:
        """The id of the session with this id or unique id prefix."""
        return self.path(name).stem

    def list(self, project: str | None = None, *, children: bool = False) -> list[Summary]:
        """The sessions of a folder, or all; most recent first, without empty ones.

        Those of subagents only if `children`.
        """
        key = project_key(Path(project)) if project is not None else "*"
        found = (summary_of(_file(path), path.stem) for path in self._paths(key))
        kept = [
            one for one in found if (one.records or one.damaged) and (children or not one.parent)
        ]
        return sorted(kept, key=lambda one: (one.updated, one.id), reverse=True)

    def search(self, words: str, project: str | None = None) -> set[str]:
        """The ids of sessions in whose messages the words occur, in any case."""
        key = project_key(Path(project)) if project is not None else "*"
        return {path.stem for path in self._paths(key) if contains(_file(path), path.stem, words)}

    def prompts(self, project: str, most: int) -> tuple[Message, ...]:
        """The user's messages in the sessions of a folder, the newest sessions first."""
        paths = self._paths(project_key(Path(project)))
        newest = sorted(map(_file, paths), key=_changed, reverse=True)
        said = (
            message
            for path in newest
            for message in reversed(list(messages_in(path, path.stem)))
            if message.role == "user" and not message.results
        )
        return tuple(islice(said, most))

    def latest(self, project: str) -> Summary | None:
        """The most recent session of this folder that is not empty."""
        return next((one for one in self.list(project) if one.turns), None)

    def fork(self, name: str, upto: int | None = None) -> str:
        """Copy a session, up to record `upto`, to a new id; also one in use."""
        path = self.path(name)
        found = scan(_file(path), path.stem)
        rows = tuple(row for row in found.rows if upto is None or row.seq <= upto)
        if not rows:
            raise SessionError(f'session "{path.stem}" has no record to fork from')
        project = found.project
        copy = path.with_name(f"{self._new_id('')}{_FILE}")
        meta = {**self._meta(copy, project), "forked_from": path.stem}
        create(copy, meta, (*rows, forked_row(copy.stem, path.stem, rows, self._clock())))
        copy_folder(path.with_suffix(SESSION_FILES), copy.with_suffix(SESSION_FILES))
        return copy.stem

    def delete(self, name: str) -> str:
        """Remove a session, its damaged copies and its subagents'; refused while it is in use."""
        path = self.path(name)
        self._delete(path)
        for one in map(self._summary_in, sorted(path.parent.glob(f"*{_FILE}"))):
            if one.parent == path.stem:
                with suppress(SessionError):
                    self._delete(path.with_name(f"{one.id}{_FILE}"))
        return path.stem

    @staticmethod
    def _summary_in(path: Path) -> Summary:
        return summary_of(path, path.stem)

    def _delete(self, path: Path) -> None:
        lock = SessionLock(path.with_suffix(".lock"), path.stem)
        try:
            for file in path.parent.glob(f"{path.stem}.*"):
                if file.suffix == SESSION_FILES:
                    shutil.rmtree(file)
                elif file.suffix != ".lock":
                    file.unlink(missing_ok=True)
            remove_files(path)
            media = media_folder(self._root, path.stem)
            if media.is_dir():
                shutil.rmtree(media)
        except OSError as error:
            raise SessionError(f'cannot delete session "{path.stem}": {words_of(error)}') from error
        finally:
            lock.release()

    def forget(self, before: float) -> tuple[str, ...]:
        """Delete the sessions unchanged since then, except those in use."""
        forgotten: tuple[str, ...] = ()
        found = self.list(children=True)
        ids = {one.id for one in found}
        for one in found:
            # Those of subagents are deleted with the session that ran them.
            if one.updated < before and not one.damaged and one.parent not in ids:
                with suppress(SessionError):
                    forgotten = (*forgotten, self.delete(one.id))
        return forgotten

    def export_rows(self, name: str) -> Copied:
        """Every row of a session that is not in use, byte for byte."""
        path = self.path(name)
        lock = SessionLock(path.with_suffix(".lock"), path.stem)
        try:
            found = scan(_file(path), path.stem)
            if found.damage:
                raise SessionError(
                    f'session "{path.stem}" is damaged ({found.damage}); open it once to save what '
                    "is good, then copy it"
                )
            with readable(_file(path), path.stem) as connection:
                meta = meta_of(connection)
        finally:
            lock.release()
        facts = {key: value for key, value in meta.items() if key not in _OWN_META}
        return Copied(id=path.stem, project=found.project, facts=facts, rows=found.rows)

    def import_rows(self, copied: Copied) -> int:
        """Adds the rows that this store does not have; returns their number."""
        if copied.id not in {path.stem for path in self._paths()}:
            path = self._root / project_key(Path(copied.project)) / f"{copied.id}{_FILE}"
            create(path, {**copied.facts, **self._meta(path, copied.project)}, copied.rows)
            return len(copied.rows)
        path = self.path(copied.id)
        journal = self._open(path)
        try:
            rows = missing_rows(copied, scan(path, path.stem).rows)
            journal.add(rows)
        finally:
            journal.close_now()
        return len(rows)

    def path(self, name: str) -> Path:
        """The file of a session."""
        paths = {path.stem: path for path in self._paths()}
        return paths[find_id(name, paths)]

    def _open(self, path: Path) -> SqliteJournal:
        return SqliteJournal(path, redact=self._redact, clock=self._clock)

    def _meta(self, path: Path, project: str) -> dict[str, str]:
        return {"session": path.stem, "project": project, "created": repr(self._clock())}

    def _paths(self, key: str = "*") -> Iterator[Path]:
        found = {*self._root.glob(f"{key}/*{_FILE}"), *self._root.glob(f"{key}/*{SALVAGED}")}
        yield from sorted({path.with_suffix(_FILE) for path in found})


def _changed(path: Path) -> float:
    """When a file was last written; 0 if it is gone."""
    times = [0.0]
    for file in (path, beside(path, "-wal")):
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times)


def _file(path: Path) -> Path:
    """File with the records; the salvaged copy if a salvage was interrupted."""
    salvaged = path.with_suffix(SALVAGED)
    return salvaged if salvaged.exists() and not path.exists() else path
