"""`write_file`: a new file, or new contents for one."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.files.edit import Edit, edit_output, edited_arguments, write_edit
from toolwire.tools.files.encodings import UTF8, line_end, with_line_end
from toolwire.tools.files.paths import locate, named
from toolwire.tools.files.text import read_document, refuse_if_changed
from toolwire.tools.proposals import Proposal
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words


class WriteFile(msgspec.Struct, frozen=True):
    """Arguments of `write_file`."""

    file_path: Annotated[
        str,
        msgspec.Meta(
            description="The absolute path to the file to write to (e.g., "
            "'/home/user/project/file.txt'). Relative paths are not supported."
        ),
    ]
    content: Annotated[str, msgspec.Meta(description="The content to write to the file.")]


def _check(arguments: JsonObject, context: ToolContext) -> str:
    given = str(arguments.get("file_path", ""))
    if not given:
        return 'Missing or empty "file_path"'
    if not os.path.isabs(given):  # noqa: PTH117 - a NUL is not an error here
        return f"File path must be absolute: {given}"
    found = locate(given, context.workspace)
    if found is None:
        directories = named(context.workspace)
        return f"File path must be within one of the workspace directories: {directories}"
    if os.path.isdir(found):  # noqa: PTH112 - a name too long is not an error here
        return f"Path is a directory, not a file: {given}"
    return ""


def _touches(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    given = str(arguments.get("file_path", ""))
    return (locate(given, context.workspace) or Path(given),) if given else ()


def planned(arguments: JsonObject, context: ToolContext) -> Edit:
    """What the call would make of the file."""
    complaint = _check(arguments, context)
    given, content = str(arguments["file_path"]), str(arguments["content"])
    path = locate(given, context.workspace)
    if complaint or path is None:
        raise ToolFailed(complaint, type="invalid_tool_params")
    try:
        old = read_document(path, context.workspace)
    except FileNotFoundError:
        return Edit(path=path, given=given, before="", after=content, encoding=UTF8, stamp="")
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ToolFailed(
            f"Error checking existing file: {reason}: {given}", type="file_write_failure"
        ) from error
    refuse_if_changed(context, path, old.stamp, old.digest)
    if "\r\n" not in content and line_end(old.text) == "\r\n":
        content = with_line_end(content, "\r\n")
    return Edit(
        path=path,
        given=given,
        before=old.text,
        after=content,
        encoding=old.encoding,
        stamp=old.stamp,
    )


def _preview(arguments: JsonObject, context: ToolContext) -> tuple[Proposal, ...]:
    return (planned(arguments, context).proposal,)


def _adopt(arguments: JsonObject, proposal: Proposal, content: str) -> JsonObject:
    return edited_arguments(arguments, proposal, content=content)


async def _run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    edit = await asyncio.to_thread(planned, arguments, context)
    await asyncio.to_thread(write_edit, edit, context)
    if edit.stamp:
        text = f"Successfully overwrote file: {edit.given}."
    else:
        text = f"Successfully created and wrote to new file: {edit.given}."
    if arguments.get("modified_by_user"):
        text += f" User modified the `content` to be: {arguments['content']}"
    return edit_output(edit, text, arguments)


@tool("write_file", Effect.WRITE, words("write_file"), title="WriteFile", check=_check)
async def _declared(args: WriteFile, context: ToolContext) -> ToolOutput:
    return await _run(msgspec.to_builtins(args), context)


TOOL = msgspec.structs.replace(
    _declared, run=_run, touches=_touches, preview=_preview, adopt=_adopt
)
