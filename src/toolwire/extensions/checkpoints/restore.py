"""Restores files: what changes, what the user changed meanwhile, and the changes themselves."""

import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from toolwire.errors import SessionError
from toolwire.extensions.checkpoints.blob_reader import BlobReader
from toolwire.extensions.checkpoints.folder import (
    Checkpoint,
    CheckpointFolder,
    Edited,
    Entry,
    Ran,
    Restored,
    RestoreStep,
    Restoring,
    Snapshot,
    checkpoints_in,
    interrupted,
)
from toolwire.extensions.checkpoints.shadow import ShadowRepository
from toolwire.extensions.checkpoints.states import FileState, same, state_of
from toolwire.platform import FILE, open_at, replace_at, unlink_at
from toolwire.tools.files.paths import parent
from toolwire.tools.spec import ToolFailed, Workspace

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE


class Conflict(msgspec.Struct, frozen=True):
    """A file that is left as it is."""

    path: str
    why: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore changes."""

    to: Checkpoint
    steps: tuple[RestoreStep, ...]
    conflicts: tuple[Conflict, ...]
    now: Snapshot | None = None
    """The folder as it is; None without snapshots."""


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a restore did."""

    n: int
    """The checkpoint of the state before it; 0 if nothing was changed."""
    restored: tuple[str, ...]
    trashed: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    trash: str = ""


def find(entries: Iterable[Entry], n: int) -> Checkpoint:
    """The checkpoint of that number."""
    found = {one.n: one for one in checkpoints_in(entries)}
    if not found:
        raise SessionError("the session has no checkpoints")
    if n not in found:
        known = f"there are {min(found)} to {max(found)}" if len(found) > 1 else "there is only 1"
        raise SessionError(f"no checkpoint {n}; {known}")
    return found[n]


def undoable(entries: list[Entry]) -> Checkpoint | None:
    """The checkpoint of the last turn that changed files and is not undone yet."""
    below: int | None = None
    found: Checkpoint | None = None
    for one in entries:
        if isinstance(one, Restored):
            below = one.to
        elif isinstance(one, Checkpoint) and one.kind != "restore":
            below = None
    for one in checkpoints_in(entries):
        if one.kind != "restore" and (below is None or one.n < below):
            found = one
    return found


