"""From turns and content blocks of a request to messages and parts."""

from typing import Any, cast

import msgspec

from toolwire.dialects.anthropic.media import citation_of, media_of, texts
from toolwire.dialects.anthropic.shapes import (
    NAME,
    ORIGIN,
    cache_mark,
    known,
    raw_input,
    raw_items,
    raw_members,
    string,
)
from toolwire.dialects.losses import keep
from toolwire.errors import BadInput
from toolwire.messages import (
    MediaKind,
    Message,
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
from toolwire.request import JsonObject, Source
from toolwire.wire.json_access import dump, obj, parse_object, seq

_MESSAGE_MEMBERS = frozenset({"role", "content"})


class BlockReader:
    """Decodes the blocks of one request; stores the names of calls, since results have only ids."""

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
                    string(block, "data")
                    return Thinking(seal=Seal(origin=ORIGIN, data=raw.decode()))
                case _:
                    return content_part(block, raw)
        except BadInput:
            # A known block in an unknown shape goes back unchanged.
            return _server_block(block, raw)

    def _call(self, block: JsonObject, raw: bytes) -> ToolCall:
        call_id, name = string(block, "id"), string(block, "name")
        self._names[call_id] = name
        given = block.get("input")
        plain = isinstance(given, dict)
        members = known(block, "id", "name", *(("input",) if plain else ()))
        return ToolCall(
            id=call_id,
            name=name,
            arguments="" if given is None else raw_input(raw),
            cache=cache_mark(block),
            kept=keep(NAME, block, members),
        )

    def _result(self, block: JsonObject) -> ToolResult:
        call_id = string(block, "tool_use_id")
        content = block.get("content")
        is_error = block.get("is_error")
        parts: tuple[ResultPart, ...] = ()
        if isinstance(content, str):
            parts = (Text(content),)
        else:
            items = seq(content, "content")
            parts = tuple(content_part(obj(item, "content"), dump(item).encode()) for item in items)
        carried = ("tool_use_id", "content", *(("is_error",) if type(is_error) is bool else ()))
        return ToolResult(
            call_id=call_id,
            name=self._names.get(call_id, ""),
            parts=parts,
            is_error=is_error is True,
            outcome=Outcome.FAILED if is_error is True else Outcome.DONE,
            cache=cache_mark(block),
            kept=keep(NAME, block, known(block, *carried)),
        )


def content_part(block: JsonObject, raw: bytes) -> ResultPart:
    """A part that is allowed in results too."""
    try:
        match block.get("type"):
            case "text":
                return text_part(block)
            case "image":
                return media_of(block, MediaKind.IMAGE)
            case "document":
                return media_of(block, MediaKind.DOCUMENT)
            case "search_result":
                return _search_result(block)
            case _:
                return _server_block(block, raw)
    except BadInput:
        return _server_block(block, raw)


def _server_block(block: JsonObject, raw: bytes) -> ServerBlock:
    """A block that only this format has, whole."""
    kind = block.get("type")
    return ServerBlock(origin=ORIGIN, kind=kind if isinstance(kind, str) else "", data=raw.decode())


def text_part(block: JsonObject) -> Text:
    """The text of a text block."""
    text = string(block, "text")
    cited: Any = block.get("citations")
    citations = (
        tuple(citation_of(dump(item).encode()) for item in cast(list[Any], cited or []))
        if isinstance(cited, list)
        else ()
    )
    members = known(block, "text", *(("citations",) if citations or cited == [] else ()))
    return Text(text, citations, cache_mark(block), kept=keep(NAME, block, members))


def _thinking(block: JsonObject) -> Thinking:
    text = string(block, "thinking")
    seal = None
    if isinstance(block.get("signature"), str):
        seal = Seal(origin=ORIGIN, data=dump({"signature": block["signature"]}))
    members = frozenset({"type", "thinking", *(("signature",) if seal else ())})
    return Thinking(text, seal, keep(NAME, block, members))


def _search_result(block: JsonObject) -> Text:
    """The text of a search result for other formats; its members are stored for this one."""
    head = [block[key] for key in ("title", "source") if isinstance(block.get(key), str)]
    text = "\n".join([*head, texts(block.get("content"))])
    return Text(text, cache=cache_mark(block), kept=keep(NAME, block, known(block)))


def messages_of(
    messages_raw: msgspec.Raw | None, given: object, source: Source
) -> tuple[Message, ...]:
    """The messages of a request body, each recorded in `source`."""
    members = seq(given, "messages")
    if not members or messages_raw is None:
        return ()
    reader = BlockReader()
    messages: list[Message] = []
    raw = raw_items(messages_raw)
    for at, member in enumerate(members):
        path = f"messages[{at}]"
        message = _message(reader, obj(member, path), raw[at], path)
        source.add(message, msgspec.Raw(raw[at]))
        messages.append(message)
    return tuple(messages)


def _message(reader: BlockReader, message: JsonObject, raw: bytes, path: str) -> Message:
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise BadInput(f"{path}.role: expected user, assistant or system")
    content = message.get("content")
    parts: tuple[Part, ...] = ()
    if isinstance(content, str):
        parts = (Text(content),)
    elif content is not None:
        seq(content, f"{path}.content")
        parts = reader.parts(bytes(raw_members(raw)["content"]), f"{path}.content")
    return Message(role=role, parts=parts, kept=keep(NAME, message, _MESSAGE_MEMBERS))
