"""`apply_patch`: one patch over several files, all of it or nothing."""

import asyncio
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from toolwire.errors import BadInput
from toolwire.request import JsonObject
from toolwire.tools.files.edit import (
    Edit,
    delete_file,
    diff_of,
    edit_of,
    stat_of,
    write_edit,
)
from toolwire.tools.files.encodings import line_end, with_line_end
from toolwire.tools.files.paths import locate, located, named
from toolwire.tools.files.text import Document, read_document, refuse_if_changed
from toolwire.tools.files.text_edits import Kind, Section, apply, parse_patch
from toolwire.tools.proposals import DiffStat, Proposal
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words


class ApplyPatch(msgspec.Struct, frozen=True):
    """Arguments of `apply_patch`."""

    input: Annotated[
        str,
        msgspec.Meta(
            description='The whole patch, from "*** Begin Patch" to "*** End Patch".',
        ),
    ]


class _Change(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to one path: text written, or the file taken away."""

    edit: Edit
    deletes: bool = False


def _check(arguments: JsonObject, context: ToolContext) -> str:
    try:
        sections = parse_patch(str(arguments.get("input", "")))
    except BadInput as error:
        return str(error)
    for name in _names(sections):
        if locate(_absolute(name, context), context.workspace) is None:
            directories = named(context.workspace)
            return f"{name} must be within one of the workspace directories: {directories}"
    return ""


def _names(sections: tuple[Section, ...]) -> list[str]:
    return [name for one in sections for name in (one.path, one.move_to) if name]


def _absolute(name: str, context: ToolContext) -> Path:
    return context.workspace.roots[0] / name


def _touches(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    paths = (_absolute(name, context) for name in _names(parse_patch(str(arguments["input"]))))
    return tuple(locate(path, context.workspace) or path for path in paths)


def _preview(arguments: JsonObject, context: ToolContext) -> tuple[Proposal, ...]:
    return tuple(change.edit.proposal for change in _planned(str(arguments["input"]), context))


@tool(
    "apply_patch",
    Effect.WRITE,
    words("apply_patch"),
    title="ApplyPatch",
    check=_check,
    touches=_touches,
    preview=_preview,
)
async def apply_patch(args: ApplyPatch, context: ToolContext) -> ToolOutput:
    """Plan every change first, then make them all."""
    changes = await asyncio.to_thread(_planned, args.input, context)
    await asyncio.to_thread(_made, changes, context)
    text = "\n".join(("Success. Changed these files:", *map(_line, changes)))
    proposals = [change.edit.proposal for change in changes]
    return ToolOutput(
        text=text,
        display=text,
        diff="".join(diff_of(one.before, one.after, one.path.name) for one in proposals),
        stat=_added_up(proposals),
    )


def _line(change: _Change) -> str:
    mark = "D" if change.deletes else "M" if change.edit.stamp else "A"
    return f"{mark} {change.edit.given}"


def _added_up(proposals: list[Proposal]) -> DiffStat:
    stats = [stat_of(one.before, one.after) for one in proposals]
    return DiffStat(
        model_added=sum(one.model_added for one in stats),
        model_removed=sum(one.model_removed for one in stats),
    )


def _planned(patch: str, context: ToolContext) -> list[_Change]:
    try:
        sections = parse_patch(patch)
    except BadInput as error:
        raise ToolFailed(str(error), type="invalid_tool_params") from error
    return [change for section in sections for change in _changes(section, context)]


def _changes(section: Section, context: ToolContext) -> list[_Change]:
    path = located(_absolute(section.path, context), context.workspace)
    if section.kind is Kind.ADD:
        if path.exists():
            raise ToolFailed(
                f"{section.path} exists already; update it instead. No file was changed.",
                type="attempt_to_create_existing_file",
            )
        return [_Change(edit=edit_of(path, section.path, None, section.text))]
    old = _read(path, section.path, context)
    refuse_if_changed(context, path, old.stamp, old.digest)
    like = _status(path)
    gone = _Change(edit=edit_of(path, section.path, old, "", like), deletes=True)
    if section.kind is Kind.DELETE:
        return [gone]
    edit = edit_of(path, section.path, old, _patched(old.text, section), like)
    if not section.move_to:
        return [_Change(edit=edit)]
    target = located(_absolute(section.move_to, context), context.workspace)
    if target.exists():
        raise ToolFailed(
            f"{section.move_to} exists already; nothing is moved over it. No file was changed.",
            type="attempt_to_create_existing_file",
        )
    moved = msgspec.structs.replace(edit, path=target, given=section.move_to, before="", stamp="")
    return [_Change(edit=moved), gone]


def _patched(text: str, section: Section) -> str:
    """The text after the hunks; line ends stay as they are."""
    end = line_end(text)
    plain = with_line_end(text, "\n")
    uniform = with_line_end(plain, end) == text
    try:
        after = apply(plain if uniform else text, section.hunks, section.path)
    except BadInput as error:
        raise ToolFailed(f"{error}\nNo file was changed.", type="edit_no_occurrence") from error
    return with_line_end(after, end) if uniform else after


def _read(path: Path, given: str, context: ToolContext) -> Document:
    try:
        return read_document(path, context.workspace, files=context.files)
    except FileNotFoundError as error:
        raise ToolFailed(
            f"File not found: {given}. No file was changed.", type="file_not_found"
        ) from error
    except OSError as error:
        raise ToolFailed(
            f"{given} cannot be read: {error.strerror}. No file was changed.", type="read_failure"
        ) from error


def _status(path: Path) -> os.stat_result | None:
    with suppress(OSError):
        found = path.lstat()
        return found if stat.S_ISREG(found.st_mode) else None
    return None


def _made(changes: list[_Change], context: ToolContext) -> None:
    """Write first and delete last; when one fails, those before it are taken back."""
    done: list[_Change] = []
    try:
        for change in sorted(changes, key=lambda change: change.deletes):
            if change.deletes:
                delete_file(change.edit, context)
            else:
                write_edit(change.edit, context)
            done.append(change)
    except ToolFailed as failure:
        kept = [one.edit.given for one in reversed(done) if not _taken_back(one, context)]
        state = f"These files keep the change: {', '.join(kept)}" if kept else "No file was changed"
        raise ToolFailed(f"{failure}\n{state}.", type=failure.type) from failure


def _taken_back(change: _Change, context: ToolContext) -> bool:
    edit = change.edit
    stamp = context.seen.get(str(edit.path), "").partition(" ")[0]
    with suppress(ToolFailed):
        if not edit.stamp:
            delete_file(edit, context)
        else:
            now = "" if change.deletes else stamp
            back = msgspec.structs.replace(edit, before=edit.after, after=edit.before, stamp=now)
            write_edit(back, context)
        return True
    return False


TOOL = apply_patch
