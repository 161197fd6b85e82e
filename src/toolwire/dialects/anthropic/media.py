"""Media and citations, both ways."""

import binascii
from base64 import b64encode
from typing import cast

from toolwire.dialects.anthropic.shapes import NAME, cache_mark, known, string
from toolwire.dialects.losses import keep, kept_member
from toolwire.errors import BadInput
from toolwire.messages import Citation, Media, MediaKind
from toolwire.request import JsonObject
from toolwire.wire.json_access import is_object, obj, parse_object, seq

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def citation_of(raw: bytes) -> Citation:
    """The citation of a citation object."""
    source = parse_object(raw, "citation")
    title = source.get("title") or source.get("document_title")
    url = source.get("url")
    return Citation(
        dialect=NAME,
        data=raw.decode(),
        url=url if isinstance(url, str) else "",
        title=title if isinstance(title, str) else "",
    )


def citation_objects(citations: tuple[Citation, ...]) -> list[JsonObject]:
    """The citation objects of this format."""
    return [
        parse_object(citation.data, "citation")
        for citation in citations
        if citation.dialect == NAME
    ]


def media_of(block: JsonObject, kind: MediaKind) -> Media:
    """The media of an image or document block."""
    source = obj(block.get("source"), "source")
    mime, data, url, file_id = "", "", "", ""
    match source:
        case {"type": "base64", "media_type": str() as mime, "data": str() as data, **rest}:
            pass
        case {"type": "text", "media_type": str() as mime, "data": str() as plain, **rest}:
            data = _base64(plain)
        case {"type": "url", "url": str() as url, **rest}:
            pass
        case {"type": "file", "file_id": str() as file_id, **rest}:
            pass
        case {"type": "content"}:
            return _content_document(block, source)
        case _:
            raise BadInput("source: unknown shape")
    name = block.get("title")
    named = ("title",) if kind is MediaKind.DOCUMENT and isinstance(name, str) and name else ()
    remains = {**block, "source": rest} if rest else block
    members = known(block, *named, *(() if rest else ("source",)))
    return Media(
        kind=kind,
        mime=mime,
        base64=data,
        url=url,
        file_id=file_id,
        name=cast(str, name) if named else "",
        cache=cache_mark(block),
        kept=keep(NAME, remains, members),
    )


def _content_document(block: JsonObject, source: JsonObject) -> Media:
    """A document made of blocks: text for other formats; its source is stored for this one."""
    content = source.get("content")
    name = block.get("title")
    named = ("title",) if isinstance(name, str) and name else ()
    return Media(
        kind=MediaKind.DOCUMENT,
        mime="text/plain",
        base64=_base64(content if isinstance(content, str) else texts(content)),
        name=cast(str, name) if named else "",
        cache=cache_mark(block),
        kept=keep(NAME, block, known(block, *named)),
    )


def texts(content: object) -> str:
    """The text of a list of blocks."""
    items = [obj(item, "content") for item in seq(content, "content")]
    return "\n".join(string(item, "text") for item in items if item.get("type") == "text")


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


def media_source(media: Media, *, files: bool) -> JsonObject | None:
    """The source of a media block; None for what this vendor does not take."""
    stored = kept_member(media.kept, NAME, "source")
    more: JsonObject = stored if is_object(stored) else {}
    if more.get("type") == "content":
        return more
    source = _source(media, files)
    return None if source is None else {**more, **source}


def _source(media: Media, files: bool) -> JsonObject | None:
    if media.kind not in (MediaKind.IMAGE, MediaKind.DOCUMENT):
        return None
    if media.base64:
        return _inline(media)
    if media.file_id and files:
        return {"type": "file", "file_id": media.file_id}
    if media.url.startswith(("https://", "http://")):
        fits = media.kind is MediaKind.IMAGE or media.mime in ("", "application/pdf")
        return {"type": "url", "url": media.url} if fits else None
    return None


def _inline(media: Media) -> JsonObject | None:
    inline = {"type": "base64", "media_type": media.mime, "data": media.base64}
    if media.kind is MediaKind.IMAGE:
        return inline if media.mime in _IMAGES else None
    if media.mime.startswith("text/") or media.mime == "application/json":
        try:
            text = media.data.decode()
        except (binascii.Error, ValueError):
            return None
        return {"type": "text", "media_type": "text/plain", "data": text}
    return inline if media.mime == "application/pdf" or media.mime in _IMAGES else None