class Restorer:
    """Restores the files of one session."""

    def __init__(
        self,
        session: str,
        folder: CheckpointFolder,
        git_dir: Path,
        *,
        environ: Mapping[str, str],
        clock: Callable[[], float],
    ) -> None:
        self._session = session
        self._folder = folder
        self._git_dir = git_dir
        self._environ = environ
        self._clock = clock
        self._entries = folder.entries()
        self._repositories: dict[str, ShadowRepository] = {}

    @property
    def entries(self) -> list[Entry]:
        """The log, as it was read."""
        return self._entries

    def plan(self, n: int, *, force: bool = False, only: frozenset[str] | None = None) -> Plan:
        """What a restore of this checkpoint would change, and what it would leave.

        `only` are the files that count; without it, all do.
        """
        to = find(self._entries, n)
        now = self._repository(to).snapshot() if to.snapshot is not None else None
        targets = self._targets(to, now)
        ours = self._ours(to)
        steps: list[RestoreStep] = []
        conflicts: list[Conflict] = []
        for path, (target, present) in sorted(targets.items()):
            if same(present, target) or (only is not None and path not in only):
                continue
            if not force and not any(same(present, each) for each in ours.get(path, ())):
                why = "changed since then" if path in ours else "not changed by this session"
                conflicts.append(Conflict(path, why))
            else:
                steps.append(RestoreStep(path=path, now=present, target=target))
        return Plan(to=to, steps=tuple(steps), conflicts=tuple(conflicts), now=now)

    def restore(self, n: int, *, force: bool = False, only: frozenset[str] | None = None) -> Done:
        """Change the files; what was interrupted before is completed by the same call."""
        self._clean()
        plan = self.plan(n, force=force, only=only)
        if not plan.steps and interrupted(self._entries) is None:
            if only is None:
                self._folders(plan)
            return Done(n=0, restored=(), trashed=(), conflicts=plan.conflicts)
        number = max(one.n for one in checkpoints_in(self._entries)) + 1
        before = msgspec.structs.replace(
            plan.to, n=number, at=self._clock(), kind="restore", snapshot=plan.now
        )
        self._folder.append(before)
        if plan.now is not None:
            self._repository(plan.to).name(self._session, plan.now, number)
        self._keep_present(plan)
        self._folder.append(Restoring(n=number, to=n, steps=plan.steps))
        late = self._changed(plan, number)
        if only is None:
            self._folders(plan)
        if hasattr(os, "sync"):
            os.sync()
        self._folder.append(Restored(n=number, to=n))
        return self._done(plan, number, late)

    def _done(self, plan: Plan, number: int, late: list[Conflict]) -> Done:
        left = {one.path for one in late}
        done = [step for step in plan.steps if step.path not in left]
        trashed = tuple(step.path for step in done if step.target is None)
        return Done(
            n=number,
            restored=tuple(step.path for step in done if step.target is not None),
            trashed=trashed,
            conflicts=(*plan.conflicts, *late),
            trash=str(self._folder.trash(number)) if trashed else "",
        )

    def _repository(self, checkpoint: Checkpoint) -> ShadowRepository:
        root = checkpoint.roots[0]
        if not Path(root).is_dir():
            raise SessionError(f"the folder of the checkpoint is missing: {root}")
        why = ShadowRepository.unavailable(Path(root), self._environ)
        if why.startswith("git"):
            raise SessionError(f"the checkpoint cannot be restored: {why}")
        if root not in self._repositories:
            self._repositories[root] = ShadowRepository(
                self._git_dir, Path(root), self._folder, environ=self._environ, limits="always"
            )
        return self._repositories[root]

    def _targets(
        self, to: Checkpoint, now: Snapshot | None
    ) -> dict[str, tuple[FileState | None, FileState | None]]:
        """Every path that may have to change, with the state to restore and the present one."""
        found: dict[str, tuple[FileState | None, FileState | None]] = {}
        known: dict[str, FileState | None] = {}
        tree = False
        if to.snapshot is not None and now is not None:
            repository = self._repository(to)
            found = repository.differences(to.snapshot, now)
            tree = True
        for entry in self._since(to):
            if isinstance(entry, Edited) and entry.path not in known:
                known[entry.path] = entry.before
            elif isinstance(entry, Restoring):
                for step in entry.steps:
                    known.setdefault(step.path, step.now)
        for path, before in known.items():
            if path in found or (tree and self._in_tree(to, path)):
                continue
            found[path] = (before, state_of(Path(path)))
        return found

    def _in_tree(self, to: Checkpoint, path: str) -> bool:
        """Whether the snapshots contain a path, so that no difference means none."""
        if to.snapshot is None:
            return False
        return self._repository(to).holds(Path(path), to.snapshot)

    def _ours(self, to: Checkpoint) -> dict[str, list[FileState | None]]:
        """The last state of each path that this session made; a restore has two."""
        found: dict[str, list[FileState | None]] = {}
        unfinished: Restoring | None = None
        for entry in self._since(to):
            match entry:
                case Edited():
                    found[entry.path] = [entry.after]
                case Ran():
                    repository = self._repository(to)
                    changes = repository.differences(entry.before, entry.after)
                    found |= {path: [after] for path, (_, after) in changes.items()}
                case Restoring():
                    unfinished = entry
                    found |= {one.path: [one.now, one.target] for one in entry.steps}
                case Restored() if unfinished is not None:
                    found |= {one.path: [one.target] for one in unfinished.steps}
                case _:
                    pass
        return found

    def _since(self, to: Checkpoint) -> Iterator[Entry]:
        begun = False
        for entry in self._entries:
            begun = begun or entry == to
            if begun:
                yield entry

    def _keep_present(self, plan: Plan) -> None:
        """Store what no snapshot holds: it is part of the checkpoint before the restore."""
        for step in plan.steps:
            if step.now is not None and not self._has(step, plan):
                if step.now.kind == "link":
                    self._folder.keep(os.fsencode(Path(step.path).readlink()))
                else:
                    self._folder.keep_file(os.open(step.path, os.O_RDONLY | FILE))

    def _has(self, step: RestoreStep, plan: Plan) -> bool:
        if plan.now is not None and self._repository(plan.to).contains(step.path):
            return True
        return step.now is not None and self._folder.blob(step.now.digest).exists()

    def _clean(self) -> None:
        """Remove drafts of a restore that was killed."""
        before = interrupted(self._entries)
        for number, step in enumerate(before.steps if before else ()):
            draft = Path(step.path).with_name(_draft(before.n if before else 0, number))
            with suppress(OSError):
                draft.unlink()

    def _changed(self, plan: Plan, number: int) -> list[Conflict]:
        """Make the changes: first what goes, then what comes. Returns those not made."""
        workspace = _workspace(plan.to)
        late: list[Conflict] = []
        with ExitStack() as stack:
            reader = None
            if plan.to.snapshot is not None:
                reader = stack.enter_context(self._repository(plan.to).reader())
            order = sorted(enumerate(plan.steps), key=lambda each: each[1].target is not None)
            for at, step in order:
                try:
                    if not same(state_of(Path(step.path)), step.now):
                        late.append(Conflict(step.path, "changed during the restore"))
                    elif step.target is None:
                        self._trash(step.path, plan, number)
                    else:
                        self._put(step, workspace, reader, _draft(number, at))
                except (OSError, ToolFailed) as error:
                    late.append(Conflict(step.path, f"cannot be restored: {error}"))
        return late

    def _trash(self, path: str, plan: Plan, number: int) -> None:
        """Move a file that was made since to the trash, and remove folders that this empties."""
        source = Path(path)
        if source.parent.resolve() != source.parent:
            raise OSError("a link leads to it")
        root = Path(plan.to.roots[0])
        inside = source.relative_to(root) if source.is_relative_to(root) else source.relative_to(
            source.anchor
        )  # fmt: skip
        target = self._folder.trash(number) / inside
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copy2(source, target, follow_symlinks=False)
            source.unlink()
        _drop_folders(source.parent, root, self._folders_of(plan))

    def _folders_of(self, plan: Plan) -> frozenset[str]:
        """Folders without files that the checkpoint has."""
        if plan.to.snapshot is None:
            return frozenset()
        repository = self._repository(plan.to)
        return frozenset(str(repository.top / n) for n in repository.table(plan.to.snapshot).empty)

    def _put(
        self, step: RestoreStep, workspace: Workspace, reader: BlobReader | None, draft: str
    ) -> None:
        """Write one file beside its name and rename it: it is old or new, never a part."""
        target, path = step.target, Path(step.path)
        if target is None:
            return
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        with parent(path, workspace, create=True) as (folder, name):
            if target.kind == "link":
                os.symlink(self._content(target.digest, reader), draft, dir_fd=folder)
            else:
                self._write(target, draft, folder, reader)
            replace_at(draft, name, src_dir_fd=folder, dst_dir_fd=folder)

    def _write(self, target: FileState, draft: str, folder: int, reader: BlobReader | None) -> None:
        handle = open_at(draft, _NEW, 0o600, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                blob = self._folder.blob(target.digest)
                if blob.exists():
                    with blob.open("rb") as source:
                        shutil.copyfileobj(source, file, 1 << 20)
                elif reader is not None:
                    reader.copy(target.digest, file)
                else:
                    raise SessionError(f"contents {target.digest[:12]} are missing")
                file.flush()
                if target.mode >= 0 and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), target.mode)
        except BaseException:
            with suppress(OSError):
                unlink_at(draft, dir_fd=folder)
            raise

    def _content(self, digest: str, reader: BlobReader | None) -> bytes:
        import io  # noqa: PLC0415 - links are rare

        blob = self._folder.blob(digest)
        if blob.exists():
            return blob.read_bytes()
        found = io.BytesIO()
        if reader is None:
            raise SessionError(f"contents {digest[:12]} are missing")
        reader.copy(digest, found)
        return found.getvalue()

    def _folders(self, plan: Plan) -> None:
        """Make and remove folders without files, and give folders their permissions back."""
        if plan.to.snapshot is None or plan.now is None:
            return
        repository = self._repository(plan.to)
        table = repository.table(plan.to.snapshot)
        made, changed = self._folders_changed(plan.to)
        for name in sorted(made - {*table.empty}, reverse=True):
            kept = self._folders_of(plan)
            _drop_folders(repository.top / name, Path(plan.to.roots[0]), kept)
        for name in table.empty:
            with suppress(OSError):
                (repository.top / name).mkdir(parents=True, exist_ok=True)
        for step in plan.steps:
            above = Path(step.path).parents
            changed |= {
                str(one.relative_to(repository.top))
                for one in above
                if one.is_relative_to(repository.top) and one != repository.top
            }
        for name in {*changed, *table.empty}:
            _set_mode(repository.top / name, table.folders.get(name, table.usual.get("folder")))

    def _folders_changed(self, to: Checkpoint) -> tuple[set[str], set[str]]:
        """The empty folders that commands made, and the folders whose permissions they changed."""
        made: set[str] = set()
        changed: set[str] = set()
        for entry in self._since(to):
            if isinstance(entry, Ran) and entry.before.table != entry.after.table:
                repository = self._repository(to)
                one, other = repository.table(entry.before), repository.table(entry.after)
                made |= {*other.empty} - {*one.empty}
                names = {*one.folders, *other.folders}
                changed |= {n for n in names if one.folders.get(n) != other.folders.get(n)}
            elif isinstance(entry, Restoring):
                made |= self._empty_at(entry.to) - self._empty_at(entry.n)
                top = self._repository(to).top
                gone = (Path(one.path) for one in entry.steps if one.target is None)
                made |= {
                    str(above.relative_to(top))
                    for path in gone
                    for above in path.parents
                    if above.is_relative_to(top)
                }
        return made, changed

    def _empty_at(self, n: int) -> set[str]:
        found = find(self._entries, n)
        if found.snapshot is None:
            return set()
        return {*self._repository(found).table(found.snapshot).empty}


def _drop_folders(folder: Path, root: Path, kept: frozenset[str]) -> None:
    """Removes a folder and those above it, as far as they are empty."""
    for one in (folder, *folder.parents):
        if one == root or str(one) in kept or not one.is_relative_to(root):
            return
        try:
            one.rmdir()
        except OSError:
            return


def _set_mode(folder: Path, mode: int | None) -> None:
    with suppress(OSError):
        about = folder.lstat().st_mode
        if mode is not None and stat.S_ISDIR(about) and stat.S_IMODE(about) != mode:
            folder.chmod(mode)


def _draft(n: int, number: int) -> str:
    return f".toolwire-restore-{n}-{number}.tmp"


def _workspace(checkpoint: Checkpoint) -> Workspace:
    roots = tuple(map(Path, checkpoint.roots))
    return Workspace(roots=roots, temp=roots[0], home=roots[0])
