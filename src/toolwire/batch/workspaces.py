"""Workspaces of attempts: copies of folders, commits, files; made, found again, removed."""

import asyncio
import hashlib
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from toolwire.batch.containers import copied_out, image_of, name_of, opened, removed, started
from toolwire.batch.patches import Baseline, GitFailed, Patch, baseline, git
from toolwire.batch.tasks import Task, TaskWorkspace
from toolwire.batch.workspace_files import (
    clone,
    has_only,
    make_folder,
    remove_empty,
    remove_tree,
    write_files,
)
from toolwire.errors import ToolwireError
from toolwire.storage.private_files import locked
from toolwire.tools.shell.docker import DockerFailed, quiet, restart

SandboxKind: TypeAlias = Literal["", "worktree", "copy", "bwrap", "docker", "none"]
WORK = "work"
OBJECTS = "objects"
MIRRORS = "mirrors"
STARTS = "starts"
_DISCARDED = "discarded"
_CONTAINER = "container"


class WorkspaceFailed(ToolwireError):
    """A workspace that could not be made; `type` is a word for the report."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.kind = self.type = type


class Workplace(msgspec.Struct, frozen=True, kw_only=True):
    """The workspace of an attempt, as far as it has come.

    It is stored beside the workspace, except before the check of a plain task: the folder of such a
    task exists only once it is complete.
    """

    stage: Literal["ready", "patched"] = "ready"
    folder: str
    """Where the agent works."""
    root: str
    """The whole workspace; the folder may be a part of it."""
    objects: str = ""
    """Objects of the repository that it was checked out from."""
    tree: str = ""
    """The start, in its repository below `STARTS`; empty if it is the files of the task."""
    container: str = ""


class Workspaces:
    """The workspaces of a batch on this machine."""

    def __init__(self, out: Path, batch: str, kind: SandboxKind = "", image: str = "") -> None:
        self.out = out
        self._batch = batch
        self._kind: SandboxKind = kind
        self._image = image
        """For tasks without one."""
        self._places: dict[int, Path] = {}

    def token(self, n: int) -> str:
        """The name of an attempt's workspace: the same after a restart, and not to be guessed."""
        return hashlib.sha256(f"{self._batch} {n}".encode()).hexdigest()[:16]

    def place(self, n: int) -> Path:
        """The folder of an attempt's workspace."""
        found = self._places.get(n)
        if found is None:
            found = self._places[n] = self.out / WORK / self.token(n)
        return found

    def _start_of(self, n: int) -> Path:
        return self.out / STARTS / f"{self.token(n)}.git"

    def found(self, n: int, task: Task) -> Workplace | None:
        """The workspace of an earlier try; None if there is none, or it is not complete."""
        return None if self.is_discarded(n) else self.left_behind(n, task)

    def left_behind(self, n: int, task: Task) -> Workplace | None:
        """The same, also if a try gave it up."""
        try:
            body = (self.place(n) / "stage.json").read_bytes()
            place = msgspec.json.decode(body, type=Workplace)
        except FileNotFoundError:
            if not self._is_plain(task):
                return None
            place = _workplace(self.place(n) / WORK, task.workspace)
        except (OSError, msgspec.MsgspecError):
            return None
        return place if Path(place.folder).is_dir() else None

    def _is_plain(self, task: Task) -> bool:
        """Whether it begins with the files of the task, and nothing else."""
        contained = self._kind == "none" or self._image
        return task.workspace.kind in ("files", "") and not task.setup and not contained

    def is_discarded(self, n: int) -> bool:
        """Whether an earlier try gave the workspace up, with its session."""
        return (self.place(n) / _DISCARDED).exists()

    def discard(self, n: int) -> None:
        """Gives a workspace up: the next try begins anew."""
        place = self.place(n)
        place.mkdir(parents=True, exist_ok=True)
        (place / _DISCARDED).touch()

    def note(self, n: int, place: Workplace) -> None:
        """Stores how far a workspace has come."""
        path = self.place(n) / "stage.json"
        if place.stage == "ready":
            # Before its session begins: half a note is none, and it is made anew.
            path.write_bytes(msgspec.json.encode(place))
            return
        draft = path.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(place))
        draft.replace(path)

    async def make(self, n: int, spec: TaskWorkspace) -> Workplace:
        """A new workspace; `note` it once it is prepared."""
        place = self.place(n)
        if self._kind == "none":
            place.mkdir(parents=True, exist_ok=True)
            return self._as_it_is(place, spec)
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            await self.remove(n)
            place.mkdir(parents=True)
        try:
            return await self._contained(n, await self._made(place, spec), spec)
        except DockerFailed as error:
            raise WorkspaceFailed("docker", str(error)) from error
        except OSError as error:
            words = f"cannot make the workspace: {error.strerror or error}"
            raise WorkspaceFailed("disk", words) from error
        except GitFailed as error:
            raise WorkspaceFailed("git", str(error)) from error

    def _as_it_is(self, place: Path, spec: TaskWorkspace) -> Workplace:
        if spec.kind not in ("folder", ""):
            raise WorkspaceFailed("kind", f"--sandbox none needs a folder, not {spec.kind}")
        folder = spec.folder or str(place / WORK)
        Path(folder).mkdir(parents=True, exist_ok=True)
        return Workplace(folder=folder, root=folder)

    async def _contained(self, n: int, made: Workplace, spec: TaskWorkspace) -> Workplace:
        """The workspace with its container, if it has one."""
        image = await image_of(spec, self._image)
        if not image:
            return made
        root = Path(made.root)
        inside = ""
        if spec.kind == "image":
            inside = await copied_out(image, spec.folder, root)
        token = self.token(n)
        (self.place(n) / _CONTAINER).touch()
        name = await started(
            image, spec, root, inside, token=token, batch=self._batch, objects=made.objects
        )
        return msgspec.structs.replace(made, container=name)

    async def _made(self, place: Path, spec: TaskWorkspace) -> Workplace:
        objects = ""
        if spec.kind == "git":
            root = place / _name_of(spec.git)
            objects = str(await self._checked_out(spec, root))
        elif spec.kind == "folder":
            root = place / (Path(spec.folder).name or WORK)
            await asyncio.to_thread(self._copied, Path(spec.folder), root)
        else:
            root = place / WORK
            make_folder(root, spec.files)
        if spec.subfolder and not (root / spec.subfolder).is_dir():
            raise WorkspaceFailed("subfolder", f"the repository has no folder {spec.subfolder}")
        return _workplace(root, spec, objects)

    async def revive(self, place: Workplace) -> None:
        """Starts the container of an earlier try again; DockerFailed if it is gone."""
        if place.container:
            await restart(place.container)

    async def quiet(self, place: Workplace) -> None:
        """Ends what commands left in the container; DockerFailed if it no longer runs."""
        if place.container:
            await quiet(place.container)
            await opened(place.container, Path(place.root))

    async def begin(self, n: int, place: Workplace, task: Task) -> Workplace:
        """Stores the start of a workspace, after its setup, and that it is ready."""
        if self._is_plain(task):
            return place
        if self._kind != "none":
            start = await self._start(n, Path(place.root), place.objects)
            place = msgspec.structs.replace(place, tree=start.tree)
        self.note(n, place)
        return place

    async def patch(self, n: int, place: Workplace, spec: TaskWorkspace) -> Patch | None:
        """What changed since the start; None if that is not recorded."""
        if self._kind == "none":
            return None
        root = Path(place.root)
        try:
            if place.tree:
                return await Baseline(self._start_of(n), place.tree).patch(root)
            if has_only(root, spec.files):
                return Patch(body=b"")
            first = self.place(n) / "start"
            remove_tree(first)
            first.mkdir()
            write_files(first, spec.files)
            return await (await self._start(n, first)).patch(root)
        except GitFailed as error:
            raise WorkspaceFailed("git", str(error)) from error

    async def _start(self, n: int, root: Path, objects: str = "") -> Baseline:
        known = Path(objects) if objects else None
        return await baseline(self._start_of(n), root, known)

    def _copied(self, source: Path, target: Path) -> None:
        if not source.is_dir():
            raise WorkspaceFailed("folder", f"no folder {source}")
        out = self.out.resolve()
        inside = out.is_relative_to(source.resolve())
        if not inside and clone(source, target):
            return

        def skipped(folder: str, names: list[str]) -> list[str]:
            real = Path(folder).resolve()
            return [name for name in names if real / name == out]

        shutil.copytree(source, target, symlinks=True, ignore=skipped)

    async def _checked_out(self, spec: TaskWorkspace, root: Path) -> Path:
        """Checks a commit out, with the objects of the mirror and none of its references."""
        mirror = await self._mirror(spec.git)
        commit = await self._resolved(mirror, spec.commit or "HEAD", spec.git)
        objects = (mirror / "objects").resolve()
        await git("init", "-q", str(root))
        alternates = root / ".git" / "objects" / "info" / "alternates"
        alternates.parent.mkdir(exist_ok=True)
        alternates.write_text(f"{objects}\n")
        await git("-C", str(root), "checkout", "-q", "--detach", commit)
        return objects

    async def _mirror(self, address: str) -> Path:
        """The bare mirror of a repository, cloned once; others wait for it."""
        name = hashlib.sha256(address.encode()).hexdigest()[:16]
        mirror = self.out / MIRRORS / name
        if mirror.exists():
            return mirror
        async with locked(mirror, patience=None):
            if mirror.exists():
                return mirror
            draft = mirror.with_suffix(".draft")
            shutil.rmtree(draft, ignore_errors=True)
            await git("clone", "-q", "--mirror", "--", address, str(draft), users=True)
            await git("--git-dir", str(draft), "config", "gc.auto", "0")
            # Only objects are visible to the agent: references show what came after its commit.
            objects = self.out / OBJECTS / name
            shutil.rmtree(objects, ignore_errors=True)
            objects.parent.mkdir(exist_ok=True)
            (draft / "objects").rename(objects)
            (draft / "objects").symlink_to(objects.resolve())
            draft.rename(mirror)
        return mirror

    async def _resolved(self, mirror: Path, name: str, address: str) -> str:
        async def resolved() -> str:
            asked = ("rev-parse", "-q", "--verify", f"{name}^{{commit}}")
            return (await git("--git-dir", str(mirror), *asked)).decode().strip()

        try:
            return await resolved()
        except GitFailed:
            async with locked(mirror, patience=None):
                fetch = ("--git-dir", str(mirror), "fetch", "-q", "--", address)
                with suppress(GitFailed):
                    await git(*fetch, "+refs/*:refs/*", users=True)
                with suppress(GitFailed):
                    await git(*fetch, name, users=True)
        try:
            return await resolved()
        except GitFailed as error:
            raise WorkspaceFailed("commit", f"{address} has no commit {name}") from error

    async def remove(self, n: int) -> None:
        """Removes a workspace, its container, and everything beside it."""
        place, start = self.place(n), self._start_of(n)
        if (place / _CONTAINER).exists():
            with suppress(DockerFailed):
                await opened(name_of(place.name), place)
            await removed(name_of(place.name))
        if start.exists() or not remove_empty(place / WORK, place):
            await asyncio.to_thread(lambda: (remove_tree(start), remove_tree(place)))
        self._places.pop(n, None)


def _workplace(root: Path, spec: TaskWorkspace, objects: str = "") -> Workplace:
    folder = root / spec.subfolder if spec.subfolder else root
    return Workplace(folder=str(folder), root=str(root), objects=objects)


def _name_of(address: str) -> str:
    name = address.rstrip("/").rpartition("/")[2].rpartition(":")[2].removesuffix(".git")
    return name if name not in ("", ".", "..", "start") else "repository"
