"""Long parts cut: the two ends of a text, and a note on what is left out."""

from typing import cast

import msgspec

from toolwire.compaction.tokens import of_message, of_part, of_text
from toolwire.messages import (
    CallKind,
    Media,
    Message,
    Part,
    Refusal,
    ResultPart,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_HEAD_PART = 3
_HEAVIEST = 5
"""Most tokens of a letter, relative to plain English."""


def clip(text: str, tokens: int) -> str:
    """The text, or a third of what fits from its start and the rest from its end."""
    if of_text(text) <= tokens:
        return text
    mark = "\n[… {:,} characters left out …]\n"
    room = tokens - of_text(mark.format(len(text)))
    if room < 1:
        return text[: max(tokens, 0) * 4 // _HEAVIEST]
    head, tail = _ends(text, room)
    return head + mark.format(len(text) - len(head) - len(tail)) + tail


def _ends(text: str, tokens: int) -> tuple[str, str]:
    """The longest two ends that fit together."""
    low, high = 0, min(len(text), tokens * 4)
    while low < high:
        middle = (low + high + 1) // 2
        if of_text("".join(_cut_to(text, middle))) <= tokens:
            low = middle
        else:
            high = middle - 1
    return _cut_to(text, low)


def _cut_to(text: str, characters: int) -> tuple[str, str]:
    head = characters // _HEAD_PART
    return text[:head], text[len(text) - (characters - head) :]


def shorter(message: Message, tokens: int) -> Message:
    """The message with no part above so many tokens, as far as its parts can be cut at all."""
    if of_message(message) <= tokens:
        return message
    parts = tuple(_part(part, tokens) for part in message.parts)
    return msgspec.structs.replace(message, parts=parts)


def as_text(message: Message, tokens: int) -> Message:
    """The message; one above so many tokens as a single text that is not."""
    if of_message(message) <= tokens:
        return message
    text = "\n".join(filter(None, map(_as_plain_text, message.parts)))
    bare = Message(role=message.role, parts=(Text(""),))
    return Message(role=message.role, parts=(Text(clip(text, tokens - of_message(bare))),))


def _part(part: Part, tokens: int) -> Part:
    if of_part(part) <= tokens:
        return part
    match part:
        case Text():
            # Citations and seals refer to the whole text.
            return Text(clip(part.text, tokens), cache=part.cache)
        case Refusal():
            return Refusal(clip(part.text, tokens))
        case Thinking():
            # A seal signs every word of its thinking.
            return part if part.seal is not None else Thinking(clip(part.text, tokens))
        case Media():
            return Text(_named(part))
        case ToolCall():
            return msgspec.structs.replace(part, arguments=_arguments(part, tokens), kept=None)
        case ToolResult():
            return _result(part, tokens)
        case ServerBlock():
            return part


def _result(result: ToolResult, tokens: int) -> ToolResult:
    share = tokens // max(len(result.parts), 1)
    parts: list[ResultPart] = []
    for part in result.parts:
        if isinstance(part, ServerBlock) or of_part(part) <= share:
            parts.append(part)
        else:
            parts.append(Text(clip(part.text, share) if isinstance(part, Text) else _named(part)))
    return msgspec.structs.replace(result, parts=tuple(parts), kept=None)


def _arguments(call: ToolCall, tokens: int) -> str:
    if call.kind is CallKind.FREEFORM:
        return clip(call.arguments, tokens)
    try:
        value: object = msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return call.arguments
    count = _strings(value)
    return msgspec.json.encode(_clipped(value, max(tokens // max(count, 1), 1))).decode()


def _strings(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(_strings, cast(dict[str, object], value).values()))
    if isinstance(value, list):
        return sum(map(_strings, cast(list[object], value)))
    return isinstance(value, str)


def _clipped(value: object, tokens: int) -> object:
    if isinstance(value, dict):
        members = cast(dict[str, object], value)
        return {key: _clipped(item, tokens) for key, item in members.items()}
    if isinstance(value, list):
        return [_clipped(item, tokens) for item in cast(list[object], value)]
    return clip(value, tokens) if isinstance(value, str) else value


def _as_plain_text(part: Part) -> str:
    match part:
        case Text() | Refusal():
            return part.text
        case Media():
            return _named(part)
        case ToolCall():
            return f"[call of {part.name}: {part.arguments}]"
        case ToolResult():
            return part.text
        case Thinking() | ServerBlock():
            return ""


def _named(media: Media) -> str:
    what = media.name or media.url or media.mime or media.kind.value
    return f"[{media.kind.value} left out: {what[:200]}]"
