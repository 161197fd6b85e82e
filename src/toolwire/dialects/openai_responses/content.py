"""Parts of a user's or system's message and of a tool's result, both ways."""

from toolwire.dialects.kept import shared
from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_responses.remembering import remember, replay
from toolwire.dialects.openai_responses.wire import NAME
from toolwire.messages import Media, MediaKind, Origin, Part, ResultPart, ServerBlock, Text
from toolwire.wire.json_access import JsonObject, dump, obj, parse_object

_TEXTS = frozenset({"input_text", "output_text", "text"})
_EXTENSIONS = {
    "application/pdf": "pdf",
    "text/plain": "txt",
    "text/markdown": "md",
    "text/html": "html",
    "text/csv": "csv",
    "application/json": "json",
}
_AUDIO = {"audio/mp3": "mp3", "audio/mpeg": "mp3", "audio/wav": "wav", "audio/x-wav": "wav"}


def decode_part(value: object, path: str) -> ResultPart:
    """A content part; one of an unknown type stays whole."""
    source = obj(value, path)
    part: Text | Media | None = None
    match source.get("type"):
        case str(word) if word in _TEXTS and isinstance(source.get("text"), str):
            part = Text(source["text"])
        case "input_image":
            part = _image(source)
        case "input_file":
            part = _file(source)
        case "input_audio":
            part = _audio(source)
        case _:
            pass
    if part is None:
        kind = source.get("type")
        word = kind if isinstance(kind, str) else ""
        return ServerBlock(origin=Origin(NAME), kind=word, data=dump(source))
    kept = remember(source, _text_body(part) if isinstance(part, Text) else _media_body(part))
    if isinstance(part, Text):
        return Text(part.text, kept=kept)
    return Media(
        kind=part.kind,
        mime=part.mime,
        base64=part.base64,
        url=part.url,
        file_id=part.file_id,
        name=part.name,
        kept=kept,
    )


def encode_part(
    part: Part, path: str, losses: Losses, *, own: bool, foreign_files: bool = False
) -> JsonObject | None:
    """A content part, or None (and a loss) for what cannot stand here."""
    match part:
        case Text():
            if not own:
                _report_text(part, path, losses)
            return replay(_text_body(part), part.kept)
        case Media():
            mine = own or (part.kept is not None and part.kept.dialect == NAME)
            if not mine and not _takes(part, path, losses, foreign_files):
                return None
            if part.cache is not None and not own:
                losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
            body = replay(_media_body(part), part.kept)
            if not mine:
                _complete(part, body)
                if foreign_files:
                    body.pop("file_id", None)
            return body
        case ServerBlock():
            return parse_object(part.data, path) if part.origin.dialect == NAME else None
        case _:
            losses.add(path, type(part).__name__, "it cannot stand in a message of this role")
            return None


def _text_body(part: Text) -> JsonObject:
    return {"type": "input_text", "text": part.text}


def _report_text(part: Text, path: str, losses: Losses) -> None:
    if part.cache is not None:
        losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
    for number, _ in enumerate(part.citations):
        losses.add(f"{path}.citations[{number}]", "citation", "only answers carry citations here")


def _media_body(part: Media) -> JsonObject:
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


def _complete(part: Media, body: JsonObject) -> None:
    if part.kind is MediaKind.IMAGE:
        body["detail"] = shared(part.kept, NAME).get("detail", "auto")
    elif part.base64 and not part.name:
        body["filename"] = f"document.{_EXTENSIONS.get(part.mime, 'bin')}"
    if part.base64 and not part.mime:
        word = "image/png" if part.kind is MediaKind.IMAGE else "application/octet-stream"
        key = "image_url" if part.kind is MediaKind.IMAGE else "file_data"
        body[key] = f"data:{word};base64,{part.base64}"


def _takes(part: Media, path: str, losses: Losses, foreign_files: bool) -> bool:
    if part.kind in (MediaKind.AUDIO, MediaKind.VIDEO):
        losses.add(path, part.kind.value, "this format takes text, images and files only")
        return False
    if part.file_id and foreign_files:
        losses.add(path, "file id", "the file lies in another vendor's store")
        return bool(part.base64 or part.url)
    if not (part.base64 or part.url or part.file_id):
        losses.add(path, part.kind.value, "it has neither bytes nor an address")
        return False
    if part.name and part.kind is MediaKind.IMAGE:
        losses.add(f"{path}.name", "file name", "images have no name here")
    return True


def _image(source: JsonObject) -> Media | None:
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


def _file(source: JsonObject) -> Media | None:
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


def _audio(source: JsonObject) -> Media | None:
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
