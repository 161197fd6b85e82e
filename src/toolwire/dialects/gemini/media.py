"""Media both ways: bytes inline, or an address in a file store or on the web."""

import re
from typing import Any

from toolwire.dialects.gemini.shapes import FILE, INLINE, NAME, Members, with_kept
from toolwire.dialects.losses import Losses, own_seal
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
    """The kind of media that a MIME type names."""
    head = mime.partition("/")[0].lower()
    try:
        return MediaKind(head)
    except ValueError:
        return MediaKind.DOCUMENT


def read_media(name: str, data: JsonObject, left: JsonObject, seal: Seal | None = None) -> Media:
    """The media of an `inlineData` or `fileData` object."""
    members = Members(data, left, f"{name}.")
    mime = members.take_text("mimeType")
    title = members.take_text("displayName")
    content = members.take_text("data" if name == INLINE else "fileUri")
    members.close()
    kind = kind_of(mime)
    if name == INLINE:
        # Google takes data without padding.
        content += "=" * (-len(content) % 4 % 3)
        return Media(kind=kind, mime=mime, base64=content, name=title, seal=seal)
    if _STORED.match(content):
        return Media(kind=kind, mime=mime, file_id=content, name=title, seal=seal)
    if not mime and "youtu" in content:
        kind = MediaKind.VIDEO
    return Media(kind=kind, mime=mime, url=content, name=title, seal=seal)


def write_media(
    media: Media, path: str, losses: Losses, *, own: bool, data: str = ""
) -> JsonObject | None:
    """The part that carries the media, or None if it cannot be sent.

    `own`: it was decoded from this format and goes back as it is, inline with this `data`.
    """
    named: JsonObject = {}
    if media.name and own:
        named = {"displayName": media.name}
    elif media.name:
        losses.add(f"{path}.name", "name", "Gemini takes no names of media")
    if media.mime and kind_of(media.mime) is not media.kind:
        losses.add(path, media.kind, f"its type {media.mime} decides the kind")
    if media.file_id and not own and not _STORED.match(media.file_id):
        why = "only the vendor that stores it can read it; replaced by a note"
        losses.add(path, "stored file", why)
        return None
    mime = media.mime or ("" if own else _guess(media))
    body: JsonObject = {"mimeType": mime} if mime else {}
    address = media.url or media.file_id
    name = FILE if address else INLINE
    body["fileUri" if address else "data"] = address or data or media.base64
    inner = with_kept({**body, **named}, media.kept, f"{name}.")
    return with_kept({name: inner, **own_seal(media.seal, NAME)}, media.kept)


def _guess(media: Media) -> str:
    address: Any = (media.name or media.url).lower().partition("?")[0]
    return _BY_ENDING.get(address.rpartition(".")[2], _DEFAULT_MIME[media.kind])
