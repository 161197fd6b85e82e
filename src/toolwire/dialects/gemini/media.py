"""Media both ways: bytes inline, or an address in a file store or on the web."""

import re
from typing import Any

from toolwire.dialects.gemini.shapes import FILE, INLINE
from toolwire.dialects.gemini.spelling import Members, Notes, Spelled
from toolwire.dialects.losses import Losses
from toolwire.messages import Media, MediaKind, Seal
from toolwire.request import JsonObject

_STORED = re.compile(r"gs://|files/|https://[a-z0-9.-]*googleapis\.com/")
_DEFAULT_MIME = {
    MediaKind.IMAGE: "image/jpeg",
    MediaKind.AUDIO: "audio/mpeg",
    MediaKind.VIDEO: "video/mp4",
    MediaKind.DOCUMENT: "application/pdf",
}
_BY_ENDING = {
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "heic": "image/heic",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "txt": "text/plain",
    "html": "text/html",
    "csv": "text/csv",
    "md": "text/markdown",
}


def kind_of(mime: str) -> MediaKind:
    """What a person would call it."""
    head = mime.partition("/")[0].lower()
    try:
        return MediaKind(head)
    except ValueError:
        return MediaKind.DOCUMENT


def read_media(member: str, data: JsonObject, notes: Notes, seal: Seal | None = None) -> Media:
    """The media of an `inlineData` or `fileData` object; the caller closes the part around it."""
    members = Members(data, notes, f"{member}.")
    mime = members.take_word("mimeType")
    name = members.take_word("displayName")
    text = members.take_word("data" if member == INLINE else "fileUri")
    if not text:
        notes.mark_absent("data")
    if not mime:
        notes.mark_absent("mimeType")
    members.close()
    kind = kind_of(mime)
    if member == INLINE:
        return Media(kind=kind, mime=mime, base64=text, name=name, seal=seal)
    if _STORED.match(text):
        return Media(kind=kind, mime=mime, file_id=text, name=name, seal=seal)
    if not mime and "youtu" in text:
        kind = MediaKind.VIDEO
    return Media(kind=kind, mime=mime, url=text, name=name, seal=seal)


def write_media(media: Media, path: str, spelled: Spelled, losses: Losses) -> JsonObject | None:
    """The part that carries the media, unfinished (`spelled.write` closes it), or None if it cannot
    be sent.
    """
    named: JsonObject = {}
    if media.name:
        if spelled.own or spelled.exact:
            named = {"displayName": media.name}
        else:
            losses.add(f"{path}.name", "name", "Gemini takes no names of media")
    address = media.url or media.file_id
    if media.mime and kind_of(media.mime) is not media.kind:
        losses.add(path, media.kind, f"its type {media.mime} alone says what it is")
    if not address:
        return _written(INLINE, "data", media.base64, media, spelled, named)
    if media.file_id and not spelled.own and not _STORED.match(media.file_id):
        losses.add(path, "stored file", "only the vendor that stores it can read it")
        return None
    return _written(FILE, "fileUri", address, media, spelled, named)


def _written(
    member: str, key: str, text: str, media: Media, spelled: Spelled, named: JsonObject
) -> JsonObject:
    data: JsonObject = {}
    mime = media.mime or ("" if spelled.absent("mimeType") else _guess(media))
    if mime:
        data["mimeType"] = mime
    if text or not spelled.absent("data"):
        data[key] = text
    return {member: spelled.write(f"{member}.", {**data, **named})}


def _guess(media: Media) -> str:
    address: Any = (media.name or media.url).lower().partition("?")[0]
    return _BY_ENDING.get(address.rpartition(".")[2], _DEFAULT_MIME[media.kind])
