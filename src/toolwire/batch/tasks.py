"""Task files: one JSON object per line, read strictly; errors name the line."""

import fnmatch
import hashlib
import heapq
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from toolwire.errors import BadInput, nearest_name
from toolwire.prompted import ToolStyle
from toolwire.request import Effort
from toolwire.setting import Amount, Count

WorkspaceKind: TypeAlias = Literal["folder", "git", "files", "image", ""]
_LONGEST_ID = 200
_LONGEST_NAME = 100


class TaskWorkspace(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a task works: a copy of a folder, a commit, files, or a folder of an image."""

    folder: str = ""
    git: str = ""
    """Address or path of a repository."""
    commit: str = ""
    """Hash, branch or tag; empty is the repository's HEAD."""
    subfolder: str = ""
    files: Mapping[str, str] = {}
    """Text by relative path."""
    image: str = ""
    """Container image; its `folder` is the working folder inside."""
    build: str = ""
    """Folder of a Dockerfile that the image is built from."""
    cpus: Amount = 0.0
    memory: Count = 0
    """Megabytes; 0 sets no limit."""
    network: bool = False

    @property
    def kind(self) -> WorkspaceKind:
        """Which of the forms it is; empty for an empty folder."""
        if self.image or self.build:
            return "image"
        if self.git:
            return "git"
        if self.folder:
            return "folder"
        return "files" if self.files else ""


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides whether a task is solved; run after the agent, outside its reach."""

    command: str
    timeout: Amount = 600.0
    files: Mapping[str, str] = {}
    """Text by path, put into the workspace only then."""
    copy: Mapping[str, str] = {}
    """Files and folders to copy in then: source by relative path."""
    reward: str = ""
    """File that the command writes a number to; without it, exit code 0 passes."""


class TaskLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Most that one attempt may use; 0 sets no limit."""

    turns: Count = 0
    tokens: Count = 0
    cost: Amount = 0.0
    seconds: Amount = 0.0


class Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a task file."""

    id: str = ""
    prompt: str = ""
    prompt_file: str = ""
    attachments: tuple[str, ...] = ()
    workspace: TaskWorkspace = TaskWorkspace()
    setup: str = ""
    """Command that prepares the workspace, before the agent."""
    model: str = ""
    tool_style: ToolStyle | None = None
    system: str = ""
    effort: Effort | None = None
    allowed_tools: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    limits: TaskLimits = TaskLimits()
    check: Check | None = None
    artefacts: tuple[str, ...] = ()
    """Patterns of files of the workspace that are kept."""
    tags: tuple[str, ...] = ()
    meta: Any = None
    """Kept as it is."""

    @property
    def digest(self) -> str:
        """Changes with anything in the task."""
        return hashlib.sha256(encode(self)).hexdigest()[:16]


_decoder = msgspec.json.Decoder(Task)
_encoder = msgspec.json.Encoder()


def encode(task: Task) -> bytes:
    """A task as JSON."""
    return _encoder.encode(task)


def decode(body: bytes) -> Task:
    """A task that `encode` wrote."""
    return _decoder.decode(body)


def read_tasks(path: Path) -> Iterator[Task]:
    """The tasks of a file, one by one; paths in them are made absolute, from the file's folder.

    Raises BadInput with the name of the file and the line for the first that cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield from parse_lines(file, path.name, path.resolve().parent)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def parse_lines(lines: Iterable[bytes], name: str, folder: Path) -> Iterator[Task]:
    """The tasks of these lines; empty lines are skipped."""
    seen: dict[str, int] = {}
    folded: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        where = f"{name}:{number}"
        task = _checked(_parsed(line, where), where, number, folder)
        if task.id in seen:
            raise BadInput(f'{where}: id "{task.id}" is used on line {seen[task.id]} too')
        seen[task.id] = number
        same = folded.setdefault(folder_name(task.id).lower(), task.id)
        if same != task.id:
            raise BadInput(f'{where}: ids "{same}" and "{task.id}" would share a folder')
        yield task
    if not seen:
        raise BadInput(f"{name} contains no task; write one JSON object per line")


def _parsed(line: bytes, where: str) -> Task:
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {_reason(error)}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"{where}: not JSON: {error}") from error
    except RecursionError as error:
        raise BadInput(f"{where}: nested too deeply") from error


_UNKNOWN = re.compile(r"Object contains unknown field `(.+?)`(?: - at `\$\.?(.*?)`)?$", re.DOTALL)
_TYPES: Mapping[str, type[msgspec.Struct]] = {
    "": Task,
    "workspace": TaskWorkspace,
    "check": Check,
    "limits": TaskLimits,
}


