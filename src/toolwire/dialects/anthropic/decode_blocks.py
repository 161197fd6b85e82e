"""From content blocks of a request to parts."""

from base64 import b64encode
from typing import Any, cast

from toolwire.dialects.anthropic.citing import citation_of
from toolwire.dialects.anthropic.wire import NAME, raw_input, raw_items
from toolwire.dialects.kept import keep
from toolwire.errors import BadInput
from toolwire.messages import (
    CacheMark,
    Media,
    MediaKind,
    Origin,
    Outcome,
    Part,
    ResultPart,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, obj, parse_object, seq

ORIGIN = Origin(NAME)
LIST = ""
STRING = "string"
ABSENT = "absent"
"""Forms of content: a list of blocks, a plain string, or what stands in the kept members."""
NOT_ERROR = "not_error"
"""Word of a result's form: it said that it is no error, which it need not."""
NO_CITATIONS = "no_citations"
"""Form of a text that said that it has no sources, which it need not."""
SEARCH_RESULT = "search_result"
RAW_SOURCE = "source"
"""Forms of parts whose block is kept whole or in part, since our value says less."""


def cache_mark(block: JsonObject) -> CacheMark | None:
    """The cache mark on a block, if it is one of the documented shape."""
    match block.get("cache_control"):
        case {"type": "ephemeral", "ttl": str() as ttl, **rest} if ttl and not rest:
            return CacheMark(ttl)
        case {"type": "ephemeral", **rest} if not rest:
            return CacheMark()
        case _:
            return None


def known(block: JsonObject, *members: str) -> frozenset[str]:
    """The members that our value carries: those that say something."""
    marked = ("cache_control",) if cache_mark(block) is not None else ()
    return frozenset(name for name in ("type", *members, *marked) if block.get(name) is not None)


class BlockReader:
    """Reads the blocks of one request. Knows the calls so far, since results name only their id."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def parts(self, raw: bytes, path: str) -> tuple[Part, ...]:
        """The parts of a list of blocks."""
        blocks = raw_items(raw)
        return tuple(self._part(block, f"{path}[{at}]") for at, block in enumerate(blocks))

    def _part(self, raw: bytes, path: str) -> Part:
        block = parse_object(raw, path)
        try:
            match block.get("type"):
                case "tool_use":
                    return self._call(block, raw)
                case "tool_result":
                    return self._result(block)
                case "thinking":
                    return _thinking(block)
                case "redacted_thinking":
                    _string(block, "data")
                    return Thinking(seal=Seal(origin=ORIGIN, data=raw.decode()))
                case _:
                    return content_part(block, raw)
        except BadInput:
            # A known block in an unknown shape still goes back as it came.
            return _server_block(block, raw)

    def _call(self, block: JsonObject, raw: bytes) -> ToolCall:
        call_id, name = _string(block, "id"), _string(block, "name")
        self._names[call_id] = name
        given = block.get("input")
        plain = isinstance(given, dict)
        members = known(block, "id", "name", *(("input",) if plain else ()))
        return ToolCall(
            id=call_id,
            name=name,
            arguments="" if given is None else raw_input(raw),
            cache=cache_mark(block),
            kept=keep(NAME, block, members, "" if plain else ABSENT),
        )

    def _result(self, block: JsonObject) -> ToolResult:
        call_id = _string(block, "tool_use_id")
        content = block.get("content")
        is_error = block.get("is_error")
        parts: tuple[ResultPart, ...] = ()
        form = LIST
        if isinstance(content, str):
            parts, form = (Text(content),), STRING
        elif content is None:
            form = ABSENT
        else:
            items = seq(content, "content")
            parts = tuple(content_part(obj(item, "content"), dump(item).encode()) for item in items)
        said = ("tool_use_id", "content", *(("is_error",) if type(is_error) is bool else ()))
        if is_error is False:
            form = f"{form} {NOT_ERROR}"
        return ToolResult(
            call_id=call_id,
            name=self._names.get(call_id, ""),
            parts=parts,
            is_error=is_error is True,
            outcome=Outcome.FAILED if is_error is True else Outcome.DONE,
            cache=cache_mark(block),
            kept=keep(NAME, block, known(block, *said), form),
        )


def content_part(block: JsonObject, raw: bytes) -> ResultPart:
    """A part that may stand in a result too."""
    try:
        match block.get("type"):
            case "text":
                return text_part(block)
            case "image":
                return _media(block, MediaKind.IMAGE)
            case "document":
                return _media(block, MediaKind.DOCUMENT)
            case "search_result":
                return _search_result(block)
            case _:
                return _server_block(block, raw)
    except BadInput:
        return _server_block(block, raw)


def _server_block(block: JsonObject, raw: bytes) -> ServerBlock:
    """Whatever only this format knows, whole."""
    kind = block.get("type")
    return ServerBlock(origin=ORIGIN, kind=kind if isinstance(kind, str) else "", data=raw.decode())


def text_part(block: JsonObject) -> Text:
    """A text block."""
    text = _string(block, "text")
    cited: Any = block.get("citations")
    citations = (
        tuple(citation_of(dump(item).encode()) for item in cast(list[Any], cited or []))
        if isinstance(cited, list)
        else ()
    )
    members = known(block, "text", *(("citations",) if citations or cited == [] else ()))
    form = NO_CITATIONS if cited == [] else ""
    return Text(text, citations, cache_mark(block), kept=keep(NAME, block, members, form))


def _thinking(block: JsonObject) -> Thinking:
    text = _string(block, "thinking")
    seal = None
    if isinstance(block.get("signature"), str):
        seal = Seal(origin=ORIGIN, data=dump({"signature": block["signature"]}))
    members = frozenset({"type", "thinking", *(("signature",) if seal else ())})
    return Thinking(text, seal, keep(NAME, block, members))


def _media(block: JsonObject, kind: MediaKind) -> Media:
    source = obj(block.get("source"), "source")
    mime, data, url, file_id, form = "", "", "", "", ""
    match source:
        case {"type": "base64", "media_type": str() as mime, "data": str() as data, **rest}:
            form = "base64" if mime.startswith("text/") else ""
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
        kept=keep(NAME, remains, members, form),
    )


def _content_document(block: JsonObject, source: JsonObject) -> Media:
    """A document made of blocks: others read its text, this format gets its blocks back."""
    content = source.get("content")
    name = block.get("title")
    named = ("title",) if isinstance(name, str) and name else ()
    return Media(
        kind=MediaKind.DOCUMENT,
        mime="text/plain",
        base64=_base64(content if isinstance(content, str) else _texts(content)),
        name=cast(str, name) if named else "",
        cache=cache_mark(block),
        kept=keep(NAME, block, known(block, *named), RAW_SOURCE),
    )


def _search_result(block: JsonObject) -> Text:
    """Others read the text; this format gets the block back."""
    head = [block[key] for key in ("title", "source") if isinstance(block.get(key), str)]
    text = "\n".join([*head, _texts(block.get("content"))])
    return Text(text, cache=cache_mark(block), kept=keep(NAME, block, known(block), SEARCH_RESULT))


def _texts(content: object) -> str:
    items = [obj(item, "content") for item in seq(content, "content")]
    return "\n".join(_string(item, "text") for item in items if item.get("type") == "text")


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode("ascii")


def _string(block: JsonObject, member: str) -> str:
    value = block.get(member)
    if not isinstance(value, str):
        raise BadInput(f"{member}: expected a string")
    return value
