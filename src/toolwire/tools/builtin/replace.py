"""`replace`: one place in a file, found by its text."""

import asyncio
from bisect import bisect_left
from pkgutil import get_data
from typing import Annotated

import msgspec

from toolwire.collect import Collector
from toolwire.errors import ToolwireError
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.request import JsonObject, ModelRequest, OutputFormat
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
from toolwire.tools.files.text import Document, read_document, refuse_if_changed
from toolwire.tools.files.text_edits import Match, find, lines_of, nearest
from toolwire.tools.proposals import Proposal
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput, ToolSettings
from toolwire.tools.typed import schema_of, words

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "explanation": {"type": "string"},
        "search": {"type": "string"},
        "replace": {"type": "string"},
        "noChangesRequired": {"type": "boolean"},
    },
    "required": ["search", "replace", "explanation"],
}


class Correction(msgspec.Struct, frozen=True, rename="camel"):
    """What the model would search for and put in its place."""

    search: str
    replace: str
    explanation: str = ""
    no_changes_required: bool = False


class FailedEdit(msgspec.Struct, frozen=True, kw_only=True):
    """An edit, and why it did not fit."""

    instruction: str
    old: str
    new: str
    error: str
    text: str
    """The whole file."""


async def ask_correction(model: Model, edit: FailedEdit) -> Correction | None:
    """The model's correction; None if it gave none that can be read."""
    question = (
        f"# Instruction\n{edit.instruction}\n\n"
        f"# Failed search text\n<search>\n{edit.old}\n</search>\n\n"
        f"# Replacement\n<replace>\n{edit.new}\n</replace>\n\n"
        f"# Error\n{edit.error}\n\n"
        f"# The whole file\n<file>\n{edit.text}\n</file>\n"
    )
    request = ModelRequest(
        model="",
        messages=(Message(role="user", parts=(Text(question),)),),
        system=(Text((get_data("toolwire.tools.files", "correction.md") or b"").decode()),),
        temperature=0,
        output=OutputFormat(kind="json_schema", schema=_SCHEMA, name="correction"),
    )
    collector = Collector()
    try:
        async with reading(model(request)) as events:
            async for event in events:
                collector.add(event)
        answer = collector.message().text.strip().removeprefix("```json").removesuffix("```")
        return msgspec.json.decode(answer, type=Correction)
    except (ToolwireError, msgspec.MsgspecError):
        # The edit's own error helps the model more than a failed attempt to correct it.
        return None


_FILE = msgspec.Meta(description="The absolute path to the file to modify. Must start with '/'.")
_NEW = msgspec.Meta(
    description="The exact literal text to replace `old_string` with, preferably unescaped. "
    "Provide the EXACT text. Ensure the resulting code is correct and idiomatic."
)
_OLD = msgspec.Meta(description=words("replace.old_string"))


class Replace(msgspec.Struct, frozen=True):
    """Arguments of `replace`."""

    file_path: Annotated[str, _FILE]
    instruction: Annotated[str, msgspec.Meta(description=words("replace.instruction"))]
    old_string: Annotated[str, _OLD]
    new_string: Annotated[str, _NEW]


