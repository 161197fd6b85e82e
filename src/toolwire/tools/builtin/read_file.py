"""`read_file`: a text file or a part of one, a picture, a sound, a film or a PDF."""

import asyncio
import os
from typing import Annotated

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.files.contents import Content, read_content
from toolwire.tools.files.paths import locate, located, named, shown, touching
from toolwire.tools.search.ignore import rules_for
from toolwire.tools.spec import Effect, ToolContext, ToolOutput
from toolwire.tools.typed import tool, words


class ReadFile(msgspec.Struct, frozen=True):
    """Arguments of `read_file`."""

    absolute_path: Annotated[
        str,
        msgspec.Meta(
            description="The absolute path to the file to read (e.g., "
            "'/home/user/project/file.txt'). Relative paths are not supported. You must provide an "
            "absolute path."
        ),
    ]
    offset: (
        Annotated[
            float,
            msgspec.Meta(
                description="Optional: For text files, the 0-based line number to start reading "
                "from. Requires 'limit' to be set. Use for paginating through large files."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET
    limit: (
        Annotated[
            float,
            msgspec.Meta(
                description="Optional: For text files, maximum number of lines to read. Use with "
                "'offset' to paginate through large files. If omitted, reads the entire file (if "
                "feasible, up to a default limit)."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


def _check(arguments: JsonObject, context: ToolContext) -> str:
    given = str(arguments.get("absolute_path", ""))
    if not given.strip():
        return "The 'absolute_path' parameter must be non-empty."
    if not os.path.isabs(given):  # noqa: PTH117 - a NUL is not an error here
        return (
            f"File path must be absolute, but was relative: {given}. "
            "You must provide an absolute path."
        )
    workspace = context.workspace
    found = locate(given, workspace, temp=True)
    if found is None:
        return (
            f"File path must be within one of the workspace directories: {named(workspace)} "
            f"or within the project temp directory: {workspace.temp}"
        )
    if arguments.get("offset", 0) < 0:
        return "Offset must be a non-negative number"
    if arguments.get("limit", 1) <= 0:
        return "Limit must be a positive number"
    if locate(given, workspace) is not None:
        rules = rules_for(found, workspace)
        if rules.ignored(found, git=False):
            file = rules.own_file_for(found)
            return f"File path '{given}' is ignored by {file} pattern(s)."
    return ""


@tool(
    "read_file",
    Effect.READ,
    words("read_file"),
    title="ReadFile",
    check=_check,
    touches=touching("absolute_path", temp=True),
)
async def read_file(args: ReadFile, context: ToolContext) -> ToolOutput:
    """Read on a thread, so that a slow disk blocks no other task."""
    path = located(args.absolute_path, context.workspace, temp=True)
    offset = 0 if isinstance(args.offset, msgspec.UnsetType) else int(args.offset)
    limit = None if isinstance(args.limit, msgspec.UnsetType) else max(int(args.limit), 1)
    content = await asyncio.to_thread(
        read_content, path, args.absolute_path, context, offset, limit
    )
    return _output(content, offset, shown(args.absolute_path, context.workspace))


def _output(content: Content, offset: int, name: str) -> ToolOutput:
    if content.media is not None:
        mime = content.media.mime
        return ToolOutput(
            text=f"Binary content of type {mime} was processed.",
            media=(content.media,),
            display=f"Read {content.media.kind} file: {name}",
        )
    lines = content.lines
    if lines is None:
        return ToolOutput(text=content.note)
    if not lines.partial:
        return ToolOutput(text=lines.text, display=f"Read all {lines.total} lines of {name}")
    first = lines.first + 1
    following = offset + lines.end - first + 1 if offset else lines.end
    text = (
        "\nIMPORTANT: The file content has been truncated.\n"
        f"Status: Showing lines {first}-{lines.end} of {lines.total} total lines.\n"
        "Action: To read more of the file, you can use the 'offset' and 'limit' parameters in a "
        "subsequent 'read_file' call. For example, to read the next section of the file, use "
        f"offset: {following}.\n\n--- FILE CONTENT (truncated) ---\n{lines.text}"
    )
    cut = " (some lines were shortened)" if lines.cut else ""
    display = f"Read lines {first}-{lines.end} of {lines.total} from {name}{cut}"
    return ToolOutput(text=text, display=display)


TOOL = read_file
