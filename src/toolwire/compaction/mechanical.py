"""Shortening without a model: long parts are cut, old exchanges replaced by a list of facts."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, cast

import msgspec

from toolwire.compaction.plan import (
    CONTEXT,
    cuts,
    front_of,
    is_prompt,
    prompts_before,
    snapshot,
    with_note,
)
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
from toolwire.wire.json_access import object_in

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
            return msgspec.structs.replace(
                part, arguments=_clipped_arguments(part, tokens), kept=None
            )
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


def _clipped_arguments(call: ToolCall, tokens: int) -> str:
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


OPENING = "<earlier_conversation>"
_CLOSING = "</earlier_conversation>"
_HEADING = "Earlier parts of this conversation were left out to make room. Known of them:"
_PATHS = ("absolute_path", "file_path", "path", "dir_path", "paths")
_MARKS = {"done": "[x]", "in_progress": "[~]", "cancelled": "[-]"}
_LINE = 200


class _Section(NamedTuple):
    share: int
    """Of the room, beside the shares of the others."""
    heading: str
    lines: list[str]


def facts(messages: Sequence[Message], tokens: int, *, latest: bool = False) -> str:
    """The facts in at most so many tokens; `latest` adds the last results."""
    frame = f"{OPENING}\n{_HEADING}\n\n\n{_CLOSING}"
    room = max(0, tokens - of_text(frame))
    # Half for the newest: the model has not answered it yet.
    recent = clip(_recent(messages), room // 2) if latest else ""
    room -= of_text(recent)
    earlier = clip(_earlier(messages), room * 2 // 5)
    room -= of_text(earlier)
    sections = [
        _Section(3, "The user asked:", _prompts(messages)),
        _Section(3, "The list of steps was last:", _steps(messages)),
        _Section(2, "Files named in calls:", _files(messages)),
        _Section(1, "Commands run:", _commands(messages)),
    ]
    shares = sum(section.share for section in sections if section.lines)
    listed = (_listed(section, room * section.share // max(shares, 1)) for section in sections)
    words = "\n".join(filter(None, (earlier, *listed, recent)))
    return clip(f"{OPENING}\n{_HEADING}\n{words}\n{_CLOSING}", tokens)


def _listed(section: _Section, tokens: int) -> str:
    """The heading, the first line and as many of the newest as there is room for."""
    if not section.lines:
        return ""
    first, *later = (f"- {line}" for line in section.lines)
    room = tokens - of_text(f"{section.heading}\n{first}\n- … and {len(later)} more\n") - 1
    if room < 0:
        return ""
    kept: list[str] = []
    for line in reversed(later):
        room -= of_text(line) + 1
        if room < 0:
            break
        kept.append(line)
    missing = len(later) - len(kept)
    more = [f"- … and {missing} more"] if missing else []
    return "\n".join((section.heading, first, *more, *reversed(kept)))


def _earlier(messages: Sequence[Message]) -> str:
    """The last summary or list of facts, which replaces still earlier parts."""
    for message in reversed(messages):
        if message.role != "user":
            continue
        for part in message.parts:
            text = getattr(part, "text", "")
            if text.startswith(OPENING):
                return text.removeprefix(OPENING).removesuffix(_CLOSING).strip()
            if text.startswith("<state_snapshot>"):
                return snapshot(text) or ""
    return ""


def _prompts(messages: Sequence[Message]) -> list[str]:
    texts = (message.text.strip() for message in messages if is_prompt(message))
    return [
        _line(text) for text in texts if text and not text.startswith((OPENING, "<state_snapshot>"))
    ]


def _files(messages: Sequence[Message]) -> list[str]:
    used: dict[str, list[str]] = {}
    for call, arguments in _arguments(messages):
        for member in _PATHS:
            named = arguments.get(member)
            paths = cast(list[object], named) if isinstance(named, list) else [named]
            for path in paths:
                if isinstance(path, str) and path:
                    tools = used.pop(path, [])
                    used[path] = tools if call.name in tools else [*tools, call.name]
    return [f"{_line(path)} ({', '.join(tools)})" for path, tools in used.items()]


def _commands(messages: Sequence[Message]) -> list[str]:
    found = (arguments.get("command") for _, arguments in _arguments(messages))
    return list(dict.fromkeys(_line(command) for command in found if isinstance(command, str)))


def _steps(messages: Sequence[Message]) -> list[str]:
    for message in reversed(messages):
        for call in reversed(message.calls):
            items = (object_in(call.arguments) or {}).get("items") if call.name == "todo" else None
            if isinstance(items, list):
                return [_step(item) for item in cast(list[object], items)]
    return []


def _step(item: object) -> str:
    if not isinstance(item, dict):
        return _line(str(item))
    members = cast(dict[str, object], item)
    mark = _MARKS.get(str(members.get("status", "")), "[ ]")
    return f"{mark} {_line(str(members.get('text', '')))}"


def _recent(messages: Sequence[Message]) -> str:
    for message in reversed(messages):
        if message.results:
            answers = "\n".join(
                f"{result.name or 'a call'}: {result.text}" for result in message.results
            )
            return f"The last calls answered:\n{answers}"
        if is_prompt(message):
            break
    return ""


def _arguments(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, dict[str, object]]]:
    for message in messages:
        for call in message.calls:
            yield call, object_in(call.arguments or "{}") or {}


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


SMALLEST = 400
"""Tokens that a conversation can always be brought down to."""
_SMALLEST_PART = 24
_THANKS = 24
"""Tokens of the model's acknowledgement, and some room."""


