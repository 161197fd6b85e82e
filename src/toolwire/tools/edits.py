"""One file's change, from plan to disk."""

import difflib
import os
import re
from pathlib import Path

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.atomic import write_new, write_over
from toolwire.tools.encodings import Encoding, printable
from toolwire.tools.spec import DiffStat, Proposal, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.textfiles import digest_of, encoded, remember

_AROUND = 3
_MOST_COMPARED = 100_000_000


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds, and what it shall hold."""

    path: Path
    given: str
    """The path as the model wrote it."""
    before: str
    after: str
    encoding: Encoding
    stamp: str
    """Of the file that was read; empty for a new one."""
    like: os.stat_result | None = None
    """The file whose mode a new one gets: it was moved, or comes back."""

    @property
    def proposal(self) -> Proposal:
        """As a person is shown it."""
        return Proposal(
            path=self.path,
            before=printable(self.before),
            after=printable(self.after),
            new_file=not self.stamp,
        )


def write_edit(edit: Edit, context: ToolContext) -> None:
    """Put the new text in place in one step; the model knows the file from then on."""
    data = encoded(edit.after, edit.encoding, edit.path)
    try:
        if edit.stamp:
            stamp = write_over(edit.path, data, context.workspace, edit.stamp)
        else:
            stamp = write_new(edit.path, data, context.workspace, edit.like)
    except OSError as error:
        raise _failure(edit.given, error) from error
    remember(context, edit.path, stamp, digest_of(data))


def _failure(given: str, error: OSError) -> ToolFailed:
    match error:
        case FileExistsError():
            return ToolFailed(
                f"File was made by another program in the meantime: {given}. No edits made. "
                "Use read_file to see what it holds, then try again.",
                type="file_changed",
            )
        case PermissionError():
            return ToolFailed(
                f"Permission denied writing to file: {given} (EACCES)", type="permission_denied"
            )
        case OSError(errno=28):
            return ToolFailed(f"No space left on device: {given} (ENOSPC)", type="no_space_left")
        case IsADirectoryError():
            return ToolFailed(
                f"Target is a directory, not a file: {given} (EISDIR)", type="target_is_directory"
            )
        case _:
            reason = error.strerror or str(error)
            return ToolFailed(
                f"Error writing to file: {given}: {reason}", type="file_write_failure"
            )


def edit_output(edit: Edit, text: str, arguments: JsonObject) -> ToolOutput:
    """The result of a written edit, with its diff for people."""
    proposal = edit.proposal
    return ToolOutput(
        text=text,
        display=text.split(" User modified the ")[0],
        diff=diff_of(proposal.before, proposal.after, edit.path.name),
        stat=stat_of(proposal.before, proposal.after, arguments.get("ai_proposed_content")),
    )


def edited_arguments(arguments: JsonObject, proposal: Proposal, **changed: str) -> JsonObject:
    """The call as the person changed it; what the model proposed is kept for the count."""
    proposed = arguments.get("ai_proposed_content", proposal.after)
    return {
        **arguments,
        **changed,
        "ai_proposed_content": proposed,
        "modified_by_user": True,
    }


def diff_of(before: str, after: str, name: str) -> str:
    """A unified diff for the screen."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    same = _same_start(old, new)
    # The matcher is slow on long files, and most of a file stays as it is.
    skipped = max(same - _AROUND, 0)
    changed = _unequal(old, new, skipped)
    if _is_too_much(*changed):
        removed, added = (len(each) for each in changed)
        return (
            f"--- {name} (before)\n+++ {name} (now)\n@@ about {removed:,} lines become "
            f"{added:,}: too many to compare @@\n"
        )
    lines = difflib.unified_diff(*changed, f"{name} (before)", f"{name} (now)", n=_AROUND)
    moved = (_moved(line, skipped) if line.startswith("@@ ") else line for line in lines)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in moved)


def _same_start(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(old), len(new)))


def _unequal(old: list[str], new: list[str], skipped: int) -> tuple[list[str], list[str]]:
    """Both without the lines skipped at the start and those that are equal at the end."""
    old, new = old[skipped:], new[skipped:]
    tail = max(_same_start(old[::-1], new[::-1]) - _AROUND, 0)
    return (old[:-tail], new[:-tail]) if tail else (old, new)


def _is_too_much(old: list[str], new: list[str]) -> bool:
    """Whether a comparison would take longer than anybody waits: its cost grows with both."""
    return len(old) * len(new) > _MOST_COMPARED


def _moved(header: str, by: int) -> str:
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + by}", header, count=2)


def stat_of(before: str, after: str, proposed: object = None) -> DiffStat:
    """Lines changed; where the person changed the model's text, theirs are told apart."""
    if not isinstance(proposed, str):
        added, removed = _counted(before, after)
        return DiffStat(model_added=added, model_removed=removed)
    added, removed = _counted(before, proposed)
    user_added, user_removed = _counted(proposed, after)
    return DiffStat(
        model_added=added,
        model_removed=removed,
        user_added=user_added,
        user_removed=user_removed,
    )


def _counted(before: str, after: str) -> tuple[int, int]:
    added = removed = 0
    old, new = before.splitlines(), after.splitlines()
    same = _same_start(old, new)
    changed = _unequal(old, new, same)
    if _is_too_much(*changed):
        return len(changed[1]), len(changed[0])
    for line in difflib.unified_diff(*changed, n=0, lineterm=""):
        added += line.startswith("+") and not line.startswith("+++ ")
        removed += line.startswith("-") and not line.startswith("--- ")
    return added, removed
