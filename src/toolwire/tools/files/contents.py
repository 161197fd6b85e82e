"""Content of a file for a model: text, media, or a line with the reason for neither."""

import os
from enum import StrEnum
from pathlib import Path
from stat import S_ISREG

import msgspec

from toolwire.errors import BadInput
from toolwire.messages import Media, MediaKind, Text
from toolwire.platform import pread
from toolwire.tools.files.encodings import bom_of, detect, printable
from toolwire.tools.files.paths import open_file, shown
from toolwire.tools.files.text import LARGEST, MOST_LINES, Lines, held_lines, read_lines
from toolwire.tools.spec import ToolContext, ToolFailed

SNIFFED = 4096
"""Bytes that decide between text and binary."""


class FileType(StrEnum):
    """How a file is shown to a model."""

    TEXT = "text"
    SVG = "svg"
    BINARY = "binary"
    MEDIA = "media"


_MEDIA = {
    "image/apng": "apng",
    "image/avif": "avif",
    "image/bmp": "bmp dib",
    "image/gif": "gif",
    "image/heic": "heic",
    "image/heif": "heif",
    "image/jp2": "jp2 jpg2",
    "image/jpeg": "jpg jpeg jpe",
    "image/jxl": "jxl",
    "image/png": "png",
    "image/tiff": "tif tiff",
    "image/webp": "webp",
    "audio/aac": "adts aac",
    "audio/amr": "amr",
    "audio/basic": "au snd",
    "audio/midi": "mid midi kar rmi",
    "audio/mp4": "m4a mp4a m4b",
    "audio/mpeg": "mpga mp2 mp2a mp3 m2a m3a",
    "audio/ogg": "oga ogg spx opus",
    "audio/wav": "wav",
    "audio/webm": "weba",
    "video/3gpp": "3gp 3gpp",
    "video/3gpp2": "3g2",
    "video/h261": "h261",
    "video/h263": "h263",
    "video/h264": "h264",
    "video/mp4": "mp4 mp4v mpg4",
    "video/mp2t": "m2t m2ts",
    "video/mpeg": "mpeg mpg mpe m1v m2v",
    "video/ogg": "ogv",
    "video/quicktime": "qt mov",
    "video/webm": "webm",
    "application/pdf": "pdf",
}
_MIMES = {f".{end}": mime for mime, ends in _MEDIA.items() for end in ends.split()}
_KINDS = {"image": MediaKind.IMAGE, "audio": MediaKind.AUDIO, "video": MediaKind.VIDEO}
# Also the ending of films, but far more often of programs.
_PROGRAM_ENDS = (".ts", ".mts", ".cts")
_BINARY = (
    "bin exe dll so dylib class jar war zip tar gz bz2 rar 7z doc docx xls xlsx ppt pptx odt ods "
    "odp pdf png jpg jpeg gif webp bmp svg pyc pyo dat obj o a lib wasm"
)
BINARY_ENDS = frozenset(f".{end}" for end in _BINARY.split())


_ODD = bytes([*range(9), *range(14, 32)])
"""Controls that no text has."""


def mime_of(path: str | Path) -> str:
    """The media type that a name promises; empty if it is none we send."""
    return _MIMES.get(Path(path).suffix.lower(), "")


def media_kind(mime: str) -> MediaKind:
    """Name of the file type for the user."""
    return _KINDS.get(mime.partition("/")[0], MediaKind.DOCUMENT)


def file_type(path: str | Path, head: bytes) -> FileType:
    """By the name first, then by the first bytes."""
    end = Path(path).suffix.lower()
    if end in _PROGRAM_ENDS:
        return FileType.TEXT
    if end == ".svg":
        return FileType.SVG
    if mime_of(path):
        return FileType.MEDIA
    if end in BINARY_ENDS or looks_binary(head[:SNIFFED]):
        return FileType.BINARY
    return FileType.TEXT


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes are not text: a NUL without a mark of UTF-16, or many controls."""
    if not head or bom_of(head):
        return False
    if 0 in head:
        return True
    return len(head) - len(head.translate(None, _ODD)) > 0.3 * len(head)


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
        is_text = file_type(given, b"") is FileType.TEXT
        held = _held(path, given, context, start, count) if is_text else None
        if held is not None:
            return held
        raise _not_found(given) from error
    try:
        return _read(file, path, given, context, start, count)
    finally:
        os.close(file)


def _not_found(given: str) -> ToolFailed:
    return ToolFailed(f"File not found: {given}", type="file_not_found")


def _held(
    path: Path, given: str, context: ToolContext, start: int, count: int | None
) -> Content | None:
    """The text file as an editor holds it; None if the disk counts."""
    try:
        text = None if context.files is None else context.files.read(path)
    except FileNotFoundError as error:
        raise _not_found(given) from error
    if text is None:
        return None
    most = MOST_LINES if count is None else count
    return Content(lines=held_lines(text, start, most, context, path))


def _read(
    file: int, path: Path, given: str, context: ToolContext, start: int, count: int | None
) -> Content:
    size = os.fstat(file).st_size
    kind = file_type(given, pread(file, SNIFFED, 0))
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
            data = pread(file, size, 0)
            return Content(media=Media.of_bytes(media_kind(mime), mime, data))
        case FileType.SVG:
            if size > _LARGEST_SVG:
                name = shown(given, context.workspace)
                note = f"Cannot display content of SVG file larger than 1MB: {name}"
                return Content(note=note)
            data = pread(file, size, 0)
            return Content(note=printable(detect(data).decode(data)))
        case FileType.TEXT:
            held = _held(path, given, context, start, count) if size <= LARGEST else None
            if held is not None:
                return held
            most = MOST_LINES if count is None else count
            return Content(lines=read_lines(file, start, most, context, path))


_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


def signed_mime(head: bytes) -> str:
    """The media type that the first bytes show; vendors reject a picture with the wrong one."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for mark, mime in _SIGNATURES if head.startswith(mark)), "")


def attachment(path: Path) -> Text | Media:
    """A file that the user or the host program chose, as part of a message; BadInput if it cannot
    be sent.
    """
    try:
        found = path.stat()
        size = found.st_size
        if not S_ISREG(found.st_mode):
            raise BadInput(f"{path} is not a regular file")
        if size > LARGEST:
            raise BadInput(f"{path} has {size:,} bytes; a file to send may have {LARGEST:,}")
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    signed = signed_mime(data[:SNIFFED])
    kind = FileType.MEDIA if signed else file_type(path, data[:SNIFFED])
    match kind:
        case FileType.MEDIA:
            mime = signed or mime_of(path)
            return Media.of_bytes(media_kind(mime), mime, data, path.name)
        case FileType.TEXT | FileType.SVG:
            return Text(f"{path.name}:\n{printable(detect(data).decode(data))}\n")
        case FileType.BINARY:
            raise BadInput(f"{path} is neither text nor a picture, document or recording")
