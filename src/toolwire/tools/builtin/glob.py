"""`glob`: files by the pattern of their path."""

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.collation import collation_key
from toolwire.tools.folders import resolved, starts
from toolwire.tools.globs import Globs
from toolwire.tools.ignore import Ignored, rules_for
from toolwire.tools.paths import locate, named
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words
from toolwire.tools.walking import Walk, walk

_RECENT = 24 * 3600


class Glob(msgspec.Struct, frozen=True):
    """Arguments of `glob`."""

    pattern: Annotated[
        str,
        msgspec.Meta(
            description="The glob pattern to match against (e.g., '**/*.py', 'docs/*.md')."
        ),
    ]
    path: (
        Annotated[
            str,
            msgspec.Meta(
                description="Optional: The absolute path to the directory to search within. "
                "If omitted, searches the root directory."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    case_sensitive: (
        Annotated[
            bool,
            msgspec.Meta(
                description="Optional: Whether the search should be case-sensitive. "
                "Defaults to false."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    respect_git_ignore: (
        Annotated[
            bool,
            msgspec.Meta(
                description="Optional: Whether to respect .gitignore patterns when finding files. "
                "Only available in git repositories. Defaults to true."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


def _check(arguments: JsonObject, context: ToolContext) -> str:
    where = resolved(str(arguments.get("path") or "."), context.workspace)
    found = locate(where, context.workspace)
    if found is None:
        directories = named(context.workspace)
        return (
            f'Search path ("{where}") resolves outside the allowed workspace directories: '
            f"{directories}"
        )
    try:
        if not os.path.lexists(found):
            return f"Search path does not exist {where}"
        if not found.is_dir():
            return f"Search path is not a directory: {where}"
    except OSError as error:
        return f"Error accessing search path: {error.strerror}"
    if not str(arguments.get("pattern", "")).strip():
        return "The 'pattern' parameter cannot be empty."
    return ""


def _touches(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    where = resolved(str(arguments.get("path") or "."), context.workspace)
    return (locate(where, context.workspace) or Path(where),)


class _Entry(msgspec.Struct, frozen=True):
    path: str
    modified: float


async def _run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    complaint = _check(arguments, context)
    if complaint:
        raise ToolFailed(complaint, type="invalid_tool_params")
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_search, arguments, context, stop.is_set)
    finally:
        stop.set()


def _search(arguments: JsonObject, context: ToolContext, stopped: Callable[[], bool]) -> ToolOutput:
    pattern = str(arguments["pattern"])
    places = starts(str(arguments.get("path") or ""), context.workspace)
    found: list[_Entry] = []
    hidden: Counter[Ignored] = Counter()
    for shown, start in places:
        globs = _globs(pattern, shown, start, ignore_case=not arguments.get("case_sensitive"))
        plan = Walk(
            start=start,
            workspace=context.workspace,
            rules=rules_for(start, context.workspace),
            git=arguments.get("respect_git_ignore") is not False,
            own=arguments.get("respect_gemini_ignore") is not False,
            into_ignored=True,
            enters=globs.enters,
            stopped=stopped,
        )
        for file in walk(plan):
            if not globs.matches(file.path):
                continue
            hidden[file.ignored] += 1
            if not file.ignored:
                when = _modified(file.name, file.folder)
                found.append(_Entry(os.path.join(shown, file.path), when))  # noqa: PTH118 - text
    return _output(pattern, [shown for shown, _ in places], found, hidden)


def _globs(pattern: str, shown: str, start: Path, *, ignore_case: bool) -> Globs:
    """The pattern below where the search begins; one that is a path itself is meant literally."""
    for base in (shown, str(start)):
        if pattern.startswith(f"{base}/"):
            pattern = pattern[len(base) + 1 :]
    if "\0" not in pattern and not pattern.startswith("/") and os.path.lexists(start / pattern):
        return Globs((), literal=(pattern,), ignore_case=ignore_case)
    outside = pattern.startswith("/")
    return Globs(() if outside else (pattern,), ignore_case=ignore_case)


def _modified(name: str, folder: int) -> float:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _output(
    pattern: str, places: list[str], found: list[_Entry], hidden: Counter[Ignored]
) -> ToolOutput:
    git, own = hidden[Ignored.GIT], hidden[Ignored.OWN]
    if not found:
        where = places[0] if len(places) == 1 else f"{len(places)} workspace directories"
        text = f'No files found matching pattern "{pattern}" within {where}'
        text += f" ({git} files were git-ignored)" if git else ""
        text += f" ({own} files were gemini-ignored)" if own else ""
        return ToolOutput(text=text, display="No files found")
    if len(places) == 1:
        where = f"within {places[0]}"
    else:
        where = f"across {len(places)} workspace directories"
    text = f'Found {len(found)} file(s) matching "{pattern}" {where}'
    text += f" ({git} additional files were git-ignored)" if git else ""
    text += f" ({own} additional files were gemini-ignored)" if own else ""
    lines = "\n".join(entry.path for entry in ordered(found, time.time()))
    return ToolOutput(
        text=f"{text}, sorted by modification time (newest first):\n{lines}",
        display=f"Found {len(found)} matching file(s)",
    )


def ordered(found: list[_Entry], now: float) -> list[_Entry]:
    """Files of the last day, newest first, then the others by name."""
    recent = [entry for entry in found if now - entry.modified < _RECENT]
    older = [entry for entry in found if now - entry.modified >= _RECENT]
    recent.sort(key=lambda entry: -entry.modified)
    older.sort(key=lambda entry: collation_key(entry.path))
    return recent + older


@tool("glob", Effect.READ, words("glob"), title="FindFiles", check=_check, touches=_touches)
async def _declared(args: Glob, context: ToolContext) -> ToolOutput:
    return await _run(msgspec.to_builtins(args), context)


TOOL = msgspec.structs.replace(_declared, run=_run)
