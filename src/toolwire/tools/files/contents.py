"""Content of a file for a model: text, media, or a line with the reason for neither."""

import os
from pathlib import Path

import msgspec

from toolwire.messages import Media
from toolwire.tools.files.encodings import detect, printable
from toolwire.tools.files.filetypes import SNIFFED, FileType, file_type, media_kind, mime_of
from toolwire.tools.files.paths import open_file, shown
from toolwire.tools.files.text import LARGEST, MOST_LINES, Lines, read_lines
from toolwire.tools.spec import ToolContext, ToolFailed

_LARGEST_SVG = 1024 * 1024


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """One of: lines, media, or a note in place of the contents."""

    lines: Lines | None = None
    media: Media | None = None
    note: str = ""
    """Also the whole of a drawing, which is never cut."""


def read_content(
    path: Path, given: str, context: ToolContext, start: int = 0, count: int | None = None
) -> Content:
    """Read a file at a real path of the workspace; `given` is how the model calls it.

    A file over the limit is read only in parts, and then never held as a whole.
    """
    try:
        file = open_file(path, context.workspace, temp=True)
    except IsADirectoryError:
        raise ToolFailed(
            f"Path is a directory, not a file: {given}", type="target_is_directory"
        ) from None
    except PermissionError as error:
        raise ToolFailed(
            f"EACCES: permission denied, open '{given}'", type="permission_denied"
        ) from error
    except OSError as error:
        raise ToolFailed(f"File not found: {given}", type="file_not_found") from error
    try:
        return _read(file, path, given, context, start, count)
    finally:
        os.close(file)


def _read(
    file: int, path: Path, given: str, context: ToolContext, start: int, count: int | None
) -> Content:
    size = os.fstat(file).st_size
    kind = file_type(given, os.pread(file, SNIFFED, 0))
    in_parts = kind is FileType.TEXT and (start > 0 or count is not None)
    if size > LARGEST and not in_parts:
        raise ToolFailed(
            f"File size exceeds the 20MB limit: {given} ({size / LARGEST * 20:.2f}MB)"
            + ("\nRead it in parts: give 'offset' and 'limit'." if kind is FileType.TEXT else ""),
            type="file_too_large",
        )
    match kind:
        case FileType.BINARY:
            name = shown(given, context.workspace)
            return Content(note=f"Cannot display content of binary file: {name}")
        case FileType.MEDIA:
            mime = mime_of(given)
            data = os.pread(file, size, 0)
            return Content(media=Media.of_bytes(media_kind(mime), mime, data))
        case FileType.SVG:
            if size > _LARGEST_SVG:
                name = shown(given, context.workspace)
                note = f"Cannot display content of SVG file larger than 1MB: {name}"
                return Content(note=note)
            data = os.pread(file, size, 0)
            return Content(note=printable(detect(data).decode(data)))
        case FileType.TEXT:
            most = MOST_LINES if count is None else count
            return Content(lines=read_lines(file, start, most, context, path))
