"""One file's change, from plan to disk."""

import difflib
import errno
import os
import re
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from toolwire.platform import (
    FILE,
    access_at,
    keep_attributes,
    link_at,
    open_at,
    replace_at,
    stat_at,
    sync_folder,
    unlink_at,
)
from toolwire.request import JsonObject
from toolwire.tools.files.encodings import UTF8, Encoding, printable, with_line_end
from toolwire.tools.files.paths import locate, named, parent
from toolwire.tools.files.text import HELD, Document, digest_of, encoded, remember, stamp_of
from toolwire.tools.proposals import DiffStat, Proposal
from toolwire.tools.spec import EditorFiles, ToolContext, ToolFailed, ToolOutput, Workspace

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | FILE


def write_new(
    path: Path, data: bytes, workspace: Workspace, like: os.stat_result | None = None
) -> str:
    """Make a file and the directories above it; gives its stamp. FileExistsError if it exists.

    `like` is the file it comes from: its mode and owner are preserved.
    """
    with parent(path, workspace, create=True) as (folder, name):
        written = _Written(folder, name, data, like)
        try:
            _name_new(written.temporary, name, folder)
        finally:
            written.discard()
        sync_folder(folder)
        return written.stamp


def _name_new(temporary: str, name: str, folder: int) -> None:
    try:
        # Unlike a rename, a link never replaces a file that was created meanwhile.
        link_at(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        # This file system has no hard links: keep the name with an empty file first.
        os.close(open_at(name, _NEW, 0o666, dir_fd=folder))
        replace_at(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def write_over(path: Path, data: bytes, workspace: Workspace, stamp: str) -> str:
    """Replace a file that still has this stamp; mode, owner and attributes are preserved.

    The path has no links, so a link that led here goes on leading here. Other hard links keep the
    old contents: they may be outside the workspace, and nothing there is written.
    """
    with parent(path, workspace) as (folder, name):
        before = stat_at(name, dir_fd=folder, follow_symlinks=False)
        if not access_at(name, os.W_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        written = _Written(folder, name, data, before)
        try:
            now = stat_at(name, dir_fd=folder, follow_symlinks=False)
            if stamp_of(now) != stamp:
                raise _changed(path)
            replace_at(written.temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            written.discard()
            raise
        sync_folder(folder)
        return written.stamp


class _Written:
    """The new contents on disk, under a temporary name."""

    def __init__(self, folder: int, name: str, data: bytes, like: os.stat_result | None) -> None:
        self._folder = folder
        path = Path(name)
        # A name at its full length leaves no room for ours.
        self.temporary = str(path.with_name(f".{path.name[:40]}.{os.urandom(6).hex()}.tmp"))
        # The file is private until it has its final mode.
        mode = 0o666 if like is None else 0o600
        handle = open_at(self.temporary, _NEW, mode, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                if like is not None:
                    keep_attributes(file.fileno(), name, folder, like)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                self.stamp = stamp_of(os.fstat(file.fileno()))
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Unlink the name; the file itself stays if it has another one by now."""
        with suppress(FileNotFoundError):
            unlink_at(self.temporary, dir_fd=self._folder)


_AROUND = 3
_MOST_COMPARED = 100_000_000


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """The current and the new contents of a file."""

    path: Path
    given: str
    """The path as the model wrote it."""
    before: str
    after: str
    encoding: Encoding
    stamp: str
    """Of the file that was read; empty for a new one."""
    like: os.stat_result | None = None
    """The file whose mode the new one gets: it was moved or is restored."""

    @property
    def proposal(self) -> Proposal:
        """As shown to the user."""
        return Proposal(
            path=self.path,
            before=printable(self.before),
            after=printable(self.after),
            new_file=not self.stamp,
        )


def edit_of(
    path: Path, given: str, old: Document | None, after: str, like: os.stat_result | None = None
) -> Edit:
    """The change of a file's text; without an old document, a new file."""
    return Edit(
        path=path,
        given=given,
        before=old.text if old else "",
        after=after,
        encoding=old.encoding if old else UTF8,
        stamp=old.stamp if old else "",
        like=like,
    )


def path_complaint(given: str, workspace: Workspace) -> str:
    """Error in the path of an edit; empty if it is valid."""
    if not os.path.isabs(given):  # noqa: PTH117 - a NUL is not an error here
        return f"File path must be absolute: {given}"
    if locate(given, workspace) is None:
        return f"File path must be within one of the workspace directories: {named(workspace)}"
    return ""


def write_edit(edit: Edit, context: ToolContext) -> None:
    """Write the new text through the editor that holds the file, else atomically to the disk; the
    file then counts as seen by the model.
    """
    stamp, _, held = edit.stamp.partition(HELD)
    data = encoded(edit.after, edit.encoding, edit.path)
    if context.changing is not None:
        mode = -1 if edit.like is None else stat.S_IMODE(edit.like.st_mode)
        context.changing(edit.path, data, mode, context.call_id)
    try:
        if context.files is not None and _write_held(edit, context, context.files, held):
            return
        if stamp:
            stamp = write_over(edit.path, data, context.workspace, stamp)
        else:
            stamp = write_new(edit.path, data, context.workspace, edit.like)
    except OSError as error:
        raise _failure(edit.given, error) from error
    remember(context, edit.path, stamp, digest_of(data))


def _write_held(edit: Edit, context: ToolContext, files: EditorFiles, held: str) -> bool:
    """Write through the editor; False where the disk counts. `held` is the text that was read."""
    now = _held(files, edit.path)
    if held and (now is None or digest_of(_data(now)) != held):
        raise _changed(edit.path)
    if now is not None and not edit.stamp:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(edit.path))
    # The editor follows links: the folders on the way are opened without them first.
    with parent(edit.path, context.workspace, create=True):
        if not files.write(edit.path, edit.after):
            return False
    after = _held(files, edit.path)
    same = after is not None and with_line_end(after, "\n") == with_line_end(edit.after, "\n")
    # What an editor changes on saving is new to the model: the next edit is then refused.
    digest = digest_of(_data(after if after is not None and same else edit.after))
    remember(context, edit.path, f"{HELD}{digest}", digest)
    return True


def _held(files: EditorFiles, path: Path) -> str | None:
    """The text that the editor holds; None if it has no such file, or the disk counts."""
    try:
        return files.read(path)
    except FileNotFoundError:
        return None


def _data(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _changed(path: Path) -> ToolFailed:
    return ToolFailed(
        f"File changed while it was being edited: {path}. No edits made. "
        "Use read_file to see what it holds now, then try again.",
        type="file_changed",
    )


def delete_file(edit: Edit, context: ToolContext) -> None:
    """Delete the file of an edit."""
    if context.changing is not None:
        context.changing(edit.path, None, -1, context.call_id)
    try:
        with parent(edit.path, context.workspace) as (folder, name):
            unlink_at(name, dir_fd=folder)
    except OSError as error:
        raise ToolFailed(
            f"{edit.given} cannot be deleted: {error.strerror}", type="file_write_failure"
        ) from error
    context.seen.pop(str(edit.path), None)


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
    """The result of a written edit, with its diff for the user."""
    proposal = edit.proposal
    return ToolOutput(
        text=text,
        display=text.split(" User modified the ")[0],
        diff=diff_of(proposal.before, proposal.after, edit.path.name),
        stat=stat_of(proposal.before, proposal.after, arguments.get("ai_proposed_content")),
    )


def edited_arguments(arguments: JsonObject, proposal: Proposal, **changed: str) -> JsonObject:
    """The call as the user changed it, with the model's proposal for the line counts."""
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
    """Whether a comparison would take too long: its cost grows with both."""
    return len(old) * len(new) > _MOST_COMPARED


def _moved(header: str, by: int) -> str:
    return re.sub(r"([-+])(\d+)", lambda found: f"{found[1]}{int(found[2]) + by}", header, count=2)


def stat_of(before: str, after: str, proposed: object = None) -> DiffStat:
    """Lines changed; those that the user changed in the model's text are counted apart."""
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
