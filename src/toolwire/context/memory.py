"""Memory files: notes for agents in the folders above and below the working directory."""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.context import MemorySettings
from toolwire.context.imports import OUTSIDE, TOO_MUCH, ReadText, with_imports
from toolwire.tools.files.encodings import printable
from toolwire.tools.files.paths import locate, real
from toolwire.tools.files.protection import CREDENTIALS, Protection
from toolwire.tools.files.text import read_document
from toolwire.tools.search.ignore import repository_of, rules_for
from toolwire.tools.search.walk import breadth_first
from toolwire.tools.spec import ToolFailed, Workspace

LARGEST = 256 << 10
"""Largest size of a memory file in bytes."""
MOST = 512 << 10
"""Bytes of all notes and what they import; they are part of every request."""
_COST = 256
"""What the lines around a file count for."""
Hides: TypeAlias = Callable[[Path], object]
"""Whether a path of the project may not be read without a question."""


class MemoryFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was loaded."""

    path: str
    shown: str
    """Relative to the working directory."""
    size: int
    """Bytes of what it adds to the prompt, its imports included."""
    imported: tuple[str, ...] = ()
    outer: bool = False
    """Written outside of the project: by the user."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """All memory as one text, and its files."""

    text: str = ""
    files: tuple[MemoryFile, ...] = ()
    notices: tuple[str, ...] = ()
    """Files that were found but left out, and why."""


class _NoteFolder(msgspec.Struct, frozen=True):
    """A folder, its memory files, and the folder that their links may not leave."""

    files: tuple[Path, ...]
    bound: Path | None
    """None for the user's own folder."""
    outer: bool = False


def load_memory(
    workspace: Workspace,
    *,
    global_file: Path,
    trusted: bool = True,
    settings: MemorySettings | None = None,
    hides: Hides | None = None,
) -> Memory:
    """The memory of the working directory: global, then from the outside in, then below.

    In a folder that is not trusted only the global file is read. Notes and what they
    import are plain files of the project that nothing `hides`: by default the protected ones.
    """
    settings = settings or MemorySettings()
    cwd = real(workspace.roots[0])
    outer_names = settings.outer_files or settings.files
    folders = [_global(workspace.home, global_file, outer_names)]
    if cwd is not None and trusted:
        project = _project(cwd, workspace)
        folders += _above(cwd, _outermost(cwd, workspace), project, settings)
        folders.append(_included(project, settings))
        folders += _below(cwd, project, workspace, settings)
    return _Loading(cwd or workspace.roots[0], workspace, settings, hides).load(folders)


def with_memory(prompt: str, memory: str) -> str:
    """The system prompt with the memory after it."""
    memory = memory.strip()
    return f"{prompt}\n\n---\n\n{memory}" if memory else prompt


def _global(home: Path, file: Path, names: tuple[str, ...]) -> _NoteFolder:
    beside = (home / ".gemini" / name for name in names)
    return _NoteFolder(tuple(dict.fromkeys((*_present(beside), *_present([file])))), None, True)


def _present(files: Iterable[Path]) -> Iterator[Path]:
    for file in files:
        try:
            if file.is_file():
                yield file
        except OSError:
            continue


def _project(cwd: Path, workspace: Workspace) -> Path:
    """The folder that a project's notes may not lead out of: the one with `.git`, never a home."""
    repository = repository_of(cwd, workspace.ceilings)
    own = real(workspace.home) or workspace.home
    return cwd if repository is None or own.is_relative_to(repository) else repository


def _outermost(cwd: Path, workspace: Workspace) -> Path:
    """The topmost folder searched: the one with `.git`, else the home folder around it."""
    repository = repository_of(cwd, workspace.ceilings)
    if repository is not None:
        return repository
    if any(ceiling in cwd.parents for ceiling in workspace.ceilings):
        return cwd
    own = real(workspace.home)
    return own if own is not None and cwd.is_relative_to(own) else cwd


def _above(cwd: Path, top: Path, project: Path, settings: MemorySettings) -> list[_NoteFolder]:
    folders: list[_NoteFolder] = []
    for folder in reversed((cwd, *cwd.parents)):
        outer = not folder.is_relative_to(project)
        names = (settings.outer_files or settings.files) if outer else settings.files
        if folder.is_relative_to(top):
            files = tuple(_present(folder / name for name in names))
            folders.append(_NoteFolder(files, folder if outer else project, outer))
    return folders


def _included(project: Path, settings: MemorySettings) -> _NoteFolder:
    """The files that the settings name by path, from the project's root."""
    try:
        found = [file for path in settings.include for file in sorted(project.glob(path))]
    except OSError:
        found = []
    return _NoteFolder(tuple(_present(found)), project)


