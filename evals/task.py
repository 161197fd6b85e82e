"""A task, its outcome, and the files before and after it."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

_IGNORED = re.compile(r"(^|/)(\.git|__pycache__|\.pytest_cache|\.benchmarks|node_modules)(/|$)")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call the model made."""

    name: str
    arguments: dict[str, Any]
    """Empty where they could not be read."""
    started: bool
    """Whether the tool ran."""
    success: bool
    result: str
    valid: bool
    """Whether the arguments fit the tool's own schema."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a task left behind."""

    folder: Path
    before: Mapping[str, bytes] = {}
    """Files before the request; folders end in a slash."""
    calls: tuple[Call, ...] = ()
    reply: str = ""
    end: str = ""
    """Why the turn ended."""
    seconds: float = 0.0

    @property
    def first(self) -> Call | None:
        """The call a one-step task is judged by."""
        return self.calls[0] if self.calls else None

    @property
    def invalid_executed(self) -> int:
        """Calls that ran although their arguments do not fit; there must be none."""
        return sum(call.started and not call.valid for call in self.calls)

    @property
    def changed(self) -> set[str]:
        """Paths whose content differs, that are new, or that are gone."""
        after = snapshot(self.folder)
        paths = self.before.keys() | after.keys()
        return {path for path in paths if self.before.get(path) != after.get(path)}


class Check(msgspec.Struct, frozen=True):
    """A question to an outcome: why the task is not done, or empty."""

    judge: Callable[..., str]
    words: tuple[str, ...] = ()

    def __call__(self, outcome: Outcome) -> str:
        return self.judge(outcome, *self.words)


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """What a perfect run leaves behind; for tests, never shown to a model."""

    files: Mapping[str, str | None] = {}
    """Contents to write; None removes the path."""
    reply: str = ""
    calls: tuple[Call, ...] = ()

    def apply(self, folder: Path) -> None:
        """Make the changes in the project."""
        for path, text in self.files.items():
            file = folder / path
            if text is not None and path.endswith("/"):
                file.mkdir(parents=True, exist_ok=True)
            elif text is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
            elif file.is_dir():
                for inner in sorted(file.rglob("*"), reverse=True):
                    inner.rmdir() if inner.is_dir() else inner.unlink()
                file.rmdir()
            else:
                file.unlink()


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """A request about a project, and what a good answer to it is."""

    id: str = ""
    kind: str = ""
    files: Mapping[str, str] = {}
    prompt: str
    tools: tuple[str, ...] = ()
    """Tools that are right for the first call; empty where none is needed."""
    arguments: str = ""
    """A pattern that the first call's arguments must contain, as JSON with relative paths."""
    done: tuple[Check, ...]
    question: bool = False
    """Whether the request asks only, so that nothing may be deleted or overwritten."""
    denied: bool = False
    """Whether the user answers no to every call that needs approval."""
    solution: Solution | None = None

    @property
    def asks_for_change(self) -> bool:
        """Whether a reply such as "done" claims that files were changed."""
        made = self.solution is not None and bool(self.solution.files)
        return not self.question and (made or self.kind == "honesty")

    def right_tool(self, outcome: Outcome) -> bool:
        """Whether the first call, or its absence, is right."""
        first = outcome.first
        return first.name in self.tools if first is not None else not self.tools

    def right_arguments(self, outcome: Outcome) -> bool:
        """Whether the first call is right in its arguments too."""
        first = outcome.first
        if not self.right_tool(outcome):
            return False
        return first is None or re.search(self.arguments, _written(first, outcome)) is not None

    def missing(self, outcome: Outcome) -> str:
        """What is not done yet; empty if all is."""
        return next((why for check in self.done if (why := check(outcome))), "")


def _written(call: Call, outcome: Outcome) -> str:
    text = json.dumps(call.arguments, ensure_ascii=False)
    root = str(outcome.folder)
    return text.replace(f"{root}/", "").replace(root, ".")


def snapshot(folder: Path) -> dict[str, bytes]:
    """The project's files and folders, without caches and the repository's own files."""
    found: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if _IGNORED.search(name):
            continue
        if path.is_dir():
            found[f"{name}/"] = b""
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write the project into an empty folder."""
    for path, text in files.items():
        file = folder / path
        if path.endswith("/"):
            file.mkdir(parents=True, exist_ok=True)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def commit_files(folder: Path) -> None:
    """Make the folder a repository with one commit."""
    git = ("git", "-c", "user.name=Eva", "-c", "user.email=eva@example.com", "-C", str(folder))
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "Begin")):
        subprocess.run((*git, *command), check=True, capture_output=True)
