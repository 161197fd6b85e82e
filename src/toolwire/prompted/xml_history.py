"""Calls and results of a conversation as the text that stands for them in this style."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from toolwire.messages import (
    Media,
    Message,
    Part,
    Text,
    ToolCall,
    ToolResult,
    calls_without_result,
)
from toolwire.prompted.xml_render import arguments_of, render_call
from toolwire.prompted.xml_tools import XmlTools

_NOTHING = "(tool did not return anything)"
_LONGEST_KEY = 80
_KEYS = (
    "path",
    "file_path",
    "target_file",
    "absolute_path",
    "dir_path",
    "command",
    "query",
    "pattern",
    "regex",
    "url",
    "uri",
    "question",
    "name",
)


def as_text(messages: Iterable[Message], tools: XmlTools) -> tuple[Message, ...]:
    """The conversation without native calls and results; nothing else in it changes."""
    messages = tuple(messages)
    calls: dict[str, ToolCall] = {}
    open_ids = {call.id for call in calls_without_result(messages)}
    waiting: list[Part] = []
    out: list[Message] = []
    for message in messages:
        if waiting and message.role != "user":
            out.append(Message(role="user", parts=tuple(waiting)))
            waiting = []
        for call in message.calls:
            calls[call.id] = call
        if not message.calls and not message.results and not waiting:
            out.append(message)
            continue
        spoken = tuple(_joined(_parts(message, tools, calls)))
        out.append(replace(message, parts=(*waiting, *spoken), kept=None))
        waiting = [_unanswered(call, tools) for call in message.calls if call.id in open_ids]
    if waiting:
        out.append(Message(role="user", parts=tuple(waiting)))
    return tuple(out)


def _parts(message: Message, tools: XmlTools, calls: dict[str, ToolCall]) -> Iterator[Part]:
    for part in message.parts:
        match part:
            case ToolCall():
                yield Text(render_call(part, tools), cache=part.cache)
            case ToolResult():
                yield from _result(part, calls.get(part.call_id), tools)
            case _:
                yield part


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    """Neighbouring plain texts as one, so that every call begins a line."""
    last: Text | None = None
    for part in parts:
        if not isinstance(part, Text):
            if last is not None:
                yield last
            last = None
            yield part
        elif last is None:
            last = part
        elif last.seal or last.kept or last.citations or last.cache:
            yield last
            last = replace(part, text=f"\n\n{part.text}")
        elif part.seal or part.kept or part.citations:
            yield replace(last, text=f"{last.text}\n\n")
            last = part
        else:
            last = replace(part, text=f"{last.text}\n\n{part.text}")
    if last is not None:
        yield last


def _result(result: ToolResult, call: ToolCall | None, tools: XmlTools) -> Iterator[Part]:
    said = "\n".join(part.text for part in result.parts if isinstance(part, Text))
    media = [part for part in result.parts if isinstance(part, Media)]
    if not said.strip():
        said = "" if media else _NOTHING
    if result.is_error:
        said = f"<error>{said or result.outcome}</error>"
    head = _head(call, result.name, tools)
    yield Text(f"{head}\n{said}" if said else head, cache=result.cache)
    yield from media


def _unanswered(call: ToolCall, tools: XmlTools) -> Text:
    why = "it was interrupted, and may have taken effect" if call.complete else "it was cut off"
    ran = "no result is known" if call.complete else "it did not run"
    return Text(f"{_head(call, call.name, tools)}\n<error>{ran}: {why}</error>")


def _head(call: ToolCall | None, name: str, tools: XmlTools) -> str:
    if call is None:
        return f"[{name or 'tool'}] Result:"
    tag = tools.tag(call.name, call.namespace)
    key = _key_argument(call)
    return f"[{tag} for '{key}'] Result:" if key else f"[{tag}] Result:"


def _key_argument(call: ToolCall) -> str:
    arguments = arguments_of(call) or {}
    texts = {name: value for name, value in arguments.items() if isinstance(value, str)}
    name = next((key for key in (*_KEYS, *texts) if texts.get(key)), "")
    key = " ".join(texts.get(name, "").split())
    return key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 1] + "…"