def _below(
    cwd: Path, bound: Path, workspace: Workspace, settings: MemorySettings
) -> list[_NoteFolder]:
    rules = rules_for(cwd, workspace)
    found: list[tuple[str, _NoteFolder]] = []
    try:
        listings = breadth_first(cwd, workspace, rules, git=settings.respect_git_ignore)
        for looked, listing in enumerate(listings):
            if looked >= settings.max_dirs:
                break
            # Personal notes are often ignored by git: its rules close folders only.
            there = {entry.name for entry in listing.files}
            files = tuple(
                cwd / listing.path / name
                for name in settings.files
                if name in there and not rules.ignored(cwd / listing.path / name, git=False)
            )
            if files:
                found.append((f"{listing.path}/", _NoteFolder(files, bound)))
    except (OSError, ToolFailed):
        # The working directory itself cannot be listed; the tools will report it.
        return []
    return [notes for _, notes in sorted(found, key=lambda pair: pair[0])]


class _Loading:
    def __init__(
        self, cwd: Path, workspace: Workspace, settings: MemorySettings, hides: Hides | None
    ) -> None:
        self._cwd = cwd
        self._workspace = workspace
        self._settings = settings
        self._protection = Protection(workspace)
        self._hides = hides or self._protection.hides
        self._room = MOST
        self._notices: list[str] = []

    def load(self, folders: Iterable[_NoteFolder]) -> Memory:
        """Read all files; each once, and equal texts in one folder once."""
        blocks: list[str] = []
        files: list[MemoryFile] = []
        seen: set[Path] = set()
        for notes in folders:
            texts: set[str] = set()
            for path in notes.files:
                if path in seen:
                    continue
                seen.add(path)
                text = self._text(path, notes.bound)
                if not text or text in texts:
                    continue
                texts.add(text)
                block, file = self._block(path, text, notes)
                blocks.append(block)
                files.append(file)
        return Memory(text="\n\n".join(blocks), files=tuple(files), notices=tuple(self._notices))

    def _text(self, path: Path, bound: Path | None) -> str:
        found = self._read(str(path), bound or (real(path) or path).parent, own=bound is None)
        if found.problem:
            reason = _REASONS.get(found.problem, found.problem)
            self._notices.append(f"memory file {path} was left out: {reason}")
        return found.text.strip()

    def _block(self, path: Path, text: str, notes: _NoteFolder) -> tuple[str, MemoryFile]:
        imported = with_imports(
            text,
            str(path),
            lambda file: self._imported(file, path, notes),
            self._settings.import_format,
        )
        shown = printable(os.path.relpath(path, self._cwd))
        body = imported.text.strip()
        block = f"--- Context from: {shown} ---\n{body}\n--- End of Context from: {shown} ---"
        file = MemoryFile(
            path=printable(str(path)),
            shown=shown,
            size=len(block.encode()),
            imported=tuple(map(printable, imported.files)),
            outer=notes.outer,
        )
        return block, file

    def _imported(self, file: str, note: Path, notes: _NoteFolder) -> ReadText:
        nearest = repository_of(note.parent, self._workspace.ceilings) or note.parent
        if notes.bound is not None and not nearest.is_relative_to(notes.bound):
            nearest = notes.bound
        return self._read(file, nearest, own=notes.bound is None)

    def _read(self, path: str, bound: Path, *, own: bool) -> ReadText:
        """The text of a file at or below `bound`, or gemini-cli's error text."""
        inside = msgspec.structs.replace(self._workspace, roots=(bound,))
        found = locate(path, inside)
        if found is None:
            return ReadText(problem=OUTSIDE)
        if any(self._is_hidden(each, own=own) for each in (Path(path), found)):
            return ReadText(problem=_PROTECTED)
        try:
            if found.stat().st_size > LARGEST:
                return ReadText(problem=f"larger than {LARGEST >> 10} KB")
            self._room -= found.stat().st_size + _COST
            if self._room < 0:
                return ReadText(problem=TOO_MUCH)
            return ReadText(printable(read_document(found, inside, largest=LARGEST).text))
        except OSError as error:
            return ReadText(problem=_reason(error, path))
        except ToolFailed as error:
            return ReadText(problem=str(error))

    def _is_hidden(self, path: Path, *, own: bool) -> bool:
        """Whether a file may not become notes; the user's own may name all but credentials."""
        if own:
            return self._protection.why(path) == CREDENTIALS
        return bool(self._hides(path) or self._protection.hides(path))


_PROTECTED = "it is protected"
_REASONS = {
    OUTSIDE: "it leads out of the project",
    TOO_MUCH: f"notes exceed {MOST >> 10} KB in total",
}


def _reason(error: OSError, path: str) -> str:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return f"ENOENT: no such file or directory, access '{path}'"
        case errno.EACCES | errno.EPERM:
            return f"EACCES: permission denied, access '{path}'"
        case errno.EISDIR:
            return "EISDIR: illegal operation on a directory, read"
        case _:
            return error.strerror or "it cannot be read"
