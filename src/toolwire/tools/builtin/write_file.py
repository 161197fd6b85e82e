"""`write_file`: a new file, or new contents for one."""

import asyncio
import os
from typing import Annotated

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.files.edit import (
    Edit,
    edit_of,
    edit_output,
    edited_arguments,
    path_complaint,
    write_edit,
)
from toolwire.tools.files.encodings import line_end, with_line_end
from toolwire.tools.files.paths import located, touching
from toolwire.tools.files.text import read_document, refuse_if_changed
from toolwire.tools.proposals import Proposal
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import schema_of, words


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
    wrong = path_complaint(given, context.workspace)
    if not wrong and os.path.isdir(given):  # noqa: PTH112 - a name too long is not an error here
        return f"Path is a directory, not a file: {given}"
    return wrong


def planned(arguments: JsonObject, context: ToolContext) -> Edit:
    """What the call would make of the file."""
    given, content = str(arguments["file_path"]), str(arguments["content"])
    path = located(given, context.workspace)
    try:
        old = read_document(path, context.workspace, files=context.files)
    except FileNotFoundError:
        return edit_of(path, given, None, content)
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ToolFailed(
            f"Error checking existing file: {reason}: {given}", type="file_write_failure"
        ) from error
    refuse_if_changed(context, path, old.stamp, old.digest)
    if "\r\n" not in content and line_end(old.text) == "\r\n":
        content = with_line_end(content, "\r\n")
    return edit_of(path, given, old, content)


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


# The user's changes are passed as arguments that are not in the schema.
TOOL = Tool(
    name="write_file",
    title="WriteFile",
    description=words("write_file"),
    parameters=schema_of(WriteFile),
    effect=Effect.WRITE,
    run=_run,
    check=_check,
    touches=touching("file_path"),
    preview=_preview,
    adopt=_adopt,
)
