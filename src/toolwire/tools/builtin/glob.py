"""`glob`: files by the pattern of their path."""

import asyncio
import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from toolwire.platform import stat_at
from toolwire.request import JsonObject
from toolwire.tools.files.paths import locate, named, resolved, search_touches, starts
from toolwire.tools.files.protection import Hidden, LeftOut, Visibility, with_line
from toolwire.tools.search.globs import Globs, complaint
from toolwire.tools.search.ignore import Ignored, rules_for
from toolwire.tools.search.walk import Walk, folders, in_collation_order
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolOutput
from toolwire.tools.typed import schema_of, words

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
    return complaint([str(arguments["pattern"])])


async def _run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_search, arguments, context, stop.is_set)
    finally:
        stop.set()


def _search(arguments: JsonObject, context: ToolContext, stopped: Callable[[], bool]) -> ToolOutput:
    pattern = str(arguments["pattern"])
    places = starts(str(arguments.get("path") or ""), context.workspace)
    paths: list[str] = []
    times: list[float] = []
    hidden: Counter[Ignored] = Counter()
    visibility, left_out = Visibility(context, "glob", names_only=True), LeftOut(names=False)
    for shown, start in places:
        globs = _globs(pattern, shown, start, ignore_case=not arguments.get("case_sensitive"))
        plan = Walk(
            start=start,
            workspace=context.workspace,
            rules=rules_for(start, context.workspace),
            git=arguments.get("respect_git_ignore") is not False,
            own=arguments.get("respect_gemini_ignore") is not False,
            into_ignored=True,
            enters=None if globs.everywhere else globs.enters,
            stopped=stopped,
        )
        above = os.path.join(shown, "")  # noqa: PTH118 - text
        for folder in folders(plan):
            meant = globs.among(folder.path, folder.names)
            names = folder.seen(meant)
            if len(names) < len(meant):
                hidden.update(
                    folder.hidden or folder.ignored.get(name, Ignored.NO) for name in meant
                )
            if hides := visibility.among(f"{start}{os.sep}{folder.path}", names):
                names = [
                    name for name in names if not left_out.add(hides.get(name, Hidden.NO), name)
                ]
            prefix = above + folder.path
            paths += [prefix + name for name in names]
            times += modified(names, folder.descriptor)
    output = _output(
        pattern, [shown for shown, _ in places], ordered(paths, times, time.time()), hidden
    )
    return with_line(output, left_out.line())


def _globs(pattern: str, shown: str, start: Path, *, ignore_case: bool) -> Globs:
    """The pattern below where the search begins; one that is a path itself is meant literally."""
    for base in (shown, str(start)):
        if pattern.startswith(f"{base}/"):
            pattern = pattern[len(base) + 1 :]
    if "\0" not in pattern and not pattern.startswith("/") and os.path.lexists(start / pattern):
        return Globs((), literal=(pattern,), ignore_case=ignore_case)
    outside = pattern.startswith("/")
    return Globs(() if outside else (pattern,), ignore_case=ignore_case)


def modified(names: list[str], folder: int) -> list[float]:
    """When files of an open directory were last written to; 0 for one that is gone."""
    look = stat_at
    try:
        return [look(name, dir_fd=folder, follow_symlinks=False).st_mtime for name in names]
    except OSError:
        return [_modified(name, folder) for name in names]


def _modified(name: str, folder: int) -> float:
    try:
        return stat_at(name, dir_fd=folder, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _output(
    pattern: str, places: list[str], found: list[str], hidden: Counter[Ignored]
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
    lines = "\n".join(found)
    return ToolOutput(
        text=f"{text}, sorted by modification time (newest first):\n{lines}",
        display=f"Found {len(found)} matching file(s)",
    )


def ordered(paths: list[str], times: list[float], now: float) -> list[str]:
    """Files of the last day, newest first, then the others by name."""
    numbers = sorted(range(len(paths)), key=times.__getitem__, reverse=True)
    count = bisect_left(numbers, True, key=lambda number: now - times[number] >= _RECENT)
    recent = [paths[number] for number in numbers[:count]]
    if count == len(paths):
        return recent
    older = [paths[number] for number in sorted(numbers[count:])]
    return recent + in_collation_order(older)


TOOL = Tool(
    name="glob",
    title="FindFiles",
    description=words("glob"),
    parameters=schema_of(Glob),
    effect=Effect.READ,
    run=_run,
    check=_check,
    touches=search_touches,
)