def shorten_mechanically(
    messages: Sequence[Message], *, target: int, context: int = CONTEXT
) -> tuple[Message, ...]:
    """The conversation in at most `target` tokens (`SMALLEST` if that is more).

    Whole exchanges are dropped, oldest first, and listed as facts. The user's last message
    stays as it is unless it fills half of the target by itself.
    """
    messages = tuple(messages)
    target = max(target, SMALLEST)
    if weight(messages) <= target:
        return messages
    front = front_of(messages, context)
    cap = target // 4
    while cap >= _SMALLEST_PART:
        fitting = _dropped(messages, front, cap, target)
        if fitting is not None:
            return fitting
        cap //= 2
    return _facts_only(messages, front, target)


def weight(messages: Sequence[Message]) -> int:
    """Tokens of messages, estimated."""
    return sum(map(of_message, messages))


def _dropped(
    messages: tuple[Message, ...], front: int, cap: int, target: int
) -> tuple[Message, ...] | None:
    """The most that fits when no part is above `cap` tokens; None where even the last step does
    not.
    """
    spared = {id(message) for message in _last_prompts(messages, front, target)}
    cut_down = tuple(
        message if id(message) in spared or position < front else shorter(message, cap)
        for position, message in enumerate(messages)
    )
    sums = [0, *accumulate(map(of_message, cut_down))]
    if sums[-1] <= target:
        return cut_down
    room = target - sums[front] - _facts_size(target) - _THANKS
    for position in cuts(messages, front):
        if position == front or sums[-1] - sums[position] > room:
            continue
        prompts = ()
        if not is_prompt(messages[position]):
            prompts = _affordable(prompts_before(cut_down, front, position), target)
        if sums[-1] - sums[position] + weight(prompts) <= room:
            words = facts(messages[front:position], _facts_size(target))
            return (*cut_down[:front], *with_note(words, prompts, cut_down[position:]))
    return None


def _facts_only(messages: tuple[Message, ...], front: int, target: int) -> tuple[Message, ...]:
    """Only the head, the facts and the user's last message."""
    share = target // 4 // max(front, 1)
    kept = tuple(as_text(message, share) for message in messages[:front])
    if front > 8:
        kept = (as_text(_merged(kept), target // 4),)
    prompts = _last_prompts(messages, front, target)
    words = facts(messages[front:], _facts_size(target), latest=True)
    return (*kept, *with_note(words, prompts, ()))


def _last_prompts(messages: tuple[Message, ...], front: int, target: int) -> tuple[Message, ...]:
    return _affordable(prompts_before(messages, front, len(messages)), target)


def _affordable(prompts: tuple[Message, ...], target: int) -> tuple[Message, ...]:
    """All user messages if they fill no more than half, else the last of them."""
    if not prompts or weight(prompts) <= target // 2:
        return prompts
    return (as_text(prompts[-1], target // 2),)


def _merged(messages: tuple[Message, ...]) -> Message:
    parts = tuple(part for message in messages for part in message.parts)
    return msgspec.structs.replace(messages[0], parts=parts)


def _facts_size(target: int) -> int:
    return target // 8
