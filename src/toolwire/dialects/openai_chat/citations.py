"""Sources that a chat answer names, both ways."""

from typing import Any, cast

import msgspec
from msgspec import Raw

from toolwire.dialects.openai_chat.wire import NAME, UNREADABLE
from toolwire.messages import Citation
from toolwire.request import JsonObject

_any = msgspec.json.Decoder().decode


def read_citation(raw: Raw) -> Citation | None:
    """The source in an annotation; None for an annotation that is no object."""
    try:
        value = _any(raw)
    except UNREADABLE:
        return None
    if not isinstance(value, dict):
        return None
    return citation_of(cast(JsonObject, value), bytes(raw).decode())


def citation_of(annotation: JsonObject, data: str) -> Citation:
    """The source in a decoded annotation."""
    inner = annotation.get("url_citation")
    source = cast(JsonObject, inner) if isinstance(inner, dict) else annotation
    return Citation(
        dialect=NAME,
        data=data,
        url=_text(source.get("url")),
        title=_text(source.get("title")),
        start=_place(source.get("start_index")),
        end=_place(source.get("end_index")),
    )


def write_citation(citation: Citation) -> Raw | JsonObject:
    """The annotation: its own one as it came, another's as a link."""
    if citation.dialect == NAME:
        return Raw(citation.data.encode())
    return {
        "type": "url_citation",
        "url_citation": {
            "start_index": citation.start or 0,
            "end_index": citation.end or 0,
            "title": citation.title,
            "url": citation.url,
        },
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _place(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
