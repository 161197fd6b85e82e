"""`search_file_content`: lines of files that fit a regular expression."""

import os
from itertools import groupby
from typing import Annotated

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.files.paths import locate, named, resolved, search_touches, starts, stat_error
from toolwire.tools.files.protection import LeftOut, Visibility, with_line
from toolwire.tools.search.globs import complaint as too_complex
from toolwire.tools.search.grep import MOST_MATCHES, FoundLine, Search, search
from toolwire.tools.search.ignore import rules_for
from toolwire.tools.search.regexes import BadPattern, check
from toolwire.tools.spec import Effect, ToolContext, ToolOutput
from toolwire.tools.typed import tool, words

_MOST_NAMED = 20


class SearchFileContent(msgspec.Struct, frozen=True):
    """Arguments of `search_file_content`."""

    pattern: Annotated[
        str,
        msgspec.Meta(
            description="The regular expression (regex) pattern to search for within file contents "
            r"(e.g., 'function\s+myFunction', 'import\s+\{.*\}\s+from\s+.*')."
        ),
    ]
    path: (
        Annotated[
            str,
            msgspec.Meta(
                description="Optional: The absolute path to the directory to search within. "
                "If omitted, searches the current working directory."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    include: (
        Annotated[
            str,
            msgspec.Meta(
                description="Optional: A glob pattern to filter which files are searched (e.g., "
                "'*.js', '*.{ts,tsx}', 'src/**'). If omitted, searches all files (respecting "
                "potential global ignores)."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


def _check(arguments: JsonObject, context: ToolContext) -> str:
    pattern = str(arguments.get("pattern", ""))
    try:
        check(pattern)
    except BadPattern as error:
        return f"Invalid regular expression pattern provided: {pattern}. Error: {error}"
    if wrong := too_complex([str(arguments.get("include") or "")]):
        return wrong
    given = str(arguments.get("path") or "")
    if not given:
        return ""
    where = resolved(given, context.workspace)
    found = locate(where, context.workspace)
    if found is None:
        return (
            f'Path validation failed: Attempted path "{given}" resolves outside the allowed '
            f"workspace directories: {named(context.workspace)}"
        )
    failed = f"Failed to access path stats for {where}: Error: "
    try:
        os.stat(found)  # noqa: PTH116 - only its error matters
    except OSError as error:
        return failed + stat_error(where, error)
    return "" if found.is_dir() else f"{failed}Path is not a directory: {where}"


@tool(
    "search_file_content",
    Effect.READ,
    words("search_file_content"),
    title="SearchText",
    check=_check,
    touches=search_touches,
)
async def search_file_content(args: SearchFileContent, context: ToolContext) -> ToolOutput:
    """Search every directory of the workspace, or the one that is named."""
    include = args.include or ""
    places = starts(args.path or "", context.workspace)
    lines: list[FoundLine] = []
    visibility, left_out = Visibility(context, "search_file_content"), LeftOut()
    unsearched: list[str] = []
    for shown, start in places:
        task = Search(
            pattern=args.pattern,
            start=start,
            include=include,
            workspace=context.workspace,
            rules=rules_for(start, context.workspace),
            environ=context.environ,
            visibility=visibility,
            most=MOST_MATCHES - len(lines),
        )
        found = await search(task, context.settings.search_with or "")
        prefix = f"{os.path.basename(shown)}/" if len(places) > 1 else ""  # noqa: PTH119 - text
        lines += [FoundLine(prefix + line.path, line.number, line.text) for line in found]
        left_out.join(task.left_out, prefix)
        unsearched += [prefix + each for each in task.unsearched]
        if len(lines) >= MOST_MATCHES:
            break
    output = _output(args.pattern, _where(args.path or "", len(places), include), lines)
    return with_line(with_line(output, left_out.line("Not searched")), _too_large(unsearched))


def _too_large(unsearched: list[str]) -> str:
    if not unsearched:
        return ""
    named = ", ".join(unsearched[:_MOST_NAMED])
    more = f" and {len(unsearched) - _MOST_NAMED} more" if len(unsearched) > _MOST_NAMED else ""
    return f"Not searched, since they are too large: {len(unsearched)} ({named}{more})."


def _where(given: str, places: int, include: str) -> str:
    if given:
        where = f'in path "{given}"'
    elif places == 1:
        where = "in the workspace directory"
    else:
        where = f"across {places} workspace directories"
    return where + (f' (filter: "{include}")' if include else "")


def _output(pattern: str, where: str, lines: list[FoundLine]) -> ToolOutput:
    if not lines:
        text = f'No matches found for pattern "{pattern}" {where}.'
        return ToolOutput(text=text, display="No matches found")
    noun = "match" if len(lines) == 1 else "matches"
    limited = len(lines) >= MOST_MATCHES
    text = f'Found {len(lines)} {noun} for pattern "{pattern}" {where}'
    if limited:
        text += f" (results limited to {MOST_MATCHES} matches for performance)"
    blocks = [
        f"File: {path}\n" + "".join(f"L{line.number}: {line.text.strip()}\n" for line in group)
        for path, group in groupby(lines, key=lambda line: line.path)
    ]
    text += ":\n---\n" + "---\n".join([*blocks, ""])
    display = f"Found {len(lines)} {noun}" + (" (limited)" if limited else "")
    return ToolOutput(text=text.strip(), display=display)


TOOL = search_file_content