class PlainReplace(msgspec.Struct, frozen=True):
    """Arguments of the plain form."""

    file_path: Annotated[str, _FILE]
    old_string: Annotated[str, _OLD]
    new_string: Annotated[str, _NEW]
    expected_replacements: (
        Annotated[
            float,
            msgspec.Meta(
                ge=1,
                description="Number of replacements expected. Defaults to 1 if not specified. "
                "Use when you want to replace multiple occurrences.",
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class Mismatch(ToolFailed):
    """The text was not found as often as it should be: a corrected one may be."""


def _check(arguments: JsonObject, context: ToolContext) -> str:
    given = str(arguments.get("file_path", ""))
    if not given:
        return "The 'file_path' parameter must be non-empty."
    return path_complaint(given, context.workspace)


class _Planned(msgspec.Struct, frozen=True):
    edit: Edit
    count: int


def planned(arguments: JsonObject, context: ToolContext) -> _Planned:
    """What the call would make of the file; ToolFailed if it cannot be done."""
    given, old = str(arguments["file_path"]), str(arguments["old_string"])
    path = located(given, context.workspace)
    try:
        document = read_document(path, context.workspace, files=context.files)
    except (FileNotFoundError, NotADirectoryError):
        if old:
            raise ToolFailed(f"File not found: {given}", type="file_not_found") from None
        return _Planned(edit_of(path, given, None, str(arguments["new_string"])), 1)
    except OSError as error:
        raise ToolFailed(
            f"Error preparing edit: {error.strerror}: {given}", type="edit_preparation_failure"
        ) from error
    if not old:
        raise ToolFailed(
            f"File already exists, cannot create: {given}",
            type="attempt_to_create_existing_file",
        )
    refuse_if_changed(context, path, document.stamp, document.digest)
    plain = context.settings.plain_edit or "instruction" not in arguments
    after, count = _replaced(document, arguments, plain=plain)
    return _Planned(edit_of(path, given, document, after), count)


def _replaced(document: Document, arguments: JsonObject, *, plain: bool) -> tuple[str, int]:
    text = document.text.replace("\r\n", "\n")
    old = str(arguments["old_string"]).replace("\r\n", "\n")
    new = str(arguments["new_string"]).replace("\r\n", "\n")
    expected = int(arguments.get("expected_replacements") or 1) if plain else 1
    matches = find(text, old, new)
    if len(matches) != expected:
        raise _mismatch(text, arguments, matches, expected, plain=plain)
    if old == new:
        given = arguments["file_path"]
        raise Mismatch(
            f"No changes to apply. The old_string and new_string are identical in file: {given}",
            type="edit_no_change",
        )
    after = _spliced(document.text, matches)
    return (after if plain else _same_last_end(document.text, after)), len(matches)


def _spliced(text: str, matches: list[Match]) -> str:
    """Put new text at places found in the text with plain newlines; the rest stays as it is."""
    ends = [position - number for number, position in enumerate(_pairs(text))]
    pieces: list[str] = []
    done = 0
    for match in matches:
        start = match.start + bisect_left(ends, match.start)
        end = match.end + bisect_left(ends, match.end)
        replaced = text[start:end]
        style = line_end(replaced if "\n" in replaced else text)
        pieces += (text[done:start], with_line_end(match.new, style))
        done = end
    return "".join((*pieces, text[done:]))


def _pairs(text: str) -> list[int]:
    found: list[int] = []
    position = text.find("\r\n")
    while position >= 0:
        found.append(position)
        position = text.find("\r\n", position + 2)
    return found


def _same_last_end(before: str, after: str) -> str:
    """A file goes on ending with a newline, or without one."""
    if before.endswith("\n") and not after.endswith("\n"):
        return after + line_end(before)
    if not before.endswith("\n") and after.endswith("\n"):
        return after.removesuffix("\n").removesuffix("\r")
    return after


def _mismatch(
    text: str, arguments: JsonObject, matches: list[Match], expected: int, *, plain: bool
) -> Mismatch:
    given, old = arguments["file_path"], str(arguments["old_string"])
    if matches:
        noun = "occurrence" if expected == 1 else "occurrences"
        lines = ", ".join(map(str, lines_of(text, matches)[:20]))
        return Mismatch(
            f"Failed to edit, Expected {expected} {noun} but found {len(matches)} "
            f"for old_string in file: {given}\n"
            f"It is found at lines {lines}. Add lines around the one that is meant.",
            type="edit_expected_occurrence_mismatch",
        )
    plain_old = old.replace("\r\n", "\n")
    original = "" if plain else f" ({plain_old}). Original old_string was ({old})"
    near = nearest(text, plain_old)
    return Mismatch(
        f"Failed to edit, 0 occurrences found for old_string{original} in {given}. No edits made. "
        "The exact text in old_string was not found. Ensure you're not escaping content "
        "incorrectly and check whitespace, indentation, and context. Use read_file tool to verify."
        + (f"\n{near}" if near else ""),
        type="edit_no_occurrence_found",
    )


def _preview(arguments: JsonObject, context: ToolContext) -> tuple[Proposal, ...]:
    try:
        return (planned(arguments, context).edit.proposal,)
    except Mismatch:
        if _corrects(context):
            # Only the model knows what it will be.
            return ()
        raise


def _adopt(arguments: JsonObject, proposal: Proposal, content: str) -> JsonObject:
    # The whole file is now the text to replace, and that is there once.
    once = {key: value for key, value in arguments.items() if key != "expected_replacements"}
    return edited_arguments(once, proposal, old_string=proposal.before, new_string=content)


def _corrects(context: ToolContext) -> bool:
    return context.model is not None and context.settings.edit_correction


async def _corrected(arguments: JsonObject, context: ToolContext, failure: Mismatch) -> _Planned:
    """The edit as the model corrects it, or the first failure again."""
    path = located(str(arguments["file_path"]), context.workspace)
    if context.model is None:
        raise failure
    document = await asyncio.to_thread(read_document, path, context.workspace, files=context.files)
    failed = FailedEdit(
        instruction=str(arguments.get("instruction", "")),
        old=str(arguments["old_string"]),
        new=str(arguments["new_string"]),
        error=str(failure),
        text=document.text.replace("\r\n", "\n"),
    )
    correction = await ask_correction(context.model, failed)
    if correction is None:
        raise failure
    if correction.no_changes_required:
        raise ToolFailed(
            "A secondary check determined that no changes were necessary to fulfill the "
            f"instruction. Explanation: {correction.explanation}. "
            f"Original error with the parameters given: {failure}",
            type="edit_no_change_llm_judgement",
        )
    again = {**arguments, "old_string": correction.search, "new_string": correction.replace}
    try:
        return await asyncio.to_thread(planned, again, context)
    except Mismatch:
        raise failure from None


async def _run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
    try:
        plan = await asyncio.to_thread(planned, arguments, context)
    except Mismatch as failure:
        if not _corrects(context):
            raise
        plan = await _corrected(arguments, context, failure)
    await asyncio.to_thread(write_edit, plan.edit, context)
    given = plan.edit.given
    if plan.edit.stamp:
        text = f"Successfully modified file: {given} ({plan.count} replacements)."
    else:
        text = f"Created new file: {given} with provided content."
    if arguments.get("modified_by_user"):
        text += f" User modified the `new_string` content to be: {arguments['new_string']}."
    return edit_output(plan.edit, text, arguments)


# The user's changes are passed as arguments that are not in the schema.
TOOL = Tool(
    name="replace",
    title="Edit",
    description=words("replace"),
    parameters=schema_of(Replace),
    effect=Effect.WRITE,
    run=_run,
    check=_check,
    touches=touching("file_path"),
    preview=_preview,
    adopt=_adopt,
    aliases=("smart_edit",),
)
PLAIN = msgspec.structs.replace(
    TOOL, description=words("replace.plain"), parameters=schema_of(PlainReplace)
)


def tool_for(settings: ToolSettings) -> Tool:
    """The form that the settings select."""
    return PLAIN if settings.plain_edit else TOOL
