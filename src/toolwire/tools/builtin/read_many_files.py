"""`read_many_files`: the contents of all files that fit some patterns."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from toolwire.messages import Media, MediaKind, Text
from toolwire.request import JsonObject
from toolwire.tools.files.contents import Content, media_kind, mime_of, read_content
from toolwire.tools.files.paths import locate, shown
from toolwire.tools.files.protection import Hidden, LeftOut, Visibility
from toolwire.tools.search.globs import Globs, complaint
from toolwire.tools.search.ignore import NEVER_SEARCHED, Filtering, filtering_schema, rules_for
from toolwire.tools.search.walk import Walk, walk
from toolwire.tools.spec import (
    MOST_MEDIA,
    Effect,
    Tool,
    ToolContext,
    ToolFailed,
    ToolOutput,
)
from toolwire.tools.typed import words

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
    """Files that are requested by name, without a wildcard."""
    excluded = _excluded(args)
    found: set[str] = set()
    for root in context.workspace.roots:
        start = locate(root, context.workspace)
        if start is not None:
            literal, _ = _sorted_out((*args.paths, *args.include), root, start)
            included = (one for one in literal if not excluded.matches(one))
            found |= {os.path.join(root, one) for one in included}  # noqa: PTH118 - text
    return {path for path in found if locate(path, context.workspace) is not None}


def _excluded(args: ReadManyFiles) -> Globs:
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
    reading = _Reading(args, context)
    for path in sorted(_found(args, context, stopped)):
        if stopped():
            break
        reading.add(path)
    return reading.output()


class _Reading:
    """The files one after the other, until a model has been given enough."""

    def __init__(self, args: ReadManyFiles, context: ToolContext) -> None:
        self._args = args
        self._context = context
        self._visibility = Visibility(context, "read_many_files")
        self._named = _named(args, context)
        self._limit = context.settings.output_limit
        self._room = self._limit if self._limit > 0 else sys.maxsize
        self._media_room = MOST_MEDIA
        self._parts: list[Text | Media] = []
        self._skipped: list[str] = []
        self._left_out = LeftOut()
        self._unread = 0

    def add(self, path: str) -> None:
        """Put a file in, or note why it is not."""
        if self._room <= 0:
            self._unread += 1
            return
        try:
            content, reason = self._content(path)
            if content is not None:
                self._take(_part(path, content), path)
        except _NoRoom as error:
            reason = str(error)
        if reason:
            self._skipped.append(f"- `{shown(path, self._context.workspace)}` ({reason})")

    def _content(self, path: str) -> tuple[Content | None, str]:
        found = locate(path, self._context.workspace)
        if found is None:
            return None, "leads out of the workspace"
        named = path in self._named
        hidden = self._visibility.hides(path, named=named)
        hidden = hidden or self._visibility.hides(found, named=named)
        if self._left_out.add(hidden, shown(path, self._context.workspace)):
            return None, _REASONS[hidden]
        if not _asked_for(path, self._args.paths):
            return None, "asset file (image/pdf) was not explicitly requested by name or extension"
        try:
            return read_content(found, path, self._context), ""
        except ToolFailed as error:
            return None, f"Read error: {error}"

    def _take(self, part: Text | Media, path: str) -> None:
        if isinstance(part, Media):
            self._media_room -= len(part.base64)
            if self._media_room < 0:
                raise _NoRoom("more media than fits in one result; name it by itself")
        elif len(part.text) <= self._room:
            self._room -= len(part.text)
        else:
            start = len(path) + _HEADING
            part = Text(
                part.text[:start]
                + CUT_NOTE
                + part.text[start : max(self._room - len(CUT_NOTE), start)]
            )
            self._room = 0
        self._parts.append(part)

    def output(self) -> ToolOutput:
        """All that was read, and what was not."""
        notes = [self._left_out.line()]
        if self._unread:
            notes.append(
                f"{self._unread} more files were not read: the contents exceed {self._limit:,} "
                "characters. Name fewer files, or use read_file."
            )
        note = "\n".join(filter(None, notes))
        skipped = self._skipped[:_MOST_SKIPPED]
        if len(self._skipped) > len(skipped):
            skipped.append(f"- and {len(self._skipped) - len(skipped)} more")
        if not self._parts:
            text = f"{NOTHING}\n{note}" if note else NOTHING
            return ToolOutput(text=text, display="\n".join([NOTHING, *skipped]))
        display = f"Read {len(self._parts)} file(s)."
        if skipped:
            display += "\nSkipped:\n" + "\n".join(skipped)
        return ToolOutput(
            text="Tool execution succeeded." + (f"\n{note}" if note else ""),
            beside=(*self._parts, Text("\n--- End of content ---")),
            display=display,
        )


class _NoRoom(Exception):
    """A file that is left out because the result is full."""


_REASONS = {
    Hidden.PROTECTED: "protected; name the file itself to be asked for it",
    Hidden.DENIED: "denied by a rule",
    Hidden.ASKED: "a rule asks about it; name the file itself to be asked for it",
}
_MOST_SKIPPED = 100
_HEADING = len("---  ---\n\n")


def _found(args: ReadManyFiles, context: ToolContext, stopped: Callable[[], bool]) -> set[str]:
    excluded = _excluded(args)
    filtering = args.file_filtering_options
    found: set[str] = set()
    for root in context.workspace.roots:
        start = locate(root, context.workspace)
        if start is None:
            continue
        literal, globs = _sorted_out((*args.paths, *args.include), root, start)
        included = Globs(globs, literal=literal)
        plan = Walk(
            start=start,
            workspace=context.workspace,
            rules=rules_for(start, context.workspace),
            git=filtering.respect_git_ignore,
            own=filtering.respect_gemini_ignore,
            enters=included.enters,
            stopped=stopped,
            skipped=NEVER_SEARCHED if args.default_excludes else frozenset(),
        )
        found |= {
            os.path.join(root, file.path)  # noqa: PTH118 - text
            for file in walk(plan)
            if included.matches(file.path) and not file.ignored and not excluded.matches(file.path)
        }
    return found


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
