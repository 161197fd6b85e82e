"""Media and citations of chat messages, both ways."""

import re
from base64 import b64decode, b64encode
from typing import Any, cast

import msgspec
from msgspec import Raw

from toolwire.dialects.losses import Losses, shared
from toolwire.dialects.openai_chat.shapes import NAME, UNREADABLE, Audio
from toolwire.messages import Citation, Kept, Media, MediaKind
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, text_or_empty

_any = msgspec.json.Decoder().decode
_BASE64 = ";base64,"
_SOUNDS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}
_INDEX = re.compile(r'^\{"index":\d+,')
"""Begins the entries of lists in a stream."""


def read_address(address: str) -> tuple[str, str, str]:
    """Media type and base64 of a `data:` address, or any other address."""
    if address.startswith("data:"):
        head, _, data = address.partition(_BASE64)
        if data:
            return head.removeprefix("data:"), data, ""
    return "", "", address


def write_address(media: Media) -> str:
    """The address, or the bytes as a `data:` address."""
    if media.base64:
        return f"data:{media.mime}{_BASE64}{media.base64}"
    return media.url


def read_image(image: JsonObject) -> Media:
    """A generated image (OpenRouter's `images`)."""
    inner: Any = image.get("image_url")
    if isinstance(inner, dict):
        inner = cast(JsonObject, inner).get("url")
    mime, base64, url = read_address(inner if isinstance(inner, str) else "")
    return Media(kind=MediaKind.IMAGE, mime=mime, base64=base64, url=url, kept=Kept(dialect=NAME))


def write_image(media: Media) -> JsonObject:
    """A generated image as OpenRouter writes it."""
    return {"type": "image_url", "image_url": {"url": write_address(media)}}


def write_media(media: Media, inner: JsonObject, path: str, losses: Losses) -> JsonObject | None:
    """A media part with these members; None, with a loss, if the format has none for it."""
    if media.kind is MediaKind.IMAGE and (media.base64 or media.url):
        image = {**inner, **shared(media.kept, NAME), "url": write_address(media)}
        return {"type": "image_url", "image_url": image}
    if media.kind is MediaKind.AUDIO and media.mime in _SOUNDS and media.base64:
        sound = {**inner, "data": media.base64, "format": _SOUNDS[media.mime]}
        return {"type": "input_audio", "input_audio": sound}
    if media.kind is MediaKind.DOCUMENT and media.base64:
        return _document(media, inner, path, losses)
    source = "bytes" if media.base64 else "address" if media.url else "file id"
    why = "chat messages have no part for it; replaced by a note"
    losses.add(path, f"{media.mime or media.kind} {source}", why)
    return None


def _document(media: Media, inner: JsonObject, path: str, losses: Losses) -> JsonObject:
    if not media.mime.startswith("text/"):
        file = {**inner, "file_data": write_address(media)}
        if media.file_id:
            file["file_id"] = media.file_id
        return {"type": "file", "file": file | {"filename": media.name or "document.pdf"}}
    # The file part is for PDF; plain text can be sent as such.
    losses.add(path, f"{media.mime} document", "sent as text")
    try:
        text = b64decode(media.base64).decode("utf-8", "replace")
    except ValueError:
        text = media.base64
    return {"type": "text", "text": f"{media.name}\n{text}" if media.name else text}


def with_index(entry: Raw | JsonObject, index: int) -> Raw | JsonObject:
    """An entry of a list in a stream; OpenAI's SDK joins lists by the `index` of their entries."""
    if isinstance(entry, Raw) and len(entry) > len("{}"):
        return Raw(b'{"index":%d,%b' % (index, bytes(entry)[1:]))
    return {"index": index} | (entry if isinstance(entry, dict) else {})


class SpokenAudio:
    """Joins the pieces of spoken output."""

    def __init__(self) -> None:
        self._id = ""
        self._data: list[str] = []
        self._transcript = ""
        self._expires: int | None = None

    def add(self, piece: Audio) -> None:
        """Adds a piece."""
        self._id = self._id or piece.id or ""
        if piece.data:
            self._data.append(piece.data)
        self._transcript += piece.transcript or ""
        self._expires = piece.expires_at if piece.expires_at is not None else self._expires

    def take(self) -> Media | None:
        """The whole output; None if there was none."""
        data = _join(self._data)
        if not self._id and not data:
            return None
        fields: JsonObject = {}
        if self._transcript:
            fields["transcript"] = self._transcript
        if self._expires is not None:
            fields["expires_at"] = self._expires
        kept = Kept(dialect=NAME, fields=dump(fields))
        media = Media(kind=MediaKind.AUDIO, base64=data, file_id=self._id, kept=kept)
        self._id, self._data, self._transcript, self._expires = "", [], "", None
        return media


def _join(pieces: list[str]) -> str:
    if not any("=" in piece for piece in pieces[:-1]):
        return "".join(pieces)
    # Each piece was encoded by itself.
    try:
        return b64encode(b"".join(map(b64decode, pieces))).decode("ascii")
    except ValueError:
        return "".join(pieces)


def read_citation(raw: Raw) -> Citation | None:
    """The citation of an annotation; None if it is not an object."""
    try:
        value = _any(raw)
    except UNREADABLE:
        return None
    if not isinstance(value, dict):
        return None
    return citation_of(cast(JsonObject, value), _INDEX.sub("{", bytes(raw).decode()))


def citation_of(annotation: JsonObject, data: str) -> Citation:
    """The citation of a decoded annotation."""
    inner = annotation.get("url_citation")
    source = cast(JsonObject, inner) if isinstance(inner, dict) else annotation
    return Citation(
        dialect=NAME,
        data=data,
        url=text_or_empty(source.get("url")),
        title=text_or_empty(source.get("title")),
        start=_place(source.get("start_index")),
        end=_place(source.get("end_index")),
    )


def write_citation(citation: Citation) -> Raw | JsonObject | None:
    """The annotation of a citation: as received if it is of this format, else a link, if any."""
    if citation.dialect == NAME:
        return Raw(citation.data.encode())
    if not citation.url:
        return None
    return {
        "type": "url_citation",
        "url_citation": {
            "start_index": citation.start or 0,
            "end_index": citation.end or 0,
            "title": citation.title,
            "url": citation.url,
        },
    }


def _place(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
