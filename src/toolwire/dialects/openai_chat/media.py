"""Images, sound and files inside chat messages, both ways."""

from base64 import b64decode, b64encode
from typing import Any, cast

from toolwire.dialects.openai_chat.wire import NAME, Audio
from toolwire.messages import Kept, Media, MediaKind
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

_BASE64 = ";base64,"


def read_address(address: str) -> tuple[str, str, str]:
    """Media type, base64 and address of a `data:` or other address."""
    if address.startswith("data:"):
        head, _, data = address.partition(_BASE64)
        if data:
            return head.removeprefix("data:"), data, ""
    return "", "", address


def write_address(media: Media) -> str:
    """The address, or the bytes as a `data:` one."""
    if media.base64:
        return f"data:{media.mime}{_BASE64}{media.base64}"
    return media.url


def read_image(image: JsonObject) -> Media:
    """An image that a model made (OpenRouter's `images`)."""
    inner: Any = image.get("image_url")
    if isinstance(inner, dict):
        inner = cast(JsonObject, inner).get("url")
    mime, base64, url = read_address(inner if isinstance(inner, str) else "")
    kept = Kept(dialect=NAME, form="images")
    return Media(kind=MediaKind.IMAGE, mime=mime, base64=base64, url=url, kept=kept)


def write_image(media: Media) -> JsonObject:
    """An image as OpenRouter gives those that a model made."""
    return {"type": "image_url", "image_url": {"url": write_address(media)}}


class SpokenAudio:
    """Gathers the pieces of spoken output."""

    def __init__(self) -> None:
        self._id = ""
        self._data: list[str] = []
        self._transcript = ""
        self._expires: int | None = None

    def add(self, piece: Audio) -> None:
        """One more piece."""
        self._id = self._id or piece.id or ""
        if piece.data:
            self._data.append(piece.data)
        self._transcript += piece.transcript or ""
        self._expires = piece.expires_at if piece.expires_at is not None else self._expires

    def take(self) -> Media | None:
        """All of it; None if nothing was spoken."""
        data = _join(self._data)
        if not self._id and not data:
            return None
        fields: JsonObject = {}
        if self._transcript:
            fields["transcript"] = self._transcript
        if self._expires is not None:
            fields["expires_at"] = self._expires
        kept = Kept(dialect=NAME, fields=dump(fields), form="audio")
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
