"""Content parts of chat messages, written."""

from base64 import b64decode

from toolwire.dialects.kept import shared
from toolwire.dialects.openai_chat.leftovers import Leftovers, scatter
from toolwire.dialects.openai_chat.media import write_address
from toolwire.dialects.openai_chat.wire import NAME
from toolwire.dialects.openai_chat.writing import Writing
from toolwire.messages import Media, MediaKind, Text
from toolwire.request import JsonObject

_SOUNDS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


def write_text(text: Text, path: str, to: Writing) -> JsonObject:
    """A text part."""
    part: JsonObject = {**scatter(text.kept).outer, "type": "text", "text": text.text}
    to.mark(part, text.cache, path)
    return part


def write_media(media: Media, path: str, to: Writing) -> JsonObject | None:
    """A media part; None, and a loss, where the format has none for it."""
    left = scatter(media.kept)
    part = _typed(media, left, path, to)
    if part is not None:
        part = left.outer | part
        to.mark(part, media.cache, path)
    return part


def _typed(media: Media, left: Leftovers, path: str, to: Writing) -> JsonObject | None:
    words = left.words
    if "document_url" in words:
        part = _addressed("document_url", media, left)
        return part | {"document_name": media.name} if media.name else part
    if "video_url" in words:
        return _addressed("video_url", media, left)
    if "input_audio" in words:
        return {"type": "input_audio", "input_audio": {**left.inner, "data": media.base64}}
    if words & {"file", "file_id"}:
        return _file(media, left)
    if media.kind is MediaKind.IMAGE and (to.verbatim or media.base64 or media.url):
        return _addressed("image_url", media, left)
    if media.kind is MediaKind.AUDIO and media.mime in _SOUNDS and (to.verbatim or media.base64):
        sound = {**left.inner, "data": media.base64, "format": _SOUNDS[media.mime]}
        return {"type": "input_audio", "input_audio": sound}
    if media.kind is MediaKind.DOCUMENT and (to.verbatim or media.base64):
        return _document(media, left, path, to)
    _report(media, path, to)
    return None


def _addressed(member: str, media: Media, left: Leftovers) -> JsonObject:
    address = write_address(media)
    if "bare" in left.words:
        return {"type": member, member: address}
    return {"type": member, member: {**left.inner, **shared(media.kept, NAME), "url": address}}


def _document(media: Media, left: Leftovers, path: str, to: Writing) -> JsonObject:
    if to.verbatim or not media.mime.startswith("text/"):
        file = _file(media, left)
        if not to.verbatim:
            file["file"].setdefault("filename", "document.pdf")
        return file
    # The file part is for PDF; plain text can be told as such.
    to.losses.add(path, f"{media.mime} document", "sent as text")
    try:
        text = b64decode(media.base64).decode("utf-8", "replace")
    except ValueError:
        text = media.base64
    return {"type": "text", "text": f"{media.name}\n{text}" if media.name else text}


def _file(media: Media, left: Leftovers) -> JsonObject:
    file = dict(left.inner)
    if media.base64:
        file["file_data"] = media.base64 if "bare" in left.words else write_address(media)
    elif media.url:
        file["file_data"] = media.url
    if media.file_id:
        file["file_id"] = media.file_id
    if media.name:
        file["filename"] = media.name
    return {"type": "file", "file": file}


def _report(media: Media, path: str, to: Writing) -> None:
    what = f"{media.mime or media.kind} {_source(media)}"
    to.losses.add(path, what, "chat messages have no part for it")


def _source(media: Media) -> str:
    if media.base64:
        return "bytes"
    return "address" if media.url else "file id"
