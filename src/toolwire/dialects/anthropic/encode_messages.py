"""From parts to content blocks of a request."""

import binascii
from collections.abc import Iterable
from typing import cast

import msgspec

from toolwire.dialects import arguments
from toolwire.dialects.anthropic.media import own_citations, placeholder
from toolwire.dialects.anthropic.shapes import (
    ABSENT,
    NAME,
    NO_CITATIONS,
    NOT_ERROR,
    RAW_SOURCE,
    SEARCH_RESULT,
    STRING,
)
from toolwire.dialects.kept import form, kept_member, own_seal, restore
from toolwire.dialects.losses import Losses
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
from toolwire.request import JsonObject
from toolwire.wire.json_access import is_object
from toolwire.wire.names import ToolNames
from toolwire.wire.surrogates import whole_characters

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_TTLS = frozenset({"", "5m", "1h"})


class BlockWriter:
    """Writes the blocks of one request. `own`: it was read from this format and goes out as it
    was; `files`: file ids may be this vendor's; `spare_marks`: cache marks too many.
    """

    def __init__(
        self,
        names: ToolNames,
        losses: Losses,
        *,
        own: bool,
        files: bool,
        spare_marks: frozenset[str],
    ) -> None:
        self._names = names
        self._losses = losses
        self._own = own
        self._files = files
        self._spare_marks = spare_marks

    @property
    def spare_marks_on_tools(self) -> frozenset[str]:
        """The tools whose cache marks are too many."""
        return frozenset(path for path in self._spare_marks if path.startswith("tools["))

    def reporting_to(self, losses: Losses) -> "BlockWriter":
        """The same writer with another report."""
        return BlockWriter(
            self._names, losses, own=self._own, files=self._files, spare_marks=self._spare_marks
        )

    def content(self, message: Message, path: str) -> list[JsonObject]:
        """The blocks of a message."""
        parts = enumerate(message.parts)
        blocks = (self._block(part, message, f"{path}.parts[{at}]") for at, part in parts)
        return [block for block in blocks if block is not None]

    def texts(self, parts: Iterable[Text], path: str) -> list[JsonObject]:
        """The blocks of texts that stand alone, such as the system's."""
        blocks = (self._text(part, f"{path}[{at}]") for at, part in enumerate(parts))
        return [block for block in blocks if block is not None]

    def name(self, name: str, namespace: str = "") -> str:
        """The name to send for a tool."""
        return name if self._own and not namespace else self._names.wire_name(name, namespace)

    def chosen_name(self, name: str) -> str:
        """The name to send for the tool that must be called."""
        return name if self._own else self._names.chosen_name(name)

    def mark(self, block: JsonObject, cache: CacheMark | None, path: str) -> JsonObject:
        """The block with its cache mark."""
        if cache is None:
            return block
        if path in self._spare_marks:
            self._losses.add(f"{path}.cache", "cache mark", "one more than the vendor accepts")
            return block
        control: JsonObject = {"type": "ephemeral"}
        if cache.ttl and (self._own or cache.ttl in _TTLS):
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
                return self._media(part, path, told=message.role == "assistant")
            case Refusal():
                self._losses.add(path, "refusal", "sent as plain text")
                return self._text(Text(part.text), path)
            case ServerBlock():
                return _own_block(part)

    def _text(self, part: Text, path: str) -> JsonObject | None:
        if form(part.kept, NAME) == SEARCH_RESULT:
            block = restore({"type": "search_result"}, part.kept, NAME)
            return self.mark(block, part.cache, path)
        if not self._own and not part.text.strip():
            if part.text:
                self._losses.add(path, "white space", "text must hold more than that")
            return None
        return self.mark(text_block(part, path, self._losses), part.cache, path)

    def _thinking(self, part: Thinking, path: str) -> JsonObject | None:
        block = thinking_block(part)
        if block is None and self._own:
            block = {"type": "thinking", "thinking": part.text}
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
        }
        if form(call.kept, NAME) != ABSENT:
            block["input"] = call_input(call, path, self._losses)
        return self.mark(restore(block, call.kept, NAME), call.cache, path)

    def _result(self, result: ToolResult, path: str) -> JsonObject:
        block: JsonObject = {"type": "tool_result", "tool_use_id": result.call_id}
        shape = form(result.kept, NAME).split()
        content = self._result_content(result, path)
        if STRING in shape and _is_plain(result.parts):
            block["content"] = result.text
        elif content or (self._own and ABSENT not in shape):
            block["content"] = content
        elif result.is_error and not self._own:
            # An error without content is refused.
            block["content"] = str(result.outcome)
        if result.is_error or NOT_ERROR in shape:
            block["is_error"] = result.is_error
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
                    block = _own_block(part)
            if block is not None:
                content.append(block)
        return content

    def _media(self, media: Media, path: str, *, told: bool = False) -> JsonObject | None:
        source = None if told and not self._own else self._source(media)
        if source is None:
            about = f"{media.kind} {media.mime or media.url or media.file_id}".strip()
            self._losses.add(path, about, "not accepted here; a note says that it was there")
            return self._text(Text(placeholder(media), cache=media.cache), path)
        block: JsonObject = {"type": str(media.kind)}
        rest = kept_member(media.kept, NAME, "source")
        if form(media.kept, NAME) != RAW_SOURCE:
            block["source"] = {**cast(JsonObject, rest), **source} if is_object(rest) else source
        if media.name and media.kind is MediaKind.DOCUMENT:
            block["title"] = media.name
        elif media.name:
            self._losses.add(f"{path}.name", media.name, "images have no names")
        return self.mark(restore(block, media.kept, NAME), media.cache, path)

    def _source(self, media: Media) -> JsonObject | None:
        if media.kind not in (MediaKind.IMAGE, MediaKind.DOCUMENT):
            return None
        if media.base64:
            return self._inline(media)
        if media.file_id and self._files:
            return {"type": "file", "file_id": media.file_id}
        if media.url and (self._own or media.url.startswith(("https://", "http://"))):
            fits = media.kind is MediaKind.IMAGE or media.mime in ("", "application/pdf")
            return {"type": "url", "url": media.url} if fits else None
        if self._own:
            return {"type": "base64", "media_type": media.mime, "data": ""}
        return None

    def _inline(self, media: Media) -> JsonObject | None:
        inline = {"type": "base64", "media_type": media.mime, "data": media.base64}
        if form(media.kept, NAME) == "base64" or media.mime in _IMAGES:
            return inline
        if media.kind is MediaKind.IMAGE:
            return inline if self._own else None
        if media.mime.startswith("text/") or media.mime == "application/json":
            try:
                text = media.data.decode()
            except (binascii.Error, ValueError):
                return None
            mime = media.mime if self._own else "text/plain"
            return {"type": "text", "media_type": mime, "data": text}
        return inline if self._own or media.mime == "application/pdf" else None


