"""`list_directory`: the names in one directory."""

import asyncio
import os
import re
from collections import Counter
from pathlib import Path

import msgspec

from toolwire.platform import scandir
from toolwire.request import JsonObject
from toolwire.tools.files.paths import locate, located, named, open_folder, stat_error, touching
from toolwire.tools.files.protection import LeftOut, Visibility, with_line
from toolwire.tools.search.globs import LONGEST
from toolwire.tools.search.ignore import Filtering, Ignored, filtering_schema, rules_for
from toolwire.tools.search.patterns import NEVER, TooComplex, any_text
from toolwire.tools.search.walk import collation_key
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import words


class ListDirectory(msgspec.Struct, frozen=True):
    """Arguments of `list_directory`."""

    path: str
    ignore: tuple[str, ...] = ()
    file_filtering_options: Filtering = Filtering()


_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "path": {
            "description": "The absolute path to the directory to list (must be absolute, not "
            "relative)",
            "type": "string",
        },
        "ignore": {
            "description": "List of glob patterns to ignore",
            "items": {"type": "string"},
            "type": "array",
        },
        "file_filtering_options": filtering_schema(
            "Optional: Whether to respect ignore patterns from .gitignore or .geminiignore"
        ),
    },
    "required": ["path"],
}


def _check(arguments: JsonObject, context: ToolContext) -> str:
    given = str(arguments.get("path", ""))
    if not os.path.isabs(given):  # noqa: PTH117 - a NUL is not an error here
        return f"Path must be absolute: {given}"
    if locate(given, context.workspace) is None:
        return f"Path must be within one of the workspace directories: {named(context.workspace)}"
    return ""


async def _run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    args = msgspec.convert(arguments, ListDirectory)
    return await asyncio.to_thread(_listing, args, context)


def _listing(args: ListDirectory, context: ToolContext) -> ToolOutput:
    path = located(args.path, context.workspace)
    entries = _entries(path, args.path, context)
    if not entries:
        return ToolOutput(text=f"Directory {args.path} is empty.", display="Directory is empty.")
    rules, filtering = rules_for(path, context.workspace), args.file_filtering_options
    excluded = _names(args.ignore)
    hidden: Counter[Ignored] = Counter()
    visibility, left_out = (
        Visibility(context, "list_directory", names_only=True),
        LeftOut(names=False),
    )
    shown: list[tuple[str, bool]] = []
    for name, folder in entries:
        if excluded.fullmatch(name) or left_out.add(visibility.hides(path / name), name):
            continue
        ignored = rules.ignored(
            path / name,
            folder=folder,
            git=filtering.respect_git_ignore,
            own=filtering.respect_gemini_ignore,
        )
        hidden[ignored] += 1
        if not ignored:
            shown.append((name, folder))
    shown.sort(key=lambda entry: (not entry[1], collation_key(entry[0])))
    lines = "\n".join(f"[DIR] {name}" if folder else name for name, folder in shown)
    counts = [
        f"{hidden[kind]} {word}-ignored"
        for kind, word in ((Ignored.GIT, "git"), (Ignored.OWN, "gemini"))
        if hidden[kind]
    ]
    note = f"({', '.join(counts)})" if counts else ""
    output = ToolOutput(
        text=f"Directory listing for {args.path}:\n{lines}" + (f"\n\n{note}" if note else ""),
        display=f"Listed {len(shown)} item(s)." + (f" {note}" if note else ""),
    )
    return with_line(output, left_out.line())


def _entries(path: Path, given: str, context: ToolContext) -> list[tuple[str, bool]]:
    try:
        folder = open_folder(path, context.workspace)
    except NotADirectoryError:
        raise ToolFailed(
            f"Error: Path is not a directory: {given}", type="path_is_not_a_directory"
        ) from None
    except OSError as error:
        raise ToolFailed(
            f"Error listing directory: {stat_error(given, error)}", type="ls_execution_error"
        ) from error
    try:
        with scandir(folder) as entries:
            return [(entry.name, entry.is_dir()) for entry in entries]
    except OSError as error:
        raise ToolFailed(
            f"Error listing directory: {stat_error(given, error)}", type="ls_execution_error"
        ) from error
    finally:
        os.close(folder)


def _names(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """What `ignore` names: `*` is any text and `?` any letter, of the name alone."""
    if sum(map(len, patterns)) > LONGEST:
        raise TooComplex(f"the patterns to ignore are longer than {LONGEST} characters")
    return re.compile("|".join(map(any_text, patterns)) or NEVER, re.DOTALL)


TOOL = Tool(
    name="list_directory",
    title="ReadFolder",
    description=words("list_directory"),
    parameters=_PARAMETERS,
    effect=Effect.READ,
    run=_run,
    check=_check,
    touches=touching("path"),
)
