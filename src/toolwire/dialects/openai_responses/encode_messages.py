"""Messages → the `input` of a request: turns are spread out into items."""

from collections.abc import Iterator

from msgspec import Raw

from toolwire.dialects.arguments import as_text
from toolwire.dialects.kept import own_seal
from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_responses.items import (
    call_item,
    image_item,
    message_groups,
    message_item,
    reasoning_item,
    without_our_id,
)
from toolwire.dialects.openai_responses.media import complete_media, media_body, takes_media
from toolwire.dialects.openai_responses.remembering import replay, words
from toolwire.dialects.openai_responses.shapes import NAME
from toolwire.messages import (
    CallKind,
    Kept,
    Media,
    Message,
    Part,
    Refusal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import ModelRequest
from toolwire.wire.json_access import JsonObject, parse_object
from toolwire.wire.names import ToolNames


def encode_input(
    request: ModelRequest, names: ToolNames, losses: Losses, *, own: bool
) -> list[object]:
    """The input items of the messages."""
    return _Spreader(request, names, losses, own).write()


class _Spreader:
    """Spreads messages into items."""

    def __init__(self, request: ModelRequest, names: ToolNames, losses: Losses, own: bool) -> None:
        self._request = request
        self._names = names
        self._losses = losses
        self._own = own
        self._foreign_files = request.kept is not None and not own

    def write(self) -> list[object]:
        items: list[object] = []
        for number, message in enumerate(self._request.messages):
            path = f"messages[{number}]"
            if message.role == "assistant":
                items += self._assistant(message, path)
            elif _is_item(message.kept):
                items.append(self._item(message, path))
            else:
                items += self._speaker(message, path)
        return items

    def _item(self, message: Message, path: str) -> JsonObject:
        content = self._content(list(enumerate(message.parts)), path)
        body: JsonObject = {"type": "message", "role": message.role, "content": content}
        if "string" in words(message.kept):
            body["content"] = "".join(p.text for p in message.parts if isinstance(p, Text))
        return replay(body, message.kept)

    def _content(self, parts: list[tuple[int, Part]], path: str) -> list[object]:
        content: list[object] = []
        for number, part in parts:
            body = encode_part(
                part,
                f"{path}.parts[{number}]",
                self._losses,
                own=self._own,
                foreign_files=self._foreign_files,
            )
            if body is not None:
                content.append(body)
        return content

    def _speaker(self, message: Message, path: str) -> Iterator[object]:
        """A user's or system's message from elsewhere: results and words in their order."""
        pending: list[tuple[int, Part]] = []
        for number, part in enumerate(message.parts):
            if not isinstance(part, ToolResult | ServerBlock):
                pending.append((number, part))
                continue
            yield from self._words(message, pending, path)
            pending = []
            if isinstance(part, ToolResult):
                yield self._result(part, f"{path}.parts[{number}]")
            elif part.origin.dialect == NAME:
                yield Raw(part.data.encode())
        yield from self._words(message, pending, path)

    def _words(
        self, message: Message, parts: list[tuple[int, Part]], path: str
    ) -> Iterator[JsonObject]:
        content = self._content(parts, path)
        if not content:
            return
        only = parts[0][1]
        if len(parts) == 1 and isinstance(only, Text) and not words(only.kept):
            yield {"role": message.role, "content": only.text}
        else:
            yield {"role": message.role, "content": content}

    def _result(self, part: ToolResult, path: str) -> JsonObject:
        if not self._own:
            if part.is_error:
                self._losses.add(f"{path}.is_error", "error flag", "told by the text alone")
            if part.cache is not None:
                self._losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
        output: object = part.text
        plain = all(isinstance(inner, Text) for inner in part.parts) and len(part.parts) < 2
        if "list" in words(part.kept) or not plain:
            output = self._content(list(enumerate(part.parts)), path)
        elif part.parts and not self._own:
            self._content(list(enumerate(part.parts)), path)
        return replay(result_item(part, output), part.kept)

    def _assistant(self, message: Message, path: str) -> Iterator[object]:
        number = 0
        for group in message_groups(message.parts):
            if isinstance(group, list):
                yield from self._said(group, path, number)
                number += len(group)
                continue
            found = self._made(group, f"{path}.parts[{number}]")
            number += 1
            if found is not None:
                yield found

    def _said(self, parts: list[Text | Refusal], path: str, number: int) -> Iterator[JsonObject]:
        last = parts[-1]
        sealed = own_seal(last.seal, NAME)
        if words(last.kept) and (self._own or "id" in sealed):
            self._report(parts, path, number)
            yield without_our_id(message_item(parts))
            return
        self._report(parts, path, number, easy=True)
        for part in parts:
            # A list of output parts needs an item id; a plain text of the assistant does not.
            if part.text:
                phase = {"phase": sealed["phase"]} if "phase" in sealed else {}
                yield {"role": "assistant", "content": part.text, **phase}

    def _report(
        self, parts: list[Text | Refusal], path: str, number: int, *, easy: bool = False
    ) -> None:
        for offset, part in enumerate(parts):
            place = f"{path}.parts[{number + offset}]"
            if isinstance(part, Refusal):
                if easy:
                    self._losses.add(f"{place}.refusal", "refusal mark", "sent as plain text")
                continue
            if part.cache is not None:
                self._losses.add(f"{place}.cache", "cache mark", "this format caches by itself")
            for index, source in enumerate(part.citations):
                if easy or source.dialect != NAME:
                    self._losses.add(
                        f"{place}.citations[{index}]", "citation", "a plain text has none"
                    )

    def _made(self, part: Part, path: str) -> object | None:
        match part:
            case Thinking():
                return self._thought(part, path)
            case ToolCall():
                return self._call(part, path)
            case ServerBlock():
                return Raw(part.data.encode()) if part.origin.dialect == NAME else None
            case Media() if part.kept is not None and part.kept.dialect == NAME:
                return image_item(part)
            case _:
                self._losses.add(path, type(part).__name__, "an assistant cannot say it here")
                return None

    def _thought(self, part: Thinking, path: str) -> JsonObject | None:
        sealed = own_seal(part.seal, NAME)
        if (self._own and words(part.kept)) or sealed:
            return without_our_id(reasoning_item(part))
        self._losses.add(path, "reasoning", "only the vendor's own reasoning items are taken back")
        return None

    def _call(self, part: ToolCall, path: str) -> JsonObject:
        if self._own:
            return without_our_id(call_item(part, part.name, part.arguments))
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


def _is_item(kept: Kept | None) -> bool:
    return any(word in ("item", "string") for word in words(kept))


def encode_part(
    part: Part, path: str, losses: Losses, *, own: bool, foreign_files: bool = False
) -> JsonObject | None:
    """A content part, or None (and a loss) for what cannot stand here."""
    match part:
        case Text():
            if not own:
                _report_text(part, path, losses)
            return replay(text_body(part), part.kept)
        case Media():
            mine = own or (part.kept is not None and part.kept.dialect == NAME)
            if not mine and not takes_media(part, path, losses, foreign_files):
                return None
            if part.cache is not None and not own:
                losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
            body = replay(media_body(part), part.kept)
            if not mine:
                complete_media(part, body)
                if foreign_files:
                    body.pop("file_id", None)
            return body
        case ServerBlock():
            return parse_object(part.data, path) if part.origin.dialect == NAME else None
        case _:
            losses.add(path, type(part).__name__, "it cannot stand in a message of this role")
            return None


def text_body(part: Text) -> JsonObject:
    """A text as a content part."""
    return {"type": "input_text", "text": part.text}


def _report_text(part: Text, path: str, losses: Losses) -> None:
    if part.cache is not None:
        losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
    for number, _ in enumerate(part.citations):
        losses.add(f"{path}.citations[{number}]", "citation", "only answers carry citations here")
