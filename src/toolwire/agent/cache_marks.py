"""Where a vendor may cut the prompt for its cache: marks on what stays the same."""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.messages import CacheMark, Media, Message, Part, Text, ToolCall, ToolResult
from toolwire.model import Model
from toolwire.request import AnyTool, ModelRequest, ToolSpec

_MARKED_TURNS = 2
"""The newest turn is written to the cache, the one before is where the last request ended."""
_MARKING = frozenset({"anthropic-messages"})
"""Formats whose servers cache only up to a mark; the others cache by themselves."""

Markable: TypeAlias = Text | Media | ToolCall | ToolResult | ToolSpec
_T = TypeVar("_T")


def takes_marks(dialect: str, quirks: Quirks) -> bool:
    """Whether a server caches by marks."""
    return dialect in _MARKING or quirks.cache_marks


def marked(request: ModelRequest, dialect: str, quirks: Quirks, *, ttl: str = "") -> ModelRequest:
    """The request with four marks: after the tools, the system prompt and the last two user turns.

    Marks move with every turn, but no vendor counts them to the cached prefix. Keep the request
    without them; mark what is sent.
    """
    if not takes_marks(dialect, quirks):
        return request
    request = unmarked(request)
    mark = CacheMark(ttl)
    turns = [at for at, message in enumerate(request.messages) if message.role == "user"]
    messages = list(request.messages)
    for at in turns[-_MARKED_TURNS:]:
        messages[at] = _marked_message(messages[at], mark)
    return msgspec.structs.replace(
        request,
        tools=_last_marked(request.tools, mark),
        system=_last_marked(request.system, mark),
        messages=tuple(messages),
    )


def marking(ask: Model, dialect: str, quirks: Quirks, *, ttl: str = "") -> Model:
    """A model whose requests are marked on their way."""
    if not takes_marks(dialect, quirks):
        return ask
    return lambda request: ask(marked(request, dialect, quirks, ttl=ttl))


def unmarked(request: ModelRequest) -> ModelRequest:
    """The request without any mark; what has none stays the same object."""
    return msgspec.structs.replace(
        request,
        tools=_each(request.tools, _bare_tool),
        system=_each(request.system, _bare),
        messages=_each(request.messages, bare_message),
    )


def bare_message(message: Message) -> Message:
    """The message without marks."""
    for part in message.parts:
        # Every request looks at the whole conversation: what has no mark is passed over quickly.
        if _is_marked(part) or (
            type(part) is ToolResult and any(_is_marked(inner) for inner in part.parts)
        ):
            bare = tuple(_bare_part(one) for one in message.parts)
            return msgspec.structs.replace(message, parts=bare)
    return message


def _is_marked(part: Part) -> bool:
    return getattr(part, "cache", None) is not None


def _each(values: tuple[_T, ...], change: Callable[[_T], _T]) -> tuple[_T, ...]:
    changed = tuple(change(value) for value in values)
    same = all(new is old for new, old in zip(changed, values, strict=True))
    return values if same else changed


def _bare(value: Text) -> Text:
    return value if value.cache is None else msgspec.structs.replace(value, cache=None)


def _bare_tool(tool: AnyTool) -> AnyTool:
    if isinstance(tool, ToolSpec) and tool.cache is not None:
        return msgspec.structs.replace(tool, cache=None)
    return tool


def _bare_part(part: Part) -> Part:
    match part:
        case Text():
            return _bare(part)
        case Media() | ToolCall():
            return part if part.cache is None else msgspec.structs.replace(part, cache=None)
        case ToolResult():
            inner = tuple(_bare_part(one) for one in part.parts)
            return msgspec.structs.replace(part, cache=None, parts=inner)
        case _:
            return part


def _marked_message(message: Message, mark: CacheMark) -> Message:
    return msgspec.structs.replace(message, parts=_last_marked(message.parts, mark))


def _last_marked(values: tuple[_T, ...], mark: CacheMark) -> tuple[_T, ...]:
    """The last value that can bear a mark gets it; empty text can not."""
    for at in range(len(values) - 1, -1, -1):
        value = values[at]
        if isinstance(value, Markable) and not (isinstance(value, Text) and not value.text):
            return (*values[:at], msgspec.structs.replace(value, cache=mark), *values[at + 1 :])
    return values
