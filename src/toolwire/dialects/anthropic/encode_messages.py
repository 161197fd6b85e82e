"""From messages and parts to turns and content blocks of a request."""

from collections.abc import Iterable
from itertools import groupby
from typing import TypeAlias, cast

import msgspec

from toolwire.dialects import tools
from toolwire.dialects.anthropic.media import citation_objects, media_source
from toolwire.dialects.anthropic.shapes import NAME
from toolwire.dialects.losses import OPENING, Losses, kept_member, own_seal, restore
from toolwire.dialects.quirks import Quirks
from toolwire.messages import (
    CacheMark,
    CallKind,
    Citation,
    Media,
    MediaKind,
    Message,
    Part,
    Refusal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import AnyTool, JsonObject, ModelRequest
from toolwire.wire.json_access import parse_object
from toolwire.wire.names import ToolNames
from toolwire.wire.surrogates import whole_characters

Turn: TypeAlias = JsonObject | msgspec.Raw
"""An encoded turn, or the bytes it was decoded from."""
_MOST_MARKS = 4
_TTLS = frozenset({"", "5m", "1h"})


class BlockWriter:
    """Encodes the blocks of one request.

    `files`: file ids may be this vendor's; `spare_marks`: paths of cache marks over the limit.
    """

    def __init__(
        self, names: ToolNames, losses: Losses, *, files: bool, spare_marks: frozenset[str]
    ) -> None:
        self._names = names
        self._losses = losses
        self._files = files
        self._spare_marks = spare_marks

    @property
    def spare_marks_on_tools(self) -> frozenset[str]:
        """Paths of tools whose cache marks are over the limit."""
        return frozenset(path for path in self._spare_marks if path.startswith("tools["))

    def reporting_to(self, losses: Losses) -> "BlockWriter":
        """The same writer with another list of losses."""
        return BlockWriter(self._names, losses, files=self._files, spare_marks=self._spare_marks)

    def content(self, message: Message, path: str) -> list[JsonObject]:
        """The blocks of a message."""
        parts = enumerate(message.parts)
        blocks = (self._block(part, message, f"{path}.parts[{at}]") for at, part in parts)
        return [block for block in blocks if block is not None]

    def texts(self, parts: Iterable[Text], path: str) -> list[JsonObject]:
        """The blocks of texts outside messages, such as the system's."""
        blocks = (self._text(part, f"{path}[{at}]") for at, part in enumerate(parts))
        return [block for block in blocks if block is not None]

    def name(self, name: str, namespace: str = "") -> str:
        """The name to send for a tool."""
        return self._names.wire_name(name, namespace)

    def chosen_name(self, name: str) -> str:
        """The name to send for the tool that must be called."""
        return self._names.chosen_name(name)

    def mark(self, block: JsonObject, cache: CacheMark | None, path: str) -> JsonObject:
        """The block with its cache mark."""
        if cache is None:
            return block
        if path in self._spare_marks:
            self._losses.add(f"{path}.cache", "cache mark", "over the vendor's limit")
            return block
        control: JsonObject = {"type": "ephemeral"}
        if cache.ttl and cache.ttl in _TTLS:
            control["ttl"] = cache.ttl
        elif cache.ttl:
            self._losses.add(f"{path}.cache", f"ttl {cache.ttl}", "only 5m and 1h are known")
        block["cache_control"] = control
        return block

    def _block(self, part: Part, message: Message, path: str) -> JsonObject | None:
        match part:
            case Text():
                return self._text(part, path)
            case Thinking():
                return self._thinking(part, path)
            case ToolCall():
                return self._call(part, path)
            case ToolResult():
                return self._result(part, path)
            case Media():
                return self._media(part, path, by_model=message.role == "assistant")
            case Refusal():
                self._losses.add(path, "refusal", "sent as plain text")
                return self._text(Text(part.text), path)
            case ServerBlock():
                return _server_block(part)

    def _text(self, part: Text, path: str) -> JsonObject | None:
        if isinstance(kept_member(part.kept, NAME, "content"), list):
            # Decoded from a search result: its blocks are stored, the text is for other formats.
            block = restore({"type": "search_result"}, part.kept, NAME)
            return self.mark(block, part.cache, path)
        if not part.text.strip():
            if part.text:
                self._losses.add(path, "white space", "text must not be blank")
            return None
        return self.mark(text_block(part, path, self._losses), part.cache, path)

    def _thinking(self, part: Thinking, path: str) -> JsonObject | None:
        block = thinking_block(part)
        if block is None:
            if part.text:
                self._losses.add(path, "thinking", "only thinking with this vendor's signature")
            return None
        return restore(block, part.kept, NAME)

    def _call(self, call: ToolCall, path: str) -> JsonObject:
        block: JsonObject = {
            "type": "tool_use",
            "id": call.id,
            "name": self.name(call.name, call.namespace),
            "input": call_input(call, path, self._losses),
        }
        return self.mark(restore(block, call.kept, NAME), call.cache, path)

    def _result(self, result: ToolResult, path: str) -> JsonObject:
        block: JsonObject = {"type": "tool_result", "tool_use_id": result.call_id}
        content = self._result_content(result, path)
        if content:
            block["content"] = content
        elif result.is_error:
            # The vendor rejects an error without content.
            block["content"] = str(result.outcome)
        if result.is_error:
            block["is_error"] = True
        return self.mark(restore(block, result.kept, NAME), result.cache, path)

    def _result_content(self, result: ToolResult, path: str) -> list[JsonObject]:
        content: list[JsonObject] = []
        for at, part in enumerate(result.parts):
            where = f"{path}.parts[{at}]"
            match part:
                case Text():
                    block = self._text(part, where)
                case Media():
                    block = self._media(part, where)
                case ServerBlock():
                    block = _server_block(part)
            if block is not None:
                content.append(block)
        return content

    def _media(self, media: Media, path: str, *, by_model: bool = False) -> JsonObject | None:
        source = None if by_model else media_source(media, files=self._files)
        if source is None:
            about = f"{media.kind} {media.mime or media.url or media.file_id}".strip()
            self._losses.add(path, about, "not accepted here; replaced by a note")
            return self._text(Text(media.placeholder, cache=media.cache), path)
        block: JsonObject = {"type": str(media.kind), "source": source}
        if media.name and media.kind is MediaKind.DOCUMENT:
            block["title"] = media.name
        elif media.name:
            self._losses.add(f"{path}.name", media.name, "images have no names")
        return self.mark(restore(block, media.kept, NAME), media.cache, path)


def text_block(part: Text, path: str, losses: Losses) -> JsonObject:
    """A text block with the citations of this format."""
    block: JsonObject = {"type": "text", "text": part.text}
    if not part.citations:
        return restore(block, part.kept, NAME)
    citations = citation_objects(part.citations)
    if citations:
        block["citations"] = citations
    for at, citation in enumerate(part.citations):
        if citation.dialect != NAME:
            losses.add(f"{path}.citations[{at}]", _about(citation), "made by another vendor")
    return restore(block, part.kept, NAME)


def thinking_block(part: Thinking) -> JsonObject | None:
    """A thinking block with this vendor's signature; None without one."""
    seal = own_seal(part.seal, NAME)
    if seal.get("type") == "redacted_thinking":
        return seal
    if "signature" not in seal:
        return None
    return {"type": "thinking", "thinking": part.text, **seal}


def call_input(call: ToolCall, path: str, losses: Losses) -> object:
    """The arguments as an object; valid JSON keeps its spelling."""
    if call.kind is CallKind.JSON and call.arguments and tools.parsed(call):
        return msgspec.Raw(whole_characters(call.arguments.encode()))
    return tools.as_object(call, path, losses)


def _server_block(block: ServerBlock) -> JsonObject | None:
    if block.origin.dialect != NAME:
        return None
    return msgspec.json.decode(block.data, type=dict[str, msgspec.Raw])


def _about(citation: Citation) -> str:
    return citation.title or citation.url or "citation"


class Original:
    """What the unchanged values of a request of this format were decoded from."""

    def __init__(self, request: ModelRequest, quirks: Quirks) -> None:
        self.same_format = request.source.dialect == NAME
        self._request = request
        self._source = request.source
        self._renames = quirks.name_rule is not None

    def has(self, *fields: str) -> bool:
        """Whether these fields of the request are unchanged since they were decoded."""
        return self.same_format and self._source.unchanged(self._request, *fields)

    def copy(self, body: JsonObject, member: str, *fields: str) -> bool:
        """Copies a member of the decoded body; False if its fields must be encoded."""
        if not self.has(*fields):
            return False
        if member in self._source.body:
            body[member] = self._source.body[member]
        return True

    def message(self, message: Message) -> msgspec.Raw | None:
        """What an unchanged message was decoded from, unless it calls tools by other names."""
        renamed = self._renames and message.calls
        return self._source.wire(message) if self.same_format and not renamed else None

    def tool(self, tool: AnyTool) -> JsonObject | None:
        """What an unchanged tool was decoded from, unless it is sent under another name."""
        return self._source.wire(tool) if self.same_format and not self._renames else None


def encode_messages(
    request: ModelRequest, original: Original, quirks: Quirks, writer: BlockWriter, losses: Losses
) -> tuple[list[JsonObject], list[Turn]]:
    """The text of leading system messages, and the turns after them."""
    messages = list(enumerate(request.messages))
    wires = _wires(request.messages, original, quirks)
    system: list[JsonObject] = []
    while messages and messages[0][1].role == "system" and messages[0][0] not in wires:
        at, message = messages.pop(0)
        system += _only_text(writer.content(message, f"messages[{at}]"), at, losses)
    turns: list[Turn] = []
    for at, message in messages:
        if at in wires:
            turns.append(wires[at])
            continue
        blocks = writer.content(message, f"messages[{at}]")
        role = _role(message, quirks)
        if blocks and role != message.role:
            losses.add(f"messages[{at}]", "system turn", "sent as a user turn")
        _add_turn(turns, role, message, blocks)
    if turns or not original.same_format:
        _order(turns, losses)
    return system, turns


def _wires(
    messages: tuple[Message, ...], original: Original, quirks: Quirks
) -> dict[int, msgspec.Raw]:
    """Messages that are sent as they were received, by index.

    A changed message is joined with its neighbours of the same role, which are then encoded too.
    """
    wires: dict[int, msgspec.Raw] = {}
    for _, run in groupby(enumerate(messages), lambda entry: _role(entry[1], quirks)):
        found = [(at, original.message(message)) for at, message in run]
        if all(wire is not None for _, wire in found):
            wires |= {at: wire for at, wire in found if wire is not None}
    return wires


def _role(message: Message, quirks: Quirks) -> str:
    return "user" if message.role == "system" and not quirks.system_in_messages else message.role


def _only_text(blocks: list[JsonObject], at: int, losses: Losses) -> list[JsonObject]:
    texts = [block for block in blocks if block["type"] == "text"]
    if len(texts) < len(blocks):
        losses.add(f"messages[{at}]", "media", "system instructions are text")
    return texts


def _add_turn(turns: list[Turn], role: str, message: Message, blocks: list[JsonObject]) -> None:
    if not blocks:
        return
    last = turns[-1] if turns else None
    if isinstance(last, dict) and last["role"] == role:
        last["content"] += blocks
    else:
        turns.append(restore({"role": role, "content": blocks}, message.kept, NAME))


def _order(turns: list[Turn], losses: Losses) -> None:
    """Puts results first in a turn, text before calls, and a user turn first; trims an assistant
    turn at the end.
    """
    for turn in turns:
        if isinstance(turn, dict) and turn["role"] == "user":
            turn["content"].sort(key=_is_not_result)
        elif isinstance(turn, dict):
            turn["content"] = _text_before_calls(turn["content"], losses)
    first = turns[0] if turns else None
    if first is None:
        losses.add("messages", "no turn", "a user turn was added")
        turns.append(_opening())
    elif isinstance(first, dict) and first["role"] != "user":
        losses.add("messages[0]", "first turn", "a user turn was put before it")
        turns.insert(0, _opening())
    last = turns[-1]
    if isinstance(last, dict) and last["role"] == "assistant":
        _trim(last["content"][-1], losses)


def _text_before_calls(blocks: list[JsonObject], losses: Losses) -> list[JsonObject]:
    """The blocks of an assistant turn, text moved before the first call.

    The server takes text after a call for something between the call and its result.
    """
    kinds = [block["type"] for block in blocks]
    first = kinds.index("tool_use") if "tool_use" in kinds else len(kinds)
    after = [block for block in blocks[first:] if block["type"] == "text"]
    if not after:
        return blocks
    losses.add("messages", "text after a call", "moved before the call")
    rest = [block for block in blocks[first:] if block["type"] != "text"]
    return [*blocks[:first], *after, *rest]


def _opening() -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": OPENING}]}


def _trim(block: JsonObject, losses: Losses) -> None:
    if block["type"] != "text":
        return
    trimmed = block["text"].rstrip()
    if trimmed != block["text"]:
        losses.add("messages", "white space", "not accepted at the end of the last assistant text")
        block["text"] = trimmed


def _is_not_result(block: JsonObject) -> bool:
    return block["type"] != "tool_result"


def thinking_broken(turns: list[Turn]) -> bool:
    """Whether the last assistant turn made calls without thinking before them."""
    for turn in reversed(turns):
        members = turn if isinstance(turn, dict) else parse_object(bytes(turn), "message")
        if members.get("role") == "assistant":
            content = members.get("content")
            if not isinstance(content, list):
                return False
            kinds = [block.get("type") for block in cast(list[JsonObject], content)]
            return "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking")
    return False


def spare_marks(request: ModelRequest) -> frozenset[str]:
    """Paths of cache marks over the vendor's limit."""
    marked = [f"tools[{at}]" for at, tool in enumerate(request.tools) if _is_marked(tool)]
    marked += [f"system[{at}]" for at, part in enumerate(request.system) if _is_marked(part)]
    for at, message in enumerate(request.messages):
        marked += _marked_parts(f"messages[{at}]", message.parts)
    # The first two are mostly on tools and system, the last two on the newest turns.
    return frozenset(marked[2 : len(marked) - 2] if len(marked) > _MOST_MARKS else ())


def _marked_parts(path: str, parts: tuple[Part, ...]) -> list[str]:
    marked: list[str] = []
    for at, part in enumerate(parts):
        where = f"{path}.parts[{at}]"
        if isinstance(part, ToolResult):
            marked += _marked_parts(where, part.parts)
        if _is_marked(part):
            marked.append(where)
    return marked


def _is_marked(value: Part | AnyTool) -> bool:
    return getattr(value, "cache", None) is not None
