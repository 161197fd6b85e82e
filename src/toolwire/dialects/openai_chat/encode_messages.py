"""Chat messages, written."""

from collections.abc import Sequence

from toolwire.dialects.openai_chat.assistant import write_assistant
from toolwire.dialects.openai_chat.leftovers import Leftovers, scatter
from toolwire.dialects.openai_chat.wire import NAME
from toolwire.dialects.openai_chat.write_parts import write_media, write_text
from toolwire.dialects.openai_chat.writing import Writing
from toolwire.messages import (
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
from toolwire.request import JsonObject, ModelRequest
from toolwire.wire.json_access import parse

_ATTACHED = "The result is attached below."


def encode_messages(request: ModelRequest, to: Writing) -> list[JsonObject]:
    """The whole conversation, instructions first."""
    written: list[JsonObject] = []
    if request.system:
        parts = _parts(request.system, "system", to)
        written.append({"role": to.quirks.system_role, "content": _content(parts, Leftovers())})
    for number, message in enumerate(request.messages):
        path = f"messages[{number}]"
        match message.role:
            case "system":
                written.append(_spoken(message, _system_role(message, to), path, to))
            case "assistant":
                found = write_assistant(message, path, to)
                if found is not None:
                    written.append(found)
            case "user":
                written.extend(_user(message, path, to))
    if to.quirks.assistant_between_results_and_user and not to.verbatim:
        return _with_assistant_between(written)
    return written


def _system_role(message: Message, to: Writing) -> str:
    if to.verbatim:
        return "developer" if "developer" in scatter(message.kept).words else "system"
    return to.quirks.system_role


def _spoken(message: Message, role: str, path: str, to: Writing) -> JsonObject:
    left = scatter(message.kept)
    return _whole(left, role, _content(_parts(message.parts, path, to), left))


def _whole(left: Leftovers, role: str, content: object) -> JsonObject:
    written: JsonObject = {"role": role, **left.outer}
    if content is not None or "null" in left.words:
        written["content"] = content
    return written


def _user(message: Message, path: str, to: Writing) -> list[JsonObject]:
    written: list[JsonObject] = []
    media: list[JsonObject] = []
    others: list[tuple[int, Part]] = []
    for number, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            place = f"{path}.parts[{number}]"
            written.append(_result(part, place, media, to))
            if others:
                to.losses.add(place, "order", "results stand before the other words of a turn")
        else:
            others.append((number, part))
    if not others and not media and message.parts:
        return written
    left = scatter(message.kept)
    parts = [*media, *_placed_parts(others, path, to)]
    return [*written, _whole(left, "user", _content(parts, left))]


def _result(result: ToolResult, path: str, media: list[JsonObject], to: Writing) -> JsonObject:
    left = scatter(result.kept)
    words = left.words
    written: JsonObject = {"role": "function" if "function" in words else "tool"}
    if "no_id" not in words or not to.verbatim:
        written["tool_call_id"] = result.call_id
    if "named" in words:
        written["name"] = to.name(result.name)
    parts = result.parts if to.verbatim else _without_media(result.parts, path, media, to)
    content = _content(_parts(parts, path, to), left)
    if not to.verbatim:
        content = _told(result, content, bool(media), path, to)
        to.mark(written, result.cache, path)
    return {**_whole(left, "tool", content), **written}


def _told(result: ToolResult, content: object, attached: bool, path: str, to: Writing) -> object:
    if result.is_error:
        to.losses.add(f"{path}.is_error", "error flag", "chat results have only their text")
    if content:
        return content
    if result.is_error:
        return "Error"
    return _ATTACHED if attached and any(isinstance(p, Media) for p in result.parts) else ""


def _without_media(
    parts: Sequence[ResultPart], path: str, media: list[JsonObject], to: Writing
) -> list[ResultPart]:
    """The parts a tool message can hold; media is put aside for a user message."""
    kept: list[ResultPart] = []
    for number, part in enumerate(parts):
        if not isinstance(part, Media):
            kept.append(part)
            continue
        place = f"{path}.parts[{number}]"
        found = write_media(part, place, to)
        if found is not None:
            media.append(found)
            to.losses.add(place, f"{part.kind} in a result", "sent in a user message after it")
    return kept


def _parts(parts: Sequence[Part], path: str, to: Writing) -> list[JsonObject]:
    return _placed_parts(list(enumerate(parts)), path, to)


def _placed_parts(parts: list[tuple[int, Part]], path: str, to: Writing) -> list[JsonObject]:
    written: list[JsonObject] = []
    for number, part in parts:
        place = f"{path}[{number}]" if path == "system" else f"{path}.parts[{number}]"
        match part:
            case Text():
                if part.citations:
                    to.losses.add(f"{place}.citations", "citations", "requests carry none")
                if part.text or to.verbatim:
                    written.append(write_text(part, place, to))
            case Media():
                found = write_media(part, place, to)
                if found is not None:
                    written.append(found)
            case ServerBlock():
                if part.origin.dialect == NAME:
                    written.append(parse(part.data, "part"))
            case Thinking() | Refusal() | ToolCall() | ToolResult():
                to.losses.add(place, type(part).__name__, "only an assistant says it")
    return written


def _content(parts: list[JsonObject], left: Leftovers) -> object:
    """A string where it says all, else a list; None for a message without content."""
    if "list" in left.words:
        return parts
    if not parts:
        return None if left.words & {"absent", "null"} else ""
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        return parts[0]["text"]
    return parts


def _with_assistant_between(messages: list[JsonObject]) -> list[JsonObject]:
    written: list[JsonObject] = []
    for message in messages:
        if message["role"] == "user" and written and written[-1]["role"] == "tool":
            written.append({"role": "assistant", "content": "I have the results."})
        written.append(message)
    return written
