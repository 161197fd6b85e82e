"""Sources of a text, both ways."""

from toolwire.dialects.anthropic.wire import NAME
from toolwire.messages import Citation
from toolwire.request import JsonObject
from toolwire.wire.json_access import parse_object


def citation_of(raw: bytes) -> Citation:
    """A source as the server told it."""
    source = parse_object(raw, "citation")
    title = source.get("title") or source.get("document_title")
    url = source.get("url")
    return Citation(
        dialect=NAME,
        data=raw.decode(),
        url=url if isinstance(url, str) else "",
        title=title if isinstance(title, str) else "",
    )


def own_citations(citations: tuple[Citation, ...]) -> list[JsonObject]:
    """The sources that this format made."""
    return [
        parse_object(citation.data, "citation")
        for citation in citations
        if citation.dialect == NAME
    ]
