"""Old batches: noted when they are made, removed with their rows and sessions when unused."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from toolwire.batch import attempt_lock
from toolwire.batch.formats import PREDICTIONS
from toolwire.batch.local import HOSTS
from toolwire.batch.reaper import remove_containers
from toolwire.batch.spec import FILE, RESULTS, TASKS, read_spec
from toolwire.batch.sqlite import LOCK
from toolwire.batch.stores import open_batch, store_url
from toolwire.batch.workspace_files import remove_tree
from toolwire.batch.workspaces import MIRRORS, OBJECTS, STARTS, WORK
from toolwire.errors import BadInput, ToolwireError
from toolwire.storage.paths import state_paths

_DAY = 86_400
_NOTES = "batches"
_CHANGED = (FILE, RESULTS, "batch.sqlite", "batch.sqlite-wal")
_FOLDERS = (TASKS, WORK, STARTS, MIRRORS, OBJECTS, HOSTS)
_FILES = (
    *(RESULTS, "report.json", "report.md", PREDICTIONS, "hosts.log", LOCK, attempt_lock.FILE),
    *(f"{name}.sqlite{end}" for name in ("batch", "limits") for end in ("", "-wal", "-shm")),
)


def note_batch(environ: Mapping[str, str], id: str, out: Path) -> None:
    """Notes where a batch is, for the day when it is old."""
    folder = _notes(environ)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / id).write_text(str(out), encoding="utf-8")


def old_batches(environ: Mapping[str, str], days: int, now: float) -> Iterator[Path]:
    """The folders of batches that nothing has changed for so many days."""
    folder = _notes(environ)
    for note in sorted(folder.iterdir()) if folder.is_dir() else ():
        out = Path(note.read_text(encoding="utf-8"))
        try:
            known = read_spec(out).id == note.name
        except BadInput:
            known = False
        if not known:
            # Removed or moved by the user: it is no longer ours to remove.
            note.unlink(missing_ok=True)
        elif _changed(out) < now - days * _DAY:
            yield out


def forget_batches(environ: Mapping[str, str], days: int, now: float) -> Iterator[Path]:
    """Removes old batches, except those that run or whose server cannot be reached."""
    for out in tuple(old_batches(environ, days, now)):
        with suppress(ToolwireError):
            _remove(out)
            yield out


def _remove(out: Path) -> None:
    """Removes what a batch made; other files in its folder stay."""
    spec = read_spec(out)
    url = store_url() if spec.shared else ""
    # Without a batch there, an earlier removal was broken off after its rows.
    with suppress(BadInput):
        store = open_batch(out, url)
        try:
            if store.is_taken():
                raise ToolwireError(f"{out} is being run")
            store.delete()
        finally:
            store.close()
    remove_containers(spec.id)
    for name in _FOLDERS:
        remove_tree(out / name)
    for name in _FILES:
        (out / name).unlink(missing_ok=True)
    # Last: without it the folder is none of a batch, and the rest would stay.
    (out / FILE).unlink(missing_ok=True)
    with suppress(OSError):
        out.rmdir()


def _notes(environ: Mapping[str, str]) -> Path:
    return state_paths(environ).state / _NOTES


def _changed(out: Path) -> float:
    found = (out / name for name in _CHANGED)
    return max((path.stat().st_mtime for path in found if path.exists()), default=0.0)