def _reason(error: msgspec.ValidationError) -> str:
    found = _UNKNOWN.match(str(error))
    if found is None:
        return str(error)
    member, place = found[1], found[2] or ""
    known = _TYPES.get(place, Task).__struct_fields__
    near = nearest_name(member, known)
    hint = f'did you mean "{near}"?' if near else f"known: {', '.join(known)}"
    return f'unknown member "{member}"{f" in {place}" if place else ""}; {hint}'


def _checked(task: Task, where: str, number: int, folder: Path) -> Task:
    if bool(task.prompt.strip()) == bool(task.prompt_file):
        raise BadInput(f"{where}: give either prompt or prompt_file")
    id = task.id or str(number)
    if len(id) > _LONGEST_ID or any(ord(letter) < 32 for letter in id):
        raise BadInput(f"{where}: id: at most {_LONGEST_ID} characters, none of them a control")
    space = task.workspace
    _check_workspace(space, where)
    check = task.check
    if check is not None:
        if not check.command.strip():
            raise BadInput(f"{where}: check.command is empty")
        for path in (*check.files, *check.copy):
            _check_relative(path, f"{where}: check")
        copy = {to: _absolute(source, folder) for to, source in check.copy.items()}
        check = msgspec.structs.replace(check, copy=copy)
    git = space.git
    if git and "://" not in git and not re.match(r"[\w.-]+@[\w.-]+:", git):
        git = _absolute(git, folder)
    inside = space.kind == "image"
    space = msgspec.structs.replace(
        space,
        git=git,
        folder=space.folder if inside or not space.folder else _absolute(space.folder, folder),
        build=space.build and _absolute(space.build, folder),
    )
    return msgspec.structs.replace(
        task,
        id=id,
        workspace=space,
        check=check,
        prompt_file=task.prompt_file and _absolute(task.prompt_file, folder),
        attachments=tuple(_absolute(each, folder) for each in task.attachments),
    )


def _check_workspace(space: TaskWorkspace, where: str) -> None:
    given = [name for name in ("git", "files", "image") if getattr(space, name)]
    if space.folder and not (space.image or space.build):
        given.append("folder")
    if len(given) > 1:
        raise BadInput(f"{where}: workspace: {given[0]} and {given[1]} exclude each other")
    if (space.commit or space.subfolder) and not space.git:
        raise BadInput(f"{where}: workspace: commit and subfolder need git")
    if space.git.startswith("-") or space.commit.startswith("-"):
        raise BadInput(f"{where}: workspace: git and commit cannot begin with a dash")
    if space.subfolder:
        _check_relative(space.subfolder, f"{where}: workspace.subfolder")
    for path in space.files:
        _check_relative(path, f"{where}: workspace.files")


def _check_relative(path: str, where: str) -> None:
    parts = Path(path).parts
    if not parts or Path(path).is_absolute() or ".." in parts or "\0" in path:
        raise BadInput(f'{where}: "{path}" must be a relative path inside the workspace')
    if ".git" in (part.lower() for part in parts):
        raise BadInput(f'{where}: "{path}" is inside .git')


def _absolute(path: str, folder: Path) -> str:
    return str((folder / Path(path).expanduser()).resolve())


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks of a file are run."""

    filter: tuple[str, ...] = ()
    """Patterns of ids and tags; empty takes all."""
    sample: int = 0
    """How many at random; 0 takes all."""
    seed: int = 0
    limit: int = 0
    """How many from the start; 0 takes all."""

    def of(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """The tasks that are selected, in their order."""
        found = (task for task in tasks if self._matches(task))
        if self.sample:
            found = self._sampled(found)
        for count, task in enumerate(found, 1):
            yield task
            if count == self.limit:
                return

    def _matches(self, task: Task) -> bool:
        names = (task.id, *task.tags)
        return not self.filter or any(
            fnmatch.fnmatchcase(name, pattern) for name in names for pattern in self.filter
        )

    def _sampled(self, tasks: Iterable[Task]) -> Iterator[Task]:
        """A sample that depends only on the seed and the ids, not on the order of the file."""
        drawn: list[tuple[float, int, Task]] = []
        for at, task in enumerate(tasks):
            chance = random.Random(f"{self.seed}\0{task.id}").random()  # noqa: S311 - reproducible
            drawn.append((chance, at, task))
            if len(drawn) >= 2 * self.sample + 1000:
                drawn = heapq.nsmallest(self.sample, drawn, key=lambda one: one[:2])
        chosen = heapq.nsmallest(self.sample, drawn, key=lambda one: one[:2])
        for _, _, task in sorted(chosen, key=lambda one: one[1]):
            yield task


def folder_name(id: str) -> str:
    """The name of a task's folder: its id, where that is a safe name."""
    name = re.sub(r"[^\w.@+-]", "_", id)
    if name == id and not id.startswith(".") and len(id) <= _LONGEST_NAME:
        return id
    digest = hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{name.lstrip('.')[: _LONGEST_NAME - 9]}-{digest}"


def text_of(path: str) -> str:
    """The prompt in a file."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error
