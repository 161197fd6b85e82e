"""Messages → the `input` of a request: one item or more per message."""

from collections.abc import Iterator

import msgspec
from msgspec import Raw

from toolwire.dialects.losses import Losses, own_seal
from toolwire.dialects.openai_responses.items import (
    call_item,
    content_part,
    image_item,
    message_groups,
    message_item,
    reasoning_item,
    without_our_id,
)
from toolwire.dialects.openai_responses.media import complete_media, media_body, takes_media
from toolwire.dialects.openai_responses.shapes import NAME, unchanged_span, with_extra
from toolwire.dialects.tools import as_text
from toolwire.messages import (
    CallKind,
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
from toolwire.request import ModelRequest, Source
from toolwire.wire.json_access import JsonObject
from toolwire.wire.names import ToolNames


class InputTerms(msgspec.Struct, frozen=True):
    """What the items of a request depend on besides its messages."""

    names: ToolNames
    losses: Losses
    source: Source
    """What a request of this format was decoded from; unchanged items go out as they came."""
    renamed: bool
    """The server needs other names of tools than the source has."""
    stored: bool
    """The server stores answers, and knows reasoning by its id."""


def encode_input(request: ModelRequest, terms: InputTerms) -> list[object]:
    """The input items of the messages."""
    return _Items(request, terms).write()


class _Items:
    """Writes messages as items."""

    def __init__(self, request: ModelRequest, terms: InputTerms) -> None:
        self._request = request
        self._terms = terms
        self._source = terms.source
        self._names = terms.names
        self._losses = terms.losses
        self._foreign_files = request.kept is not None and terms.source.dialect != NAME

    def write(self) -> list[object]:
        items: list[object] = []
        for number, message in enumerate(self._request.messages):
            path = f"messages[{number}]"
            wire = self._source.wire(message)
            if wire is not None:
                items.append(wire)
            elif message.role == "assistant":
                items += self._assistant(message, path)
            else:
                items += self._user(message, path)
        return items

    def _unchanged(self, parts: tuple[Part, ...], start: int) -> tuple[object, int] | None:
        """The item that these parts came in, and how many they are."""
        span = unchanged_span(self._source, parts, start)
        if span is None or (self._terms.renamed and isinstance(parts[start], ToolCall)):
            return None
        return span.wire, len(span.values)

    def _content(self, parts: list[tuple[int, Part]], path: str) -> list[object]:
        content: list[object] = []
        for number, part in parts:
            body = self._source.wire(part)
            if body is None:
                body = encode_part(
                    part, f"{path}.parts[{number}]", self._losses, self._foreign_files
                )
            if body is not None:
                content.append(body)
        return content

    def _user(self, message: Message, path: str) -> Iterator[object]:
        """A user's or system's message: results and content in their order."""
        pending: list[tuple[int, Part]] = []
        for number, part in enumerate(message.parts):
            if not isinstance(part, ToolResult | ServerBlock):
                pending.append((number, part))
                continue
            yield from self._message(message, pending, path)
            pending = []
            found = self._unchanged(message.parts, number)
            if found is not None:
                yield found[0]
            elif isinstance(part, ToolResult):
                yield self._result(part, f"{path}.parts[{number}]")
            elif part.origin.dialect == NAME:
                yield Raw(part.data.encode())
        yield from self._message(message, pending, path)

    def _message(
        self, message: Message, parts: list[tuple[int, Part]], path: str
    ) -> Iterator[JsonObject]:
        content: object = self._content(parts, path)
        if not content:
            return
        only = parts[0][1]
        if len(parts) == 1 and isinstance(only, Text) and content == [text_body(only)]:
            content = only.text
        yield with_extra({"role": message.role, "content": content}, message.kept)

    def _result(self, part: ToolResult, path: str) -> JsonObject:
        if part.is_error:
            self._losses.add(f"{path}.is_error", "error flag", "the text alone reports it")
        if part.cache is not None:
            self._losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
        content = self._content(list(enumerate(part.parts)), path)
        plain = all(isinstance(inner, Text) for inner in part.parts) and len(part.parts) < 2
        output = part.text if plain else content or ""
        return with_extra(result_item(part, output), part.kept)

    def _assistant(self, message: Message, path: str) -> Iterator[object]:
        number = 0
        while number < len(message.parts):
            found = self._unchanged(message.parts, number)
            if found is not None:
                yield found[0]
                number += found[1]
                continue
            group = next(message_groups(message.parts[number:]))
            if isinstance(group, list):
                yield from self._texts(group, path, number)
                number += len(group)
                continue
            made = self._item(group, f"{path}.parts[{number}]")
            number += 1
            if made is not None:
                yield made

    def _texts(self, parts: list[Text | Refusal], path: str, number: int) -> Iterator[JsonObject]:
        last = parts[-1]
        sealed = own_seal(last.seal, NAME)
        if "id" in sealed:
            self._report(parts, path, number)
            yield without_our_id(message_item(parts, [content_part(part) for part in parts]))
            return
        self._report(parts, path, number, as_text=True)
        for part in parts:
            # A list of output parts needs an item id; a plain text of the assistant does not.
            if part.text:
                phase = {"phase": sealed["phase"]} if "phase" in sealed else {}
                yield {"role": "assistant", "content": part.text, **phase}

    def _report(
        self, parts: list[Text | Refusal], path: str, number: int, *, as_text: bool = False
    ) -> None:
        for offset, part in enumerate(parts):
            where = f"{path}.parts[{number + offset}]"
            if isinstance(part, Refusal):
                if as_text:
                    self._losses.add(f"{where}.refusal", "refusal mark", "sent as plain text")
                continue
            if part.cache is not None:
                self._losses.add(f"{where}.cache", "cache mark", "this format caches by itself")
            for index, source in enumerate(part.citations):
                if as_text or source.dialect != NAME:
                    self._losses.add(
                        f"{where}.citations[{index}]", "citation", "a plain text has none"
                    )

    def _item(self, part: Part, path: str) -> object | None:
        match part:
            case Thinking():
                return self._thought(part, path)
            case ToolCall():
                return self._call(part, path)
            case ServerBlock():
                return Raw(part.data.encode()) if part.origin.dialect == NAME else None
            case Media() if part.kind is MediaKind.IMAGE and own_seal(part.seal, NAME):
                return without_our_id(image_item(part))
            case _:
                self._losses.add(path, type(part).__name__, "an assistant message has no such part")
                return None

    def _thought(self, part: Thinking, path: str) -> JsonObject | None:
        sealed = own_seal(part.seal, NAME)
        if not sealed:
            self._losses.add(path, "reasoning", "only reasoning items of the vendor are accepted")
            return None
        # Open models send their reasoning as it is; OpenAI's is an id, or encrypted.
        if self._terms.stored or not sealed.keys().isdisjoint(("encrypted_content", "content")):
            return without_our_id(reasoning_item(part))
        self._losses.add(path, "reasoning", "it is not encrypted, and the server did not store it")
        return None

    def _call(self, part: ToolCall, path: str) -> JsonObject:
        if part.cache is not None:
            self._losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
        name = self._names.wire_name(part.name, part.namespace)
        freeform = part.kind is CallKind.FREEFORM
        arguments = part.arguments if freeform else as_text(part, path, self._losses)
        return without_our_id(call_item(part, name, arguments))


def result_item(part: ToolResult, output: object) -> JsonObject:
    """A tool's result as an item."""
    freeform = part.kind is CallKind.FREEFORM
    return {
        "type": "custom_tool_call_output" if freeform else "function_call_output",
        "call_id": part.call_id,
        "output": output,
    }


def encode_part(part: Part, path: str, losses: Losses, foreign_files: bool) -> object | None:
    """A content part, or None (and a loss) for what the format has no part for."""
    match part:
        case Text():
            if part.cache is not None:
                losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
            for number, _ in enumerate(part.citations):
                where = f"{path}.citations[{number}]"
                losses.add(where, "citation", "only answers carry citations here")
            return with_extra(text_body(part), part.kept)
        case Media():
            if not takes_media(part, path, losses, foreign_files):
                return text_body(Text(part.placeholder))
            if part.cache is not None:
                losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
            body = with_extra(media_body(part), part.kept)
            complete_media(part, body)
            if foreign_files:
                body.pop("file_id", None)
            return body
        case ServerBlock():
            return Raw(part.data.encode()) if part.origin.dialect == NAME else None
        case _:
            losses.add(path, type(part).__name__, "a message of this role has no such part")
            return None


def text_body(part: Text) -> JsonObject:
    """A text as a content part."""
    return {"type": "input_text", "text": part.text}
