"""Snapshots of a folder in a git repository of our own, apart from the user's."""

import os
import shutil
import subprocess
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from toolwire.errors import SessionError
from toolwire.extensions.checkpoints.blob_reader import BlobReader
from toolwire.extensions.checkpoints.folder import CheckpointFolder, Snapshot
from toolwire.extensions.checkpoints.states import FileState
from toolwire.extensions.checkpoints.tree_table import Table, packed, state_of, table_of, unpacked

NAME = "tree.git"
"""The shadow repository, beside the sessions of its project."""
MOST_FILES = 100_000
MOST_BYTES = 2_000_000_000
_CONFIG = """\
[core]
\trepositoryformatversion = 1
\tbare = false
\tcompression = 1
\tautocrlf = false
\tsafecrlf = false
\tquotePath = false
\thooksPath = /dev/null
\tfsmonitor = false
\tuntrackedCache = false
\tattributesFile = /dev/null
\tprecomposeUnicode = false
[extensions]
\tobjectFormat = sha256
[gc]
\tauto = 0
[advice]
\taddEmbeddedRepo = false
"""
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding\n"
"""Files are stored as they are, whatever the project's attributes say."""


class TooLarge(SessionError):
    """The folder is not snapshotted: the message has the reason."""

    kind = "too_large"