def text_block(part: Text, path: str, losses: Losses) -> JsonObject:
    """A text block with its own kind of sources."""
    block: JsonObject = {"type": "text", "text": part.text}
    citations = own_citations(part.citations)
    if citations or form(part.kept, NAME) == NO_CITATIONS:
        block["citations"] = citations
    for at, citation in enumerate(part.citations):
        if citation.dialect != NAME:
            losses.add(f"{path}.citations[{at}]", _about(citation), "made by another vendor")
    return restore(block, part.kept, NAME)


def thinking_block(part: Thinking) -> JsonObject | None:
    """A thinking block as this vendor signed it; None if it did not."""
    seal = own_seal(part.seal, NAME)
    if seal.get("type") == "redacted_thinking":
        return seal
    if "signature" not in seal:
        return None
    return {"type": "thinking", "thinking": part.text, **seal}


def call_input(call: ToolCall, path: str, losses: Losses) -> object:
    """The arguments as an object; valid text goes out as the model wrote it."""
    if call.kind is CallKind.JSON and call.arguments and arguments.parsed(call):
        return msgspec.Raw(whole_characters(call.arguments.encode()))
    return arguments.as_object(call, path, losses)


def message_content(message: Message, blocks: list[JsonObject]) -> JsonObject:
    """A message of this format's own making, in the form it had."""
    body: JsonObject = {"role": message.role}
    shape = form(message.kept, NAME)
    if shape == STRING and _is_plain(message.parts):
        body["content"] = message.text
    elif shape != ABSENT or blocks:
        body["content"] = blocks
    return restore(body, message.kept, NAME)


def _is_plain(parts: tuple[Part, ...]) -> bool:
    if len(parts) != 1 or not isinstance(parts[0], Text):
        return False
    part = parts[0]
    return not part.citations and part.cache is None and part.kept is None


def _own_block(block: ServerBlock) -> JsonObject | None:
    if block.origin.dialect != NAME:
        return None
    return msgspec.json.decode(block.data, type=dict[str, msgspec.Raw])


def _about(citation: Citation) -> str:
    return citation.title or citation.url or "citation"
