"""`read_many_files`: the contents of all files that fit some patterns."""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from toolwire.messages import Media, MediaKind, Text
from toolwire.request import JsonObject
from toolwire.tools.contents import Content, read_content
from toolwire.tools.filetypes import media_kind, mime_of
from toolwire.tools.filtering import Filtering, filtering_schema
from toolwire.tools.globs import Globs, complaint
from toolwire.tools.ignore import NEVER_SEARCHED, rules_for
from toolwire.tools.paths import locate, shown
from toolwire.tools.protection import Protection
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import words
from toolwire.tools.walking import Walk, walk

NOTHING = "No files matching the criteria were found or all were skipped."
CUT_NOTE = (
    "[WARNING: This file was truncated. To view the full content, use the 'read_file' tool on "
    "this specific file.]\n\n"
)
_FOLDERS = (".vscode", ".idea", "dist", "build", "coverage", "__pycache__")
_ENDS = (
    "bin exe dll so dylib class jar war zip tar gz bz2 rar 7z doc docx xls xlsx ppt pptx odt ods "
    "odp pyc pyo"
)
DEFAULT_EXCLUDES = (
    *(f"**/{name}/**" for name in (*sorted(NEVER_SEARCHED), *_FOLDERS)),
    *(f"**/*.{end}" for end in _ENDS.split()),
    "**/.DS_Store",
    "**/.env",
    "**/GEMINI.md",
)


class ReadManyFiles(msgspec.Struct, frozen=True, rename={"default_excludes": "useDefaultExcludes"}):
    """Arguments of `read_many_files`."""

    paths: tuple[str, ...]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    recursive: bool = True
    default_excludes: bool = True
    file_filtering_options: Filtering = Filtering()


def _patterns(description: str, **more: object) -> JsonObject:
    items = {"type": "string", "minLength": 1}
    return {"type": "array", "items": items, **more, "description": description}


_PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "paths": _patterns(
            "Required. An array of glob patterns or paths relative to the tool's target "
            "directory. Examples: ['src/**/*.ts'], ['README.md', 'docs/']",
            minItems=1,
        ),
        "include": _patterns(
            "Optional. Additional glob patterns to include. These are merged with `paths`. "
            'Example: "*.test.ts" to specifically add test files if they were broadly excluded.',
            default=[],
        ),
        "exclude": _patterns(
            "Optional. Glob patterns for files/directories to exclude. Added to default excludes "
            'if useDefaultExcludes is true. Example: "**/*.log", "temp/"',
            default=[],
        ),
        "recursive": {
            "type": "boolean",
            "description": "Optional. Whether to search recursively (primarily controlled by `**` "
            "in glob patterns). Defaults to true.",
            "default": True,
        },
        "useDefaultExcludes": {
            "type": "boolean",
            "description": "Optional. Whether to apply a list of default exclusion patterns "
            "(e.g., node_modules, .git, binary files). Defaults to true.",
            "default": True,
        },
        "file_filtering_options": filtering_schema(
            "Whether to respect ignore patterns from .gitignore or .geminiignore"
        ),
    },
    "required": ["paths"],
}


def _check(arguments: JsonObject, context: ToolContext) -> str:
    del context
    try:
        args = msgspec.convert(arguments, ReadManyFiles)
    except msgspec.ValidationError:
        return ""
    return complaint((*args.paths, *args.include, *args.exclude))


def _touches(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    """The roots, and each file that is named: the policy rules on protected ones."""
    try:
        args = msgspec.convert(arguments, ReadManyFiles)
    except msgspec.ValidationError:
        return context.workspace.roots
    return (*context.workspace.roots, *map(Path, _named(args, context)))


def _named(args: ReadManyFiles, context: ToolContext) -> set[str]:
    """Files that are wanted by their own name, without a wildcard's help."""
    unwanted = _unwanted(args)
    found: set[str] = set()
    for root in context.workspace.roots:
        start = locate(root, context.workspace)
        if start is not None:
            literal, _ = _sorted_out((*args.paths, *args.include), root, start)
            wanted = (one for one in literal if not unwanted.matches(one))
            found |= {os.path.join(root, one) for one in wanted}  # noqa: PTH118 - text
    return {path for path in found if locate(path, context.workspace) is not None}


def _unwanted(args: ReadManyFiles) -> Globs:
    return Globs((*(DEFAULT_EXCLUDES if args.default_excludes else ()), *args.exclude))


async def _run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    try:
        args = msgspec.convert(arguments, ReadManyFiles)
    except msgspec.ValidationError as error:
        raise ToolFailed(str(error), type="invalid_tool_params") from error
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_read, args, context, stop.is_set)
    finally:
        stop.set()