class ShadowRepository:
    """The snapshots of one folder, with an index of this session's own."""

    def __init__(
        self,
        git_dir: Path,
        root: Path,
        folder: CheckpointFolder,
        *,
        environ: Mapping[str, str],
        limits: Literal["auto", "always"] = "auto",
    ) -> None:
        self.git_dir = git_dir
        self.top = _top_of(root)
        self._prefix = root.relative_to(self.top).as_posix()
        self._root = root
        self._folder = folder
        self._index = folder.path / "index"
        self._limited = limits == "auto"
        self._user = dict(environ)
        self._environ = {
            **{name: value for name, value in environ.items() if not name.startswith("GIT_")},
            "GIT_DIR": str(git_dir),
            "GIT_WORK_TREE": str(self.top),
            "GIT_INDEX_FILE": str(self._index),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_OPTIONAL_LOCKS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
        }
        self._last: Snapshot | None = None
        self._paths: dict[str, str] = {}
        """The files of the last snapshot with git's modes."""
        self._running: subprocess.Popen[bytes] | None = None
        self._stopped = False

    @staticmethod
    def unavailable(root: Path, environ: Mapping[str, str]) -> str:
        """Why no snapshot of this folder can be made; empty if it can."""
        home = Path(environ.get("HOME") or Path.home()).resolve()
        if shutil.which("git", path=environ.get("PATH")) is None:
            return "git is not installed"
        if home.is_relative_to(root):
            return f"{root} contains the home folder"
        return ""

    def stop(self) -> None:
        """End a snapshot that is being made in another thread."""
        self._stopped = True
        if self._running is not None:
            with suppress(OSError):
                self._running.kill()

    def snapshot(self) -> Snapshot:
        """The folder as it is now; TooLarge if it has too much."""
        try:
            return self._made()
        except TooLarge:
            raise
        except SessionError:
            if self._stopped or not self._index.exists():
                raise
            # An index that is damaged, or older than what it names.
            self._last = None
            self._index.unlink(missing_ok=True)
            (self.git_dir / "index").unlink(missing_ok=True)
            return self._made()

    def _made(self) -> Snapshot:
        self._prepare()
        changed, empty = self._changed()
        if self._last is None or changed:
            self._check(changed)
            # A repository in the folder is an error of git's, and is left out.
            self._git("add", "--all", "--ignore-errors", "--", self._prefix, accept=(0, 1))
            if any(name.endswith("/") for name in changed):
                # A new folder hides the empty ones in it.
                empty = self._changed()[1]
            tree = self._git("write-tree").decode().strip()
            self._paths = self._listed()
            if self._last is None:
                self._share_index()
        else:
            tree = self._last.tree
        table = self._folder.keep(packed(table_of(self._paths, empty, str(self.top))))
        self._last = Snapshot(tree, table)
        return self._last

    def name(self, session: str, snapshot: Snapshot, n: int = 0) -> None:
        """Give a snapshot a name, that of a checkpoint or its own, so that it is not pruned."""
        below = self.git_dir / "refs" / "toolwire" / session
        file = below / str(n) if n else below / "seen" / snapshot.tree
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{snapshot.tree}\n")

    def table(self, snapshot: Snapshot) -> Table:
        """The permissions and empty folders of a snapshot."""
        try:
            text = self._folder.blob(snapshot.table).read_bytes()
        except OSError as error:
            raise SessionError(f"part of the checkpoint is missing: {error}") from error
        return unpacked(text)

    def differences(
        self, one: Snapshot, other: Snapshot
    ) -> dict[str, tuple[FileState | None, FileState | None]]:
        """The files that differ, by absolute path, with both states."""
        if one == other:
            return {}
        tables = (self.table(one), self.table(other))
        found: dict[str, tuple[FileState | None, FileState | None]] = {}
        if one.tree != other.tree:
            words = ("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev")
            fields = self._git(*words, one.tree, other.tree).split(b"\0")
            for about, path in zip(fields[::2], fields[1::2], strict=False):
                before, after, old, new, _ = about.decode().lstrip(":").split()
                name = os.fsdecode(path)
                states = (
                    state_of(before, old, name, tables[0]),
                    state_of(after, new, name, tables[1]),
                )
                found[name] = states
        if one.table != other.table:
            for name, states in self._other_modes(one, other, tables).items():
                found.setdefault(name, states)
        top = self.top
        return {str(top / name): states for name, states in found.items()}

    def _other_modes(
        self, one: Snapshot, other: Snapshot, tables: tuple[Table, Table]
    ) -> dict[str, tuple[FileState | None, FileState | None]]:
        """The files whose permissions differ and whose contents do not."""
        first, second = tables
        names = {*first.files, *second.files}
        whole = first.usual != second.usual
        listed = self._states(one, first), self._states(other, second)
        names = {*listed[0], *listed[1]} if whole else names
        pairs = {name: (listed[0].get(name), listed[1].get(name)) for name in names}
        return {
            name: (a, b) for name, (a, b) in pairs.items() if a and b and a.digest == b.digest
            and a != b
        }  # fmt: skip

    def _states(self, snapshot: Snapshot, table: Table) -> dict[str, FileState]:
        found: dict[str, FileState] = {}
        for line in self._git("ls-tree", "-r", "-z", "--full-tree", snapshot.tree).split(b"\0"):
            about, tab, path = line.partition(b"\t")
            if tab:
                mode, _, digest = about.decode().split()
                state = state_of(mode, digest, name := os.fsdecode(path), table)
                if state is not None:
                    found[name] = state
        return found

    def holds(self, path: Path, snapshot: Snapshot) -> bool:
        """Whether a file is one that snapshots contain: in the folder, and not ignored."""
        if not path.is_relative_to(self._root):
            return False
        name = path.relative_to(self.top).as_posix()
        if name in self._paths:
            return True
        if self._git("ls-tree", "-z", "--full-tree", snapshot.tree, "--", name):
            return True
        between = (one for one in path.parents if one != self.top)
        if any((one / ".git").exists() for one in between if one.is_relative_to(self.top)):
            return False
        return self._code("check-ignore", "-q", "--no-index", "--", name) != 0

    def contains(self, path: str) -> bool:
        """Whether the last snapshot has this file."""
        return path.removeprefix(f"{self.top}/") in self._paths

    @contextmanager
    def reader(self) -> Generator[BlobReader]:
        """A process of git that returns contents."""
        process = subprocess.Popen(
            ["git", "cat-file", "--batch"],  # noqa: S607 - the user's own git
            env=self._environ,
            cwd=self.top,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield BlobReader(process)
        finally:
            process.kill()
            process.communicate()

    def _prepare(self) -> None:
        """Create the repository and this session's index."""
        if self._stopped:
            raise SessionError("the snapshot was stopped")
        if not (self.git_dir / "HEAD").exists():
            for name in ("objects", "refs", "info"):
                (self.git_dir / name).mkdir(parents=True, exist_ok=True, mode=0o700)
            (self.git_dir / "config").write_text(_CONFIG)
            (self.git_dir / "info" / "attributes").write_text(_ATTRIBUTES)
            (self.git_dir / "HEAD").write_text("ref: refs/heads/none\n")
        if self._last is None:
            self._folder.make()
            (self.git_dir / "info" / "exclude").write_bytes(self._user_excludes())
            if not self._index.exists():
                with suppress(FileNotFoundError):
                    # With its time, by which git knows which files may have changed since.
                    shutil.copy2(self.git_dir / "index", self._index)
            self._index.with_name("index.lock").unlink(missing_ok=True)

    def _share_index(self) -> None:
        """Let the next session begin with what this one has read."""
        draft = self.git_dir / f"index.{os.getpid()}"
        with suppress(OSError):
            shutil.copy2(self._index, draft)
            draft.replace(self.git_dir / "index")

    def _user_excludes(self) -> bytes:
        """The ignore rules of the user and of the clone, besides the files in the tree."""
        found: list[Path] = []
        environ = {k: v for k, v in self._user.items() if not k.startswith("GIT_")}
        words = ("git", "config", "--path", "--get", "core.excludesFile")
        with suppress(OSError):
            done = subprocess.run(  # noqa: S603 - reads a setting
                words, env=environ, cwd=self._root, capture_output=True, check=False, timeout=10
            )
            named = done.stdout.decode("utf-8", "surrogateescape").strip()
            home = Path(environ.get("HOME") or Path.home())
            usual = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "ignore"
            found.append(Path(named) if named else usual)
        found.append(_common_dir(self.top) / "info" / "exclude")
        texts: list[bytes] = []
        for file in found:
            with suppress(OSError):
                texts.append(file.read_bytes())
        return b"\n".join(texts)

    def _changed(self) -> tuple[list[str], list[str]]:
        """Files and folders that differ from the index, and empty folders."""
        words = ("ls-files", "-o", "-m", "-d", "--directory", "--exclude-standard", "-z")
        changed: list[str] = []
        empty: list[str] = []
        for path in self._git(*words, "--", self._prefix).split(b"\0"):
            name = os.fsdecode(path)
            if not name:
                continue
            if not name.endswith("/"):
                changed.append(name)
            elif os.path.lexists(self.top / name / ".git"):
                continue  # a repository of its own
            elif folders := _empty_folders(self.top, name.rstrip("/")):
                empty += folders
            else:
                changed.append(name)
        return changed, sorted(empty)

    def _check(self, changed: Iterable[str]) -> None:
        """TooLarge if the changed files are too many, or too large."""
        if not self._limited:
            return
        names = list(changed)
        if any(name.endswith("/") for name in names):
            # Single files: a new folder may contain ignored ones.
            words = ("ls-files", "-o", "-m", "--exclude-standard", "-z", "--", self._prefix)
            names = [os.fsdecode(name) for name in self._git(*words).split(b"\0")]
        files, size = len(self._paths) + len(names), 0
        for name in names:
            with suppress(OSError):
                size += (self.top / name).lstat().st_size
        if files > MOST_FILES or size > MOST_BYTES:
            what = f"{MOST_FILES:,} files" if files > MOST_FILES else "2 GB"
            raise TooLarge(
                f"the folder has more than {what}: commands there cannot be undone, edits can; "
                'checkpoints.tree = "always" snapshots it all the same'
            )

    def _listed(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self._git("ls-files", "-s", "-z").split(b"\0"):
            about, tab, path = line.partition(b"\t")
            if tab:
                found[os.fsdecode(path)] = about[:6].decode()
        return found

    def _code(self, *words: str) -> int:
        done = subprocess.run(  # noqa: S603 - no shell, no settings of the project
            ["git", *words],  # noqa: S607 - the user's own git
            env={**self._environ, "GIT_LITERAL_PATHSPECS": "0"},
            cwd=self.top,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return done.returncode

    def _git(self, *words: str, accept: tuple[int, ...] = (0,)) -> bytes:
        command = ["git", *words]
        try:
            self._running = subprocess.Popen(  # noqa: S603 - no shell, no settings of the project
                command,
                env=self._environ,
                cwd=self.top,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            out, complaint = self._running.communicate()
            code = self._running.returncode
        except OSError as error:
            raise SessionError(f"cannot snapshot {self._root}: {error}") from error
        finally:
            self._running = None
        if code not in accept:
            lines = complaint.decode("utf-8", "replace").strip().splitlines()
            raise SessionError(f"cannot snapshot {self._root}: {(lines or [f'exit {code}'])[-1]}")
        return out


def _top_of(root: Path) -> Path:
    """The folder of the enclosing repository, whose ignore rules hold; else the folder itself."""
    return next((one for one in (root, *root.parents) if (one / ".git").exists()), root)


def _common_dir(top: Path) -> Path:
    """The folder of the user's repository, also for a worktree."""
    git = top / ".git"
    with suppress(OSError):
        if git.is_file():
            git = top / git.read_text().removeprefix("gitdir:").strip()
            common = git / "commondir"
            return git / common.read_text().strip() if common.exists() else git
    return git


def _empty_folders(top: Path, name: str) -> list[str]:
    """The folder and those below it, if none of them has a file; else nothing."""
    found: list[str] = []
    for folder, _, files in os.walk(top / name):
        if files or Path(folder).is_symlink():
            return []
        found.append(os.path.relpath(folder, top))
    return found
