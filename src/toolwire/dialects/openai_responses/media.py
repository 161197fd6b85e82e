"""Media and citations, both ways."""

from typing import cast

from toolwire.dialects.losses import Losses, shared
from toolwire.dialects.openai_responses.shapes import NAME
from toolwire.messages import Citation, Media, MediaKind
from toolwire.wire.json_access import JsonObject, dump, parse_object

_EXTENSIONS = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/html": "html",
    "text/csv": "csv",
    "application/json": "json",
}
_AUDIO = {"audio/mp3": "mp3", "audio/mpeg": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}


def read_image(source: JsonObject) -> Media | None:
    """An image part; None if a member has an unexpected type."""
    url, file_id = source.get("image_url"), source.get("file_id")
    if not isinstance(url, str | None) or not isinstance(file_id, str | None):
        return None
    mime, base64 = _data_address(url or "")
    return Media(
        kind=MediaKind.IMAGE,
        mime=mime,
        base64=base64,
        url="" if base64 else url or "",
        file_id=file_id or "",
    )


def read_file(source: JsonObject) -> Media | None:
    """A file part; None if a member has an unexpected type."""
    values = [source.get(key) for key in ("file_data", "file_url", "file_id", "filename")]
    if not all(isinstance(value, str | None) for value in values):
        return None
    data, url, file_id, name = (value or "" for value in values)
    mime, base64 = _data_address(data)
    if data.startswith("data:") and not base64:
        return None
    return Media(
        kind=MediaKind.DOCUMENT,
        mime=mime,
        base64=base64 or data,
        url=url,
        file_id=file_id,
        name=name,
    )


def read_audio(source: JsonObject) -> Media | None:
    """An audio part; None if a member has an unexpected type."""
    match source.get("input_audio"):
        case {"data": str(data), "format": str(word)}:
            mime = {"mp3": "audio/mpeg", "wav": "audio/wav"}.get(word, word)
            return Media(kind=MediaKind.AUDIO, mime=mime, base64=data)
        case _:
            return None


def _data_address(address: str) -> tuple[str, str]:
    if not address.startswith("data:"):
        return "", ""
    head, comma, data = address[5:].partition(",")
    mime, mark, rest = head.partition(";base64")
    if not comma or not mark or rest or ";" in mime:
        return "", ""
    return mime, data


def media_body(part: Media) -> JsonObject:
    """Media as a content part."""
    match part.kind:
        case MediaKind.IMAGE:
            body: JsonObject = {"type": "input_image"}
            if part.base64:
                body["image_url"] = f"data:{part.mime};base64,{part.base64}"
            elif part.url:
                body["image_url"] = part.url
        case MediaKind.AUDIO:
            sound = {"data": part.base64, "format": _AUDIO.get(part.mime, part.mime)}
            return {"type": "input_audio", "input_audio": sound}
        case _:
            body = {"type": "input_file"}
            if part.base64:
                head = f"data:{part.mime};base64," if part.mime else ""
                body["file_data"] = head + part.base64
            elif part.url:
                body["file_url"] = part.url
            if part.name:
                body["filename"] = part.name
    if part.file_id:
        body["file_id"] = part.file_id
    return body


def complete_media(part: Media, body: JsonObject) -> None:
    """Adds the members that the vendor requires."""
    if part.kind is MediaKind.IMAGE:
        body.setdefault("detail", shared(part.kept, NAME).get("detail", "auto"))
    elif part.base64 and not part.name:
        body["filename"] = f"document.{_EXTENSIONS.get(part.mime, 'bin')}"
    if part.base64 and not part.mime:
        word = "image/png" if part.kind is MediaKind.IMAGE else "application/octet-stream"
        key = "image_url" if part.kind is MediaKind.IMAGE else "file_data"
        body[key] = f"data:{word};base64,{part.base64}"


def takes_media(part: Media, path: str, losses: Losses, foreign_files: bool) -> bool:
    """Whether the media can be sent; reports a loss if not, and that a note replaces it."""
    note = "; replaced by a note"
    if part.kind in (MediaKind.AUDIO, MediaKind.VIDEO):
        losses.add(path, part.kind.value, f"this format takes text, images and files only{note}")
        return False
    if part.file_id and foreign_files:
        has_content = bool(part.base64 or part.url)
        why = "another vendor stores the file"
        losses.add(path, "file id", why if has_content else why + note)
        return has_content
    if not (part.base64 or part.url or part.file_id):
        losses.add(path, part.kind.value, f"it has neither bytes nor a URL{note}")
        return False
    if part.name and part.kind is MediaKind.IMAGE:
        losses.add(f"{path}.name", "file name", "images have no name here")
    return True


def citation(value: object) -> Citation | None:
    """An annotation as a citation; None if it is not an object."""
    if not isinstance(value, dict):
        return None
    source = cast(JsonObject, value)
    title = source.get("title") or source.get("filename")
    url, start, end = source.get("url"), source.get("start_index"), source.get("end_index")
    return Citation(
        dialect=NAME,
        data=dump(source),
        url=url if isinstance(url, str) else "",
        title=title if isinstance(title, str) else "",
        start=start if type(start) is int else None,
        end=end if type(end) is int else None,
    )


def annotation(source: Citation) -> JsonObject | None:
    """A citation as an annotation; None for one of another format without a URL."""
    if source.dialect == NAME:
        return parse_object(source.data, "annotation")
    if not source.url:
        return None
    return {
        "type": "url_citation",
        "url": source.url,
        "title": source.title,
        "start_index": source.start or 0,
        "end_index": source.end or 0,
    }