def _read(args: ReadManyFiles, context: ToolContext, stopped: Callable[[], bool]) -> ToolOutput:
    parts: list[Text | Media] = []
    skipped: list[str] = []
    protection = Protection(context.workspace, context.environ)
    asked_for = _named(args, context)
    for path in sorted(_found(args, context, stopped)):
        if stopped():
            break
        content, reason = _content(path, args, context, None if path in asked_for else protection)
        if content is None:
            skipped.append(f"- `{shown(path, context.workspace)}` ({reason})")
        else:
            parts.append(_part(path, content))
    if not parts:
        return ToolOutput(text=NOTHING, display="\n".join([NOTHING, *skipped]))
    display = f"Read {len(parts)} file(s)."
    if skipped:
        display += "\nSkipped:\n" + "\n".join(skipped)
    return ToolOutput(
        text="Tool execution succeeded.",
        beside=(*parts, Text("\n--- End of content ---")),
        display=display,
    )


def _found(args: ReadManyFiles, context: ToolContext, stopped: Callable[[], bool]) -> set[str]:
    unwanted = _unwanted(args)
    filtering = args.file_filtering_options
    found: set[str] = set()
    for root in context.workspace.roots:
        start = locate(root, context.workspace)
        if start is None:
            continue
        wanted = _wanted((*args.paths, *args.include), root, start)
        plan = Walk(
            start=start,
            workspace=context.workspace,
            rules=rules_for(start, context.workspace),
            git=filtering.respect_git_ignore,
            own=filtering.respect_gemini_ignore,
            enters=wanted.enters,
            stopped=stopped,
            skipped=NEVER_SEARCHED if args.default_excludes else frozenset(),
        )
        found |= {
            os.path.join(root, file.path)  # noqa: PTH118 - text
            for file in walk(plan)
            if wanted.matches(file.path) and not file.ignored and not unwanted.matches(file.path)
        }
    return found


def _wanted(patterns: tuple[str, ...], root: Path, start: Path) -> Globs:
    literal, globs = _sorted_out(patterns, root, start)
    return Globs(globs, literal=literal)


def _sorted_out(patterns: Iterable[str], root: Path, start: Path) -> tuple[list[str], list[str]]:
    """Names of what exists, and patterns; both from the root."""
    literal: list[str] = []
    globs: list[str] = []
    for pattern in patterns:
        relative = pattern.replace("\\", "/")
        for base in (str(root), str(start)):
            relative = relative.removeprefix(f"{base}/")
        if relative.startswith("/") or "\0" in relative:
            continue
        (literal if os.path.lexists(start / relative) else globs).append(relative)
    return literal, globs


def _content(
    path: str, args: ReadManyFiles, context: ToolContext, protection: Protection | None
) -> tuple[Content | None, str]:
    found = locate(path, context.workspace)
    if found is None:
        return None, "leads out of the workspace"
    if protection is not None and (protection.hides(path) or protection.hides(found)):
        return None, "protected; name the file itself to be asked for it"
    if not _asked_for(path, args.paths):
        return None, "asset file (image/pdf) was not explicitly requested by name or extension"
    try:
        return read_content(found, path, context), ""
    except ToolFailed as error:
        return None, f"Read error: {error}"


def _asked_for(path: str, patterns: tuple[str, ...]) -> bool:
    """Pictures and PDFs are sent only if a pattern names them or their ending."""
    mime = mime_of(path)
    if not mime or media_kind(mime) not in (MediaKind.IMAGE, MediaKind.DOCUMENT):
        return True
    end, stem = Path(path).suffix.lower(), Path(path).stem
    return any(end in pattern.lower() or stem in pattern for pattern in patterns)


def _part(path: str, content: Content) -> Text | Media:
    if content.media is not None:
        return content.media
    lines = content.lines
    text = content.note if lines is None else lines.text
    cut = CUT_NOTE if lines is not None and lines.partial else ""
    return Text(f"--- {path} ---\n\n{cut}{text}\n\n")


TOOL = Tool(
    name="read_many_files",
    title="ReadManyFiles",
    description=words("read_many_files"),
    parameters=_PARAMETERS,
    effect=Effect.READ,
    run=_run,
    check=_check,
    touches=_touches,
)
