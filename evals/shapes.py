"""Usual shapes of tasks: look something up, change one file, make a file, run something."""

import re
from collections.abc import Mapping

from evals.checks import becomes, only, unchanged
from evals.task import Call, Check, Solution, Task

READ = ("read_file", "run_shell_command", "read_many_files", "search_file_content")
LIST = ("list_directory", "run_shell_command", "glob")
SEARCH = ("search_file_content", "run_shell_command", "read_many_files")
FIND = ("glob", "run_shell_command", "list_directory")
RUN = ("run_shell_command",)
WRITE = ("write_file", "run_shell_command")
EDIT = ("replace", "write_file", "apply_patch", "read_file", "run_shell_command")


def look(
    files: Mapping[str, str],
    prompt: str,
    arguments: str,
    reply: str,
    *checks: Check,
    tools: tuple[str, ...] = READ,
) -> Task:
    """A question that leaves every file as it is."""
    return Task(
        files=files,
        prompt=prompt,
        tools=tools,
        arguments=arguments,
        done=(*checks, unchanged),
        question=True,
        solution=Solution(reply=reply),
    )


def edit(files: Mapping[str, str], prompt: str, path: str, old: str, new: str) -> Task:
    """A change of one place in one file, everything else as before."""
    expected = files[path].replace(old, new)
    return Task(
        files=files,
        prompt=prompt,
        tools=EDIT,
        arguments=re.escape(path),
        done=(becomes(path, expected), only(path)),
        solution=Solution(files={path: expected}, reply=f"I updated {path}."),
    )


def edits(files: Mapping[str, str], prompt: str, changes: Mapping[str, str], *more: Check) -> Task:
    """Changes of several files to what is expected, everything else as before."""
    return Task(
        files=files,
        prompt=prompt,
        tools=(*EDIT, "search_file_content", "list_directory", "glob", "read_many_files"),
        done=(*(becomes(path, text) for path, text in changes.items()), *more, only(*changes)),
        solution=Solution(files=changes, reply=f"I updated {' and '.join(changes)}."),
    )


def make(
    files: Mapping[str, str], prompt: str, new: Mapping[str, str | None], *checks: Check
) -> Task:
    """Files to create, move or remove, and checks of what they contain."""
    return Task(
        files=files,
        prompt=prompt,
        tools=WRITE,
        arguments=re.escape(next(iter(new)).rstrip("/")),
        done=(*checks, only(*new)),
        solution=Solution(files=new, reply="That is done."),
    )


def shell(command: str, result: str = "") -> Call:
    """A command that ran."""
    return Call(
        name="run_shell_command",
        arguments={"command": command},
        started=True,
        success=True,
        result=result,
        valid=True,
    )
