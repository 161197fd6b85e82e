"""Prompt caching: cache marks on stable prefixes, and a report of what changed."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.messages import CacheMark, Media, Message, Part, Text, ToolCall, ToolResult
from toolwire.model import Model
from toolwire.request import AnyTool, ModelRequest, ToolSpec
from toolwire.wire.json_access import encode

_MARKED_TURNS = 2
"""User turns that are marked: the newest, and the end of the previous request."""
_MARKING = frozenset({"anthropic-messages"})
"""Formats whose servers cache only up to a mark; the others cache by themselves."""

Markable: TypeAlias = Text | Media | ToolCall | ToolResult | ToolSpec
_T = TypeVar("_T")


def takes_marks(dialect: str, quirks: Quirks) -> bool:
    """Whether a server caches by marks."""
    return dialect in _MARKING or quirks.cache_marks


def marked(request: ModelRequest, dialect: str, quirks: Quirks, *, ttl: str = "") -> ModelRequest:
    """The request with four marks: after the tools, the system prompt and the last two user turns.

    Marks move with every turn, but no vendor counts them to the cached prefix. Store the
    request without them; mark only what is sent.
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


def with_cache_marks(ask: Model, dialect: str, quirks: Quirks, *, ttl: str = "") -> Model:
    """A model whose requests get cache marks."""
    if not takes_marks(dialect, quirks):
        return ask
    return lambda request: ask(marked(request, dialect, quirks, ttl=ttl))


def unmarked(request: ModelRequest) -> ModelRequest:
    """The request without marks; unmarked values stay the same objects."""
    return msgspec.structs.replace(
        request,
        tools=_each(request.tools, _bare_tool),
        system=_each(request.system, _bare),
        messages=_each(request.messages, bare_message),
    )


def bare_message(message: Message) -> Message:
    """The message without marks."""
    for part in message.parts:
        # Called on the whole conversation for every request: unmarked messages have to be cheap.
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
    """The values with a mark on the last that can carry one; empty text cannot."""
    for at in range(len(values) - 1, -1, -1):
        value = values[at]
        if isinstance(value, Markable) and not (isinstance(value, Text) and not value.text):
            return (*values[:at], msgspec.structs.replace(value, cache=mark), *values[at + 1 :])
    return values


_SETTING = "a setting (tool choice, reasoning or output form)"
_BODY_SETTINGS = ("tool_choice", "toolConfig", "thinking", "reasoning", "reasoning_effort")


class PrefixChange(msgspec.Struct, frozen=True, kw_only=True):
    """Two requests in a row, compared in the order in which a model reads them.

    That order is model, tools, system prompt, settings that enter the prompt, messages; cache marks
    do not count. The bytes of our own encoding of each piece are compared: vendors differ in
    spelling and order, but cache by the same pieces.
    """

    previous: int
    """Bytes of the earlier request."""
    shared: int
    """Bytes of it with which the later one begins."""
    following: int
    """Bytes of the later request."""
    why: str = ""
    """Description of the first change; empty if the earlier request is a prefix."""

    @property
    def stable(self) -> bool:
        """Whether the whole earlier request is a prefix of the later one."""
        return not self.why


class Stability(msgspec.Struct, frozen=True, kw_only=True):
    """The prefixes of a whole session, summed up."""

    requests: int = 0
    bytes: int = 0
    """Of all requests that had a successor."""
    shared: int = 0
    changes: tuple[str, ...] = ()
    """Why prefixes changed, with the number of the request, counting from 1."""

    @property
    def share(self) -> float:
        """Share of the bytes that were sent again as a prefix; 1 if nothing was compared."""
        return self.shared / self.bytes if self.bytes else 1.0


class PrefixMeter:
    """Compares each request with the one before, at the cost of what is new."""

    def __init__(self) -> None:
        self._before: ModelRequest | None = None
        self._pieces: list[_Piece] = []
        self._bytes = 0
        self.total = Stability()

    def add(self, request: ModelRequest) -> PrefixChange | None:
        """The change since the last request; None for the first."""
        before, self._before = self._before, request
        if before is not None and _continues(before, request):
            change = self._grown(request, len(before.messages))
        else:
            pieces = list(_pieces(request))
            change = _compared(self._pieces, pieces)
            self._pieces, self._bytes = pieces, change.following
        if before is None:
            self.total = Stability(requests=1)
            return None
        self.total = _summed(self.total, change)
        return change

    def _grown(self, request: ModelRequest, known: int) -> PrefixChange:
        new = [
            _message_piece(at, message)
            for at, message in enumerate(request.messages[known:], start=known)
        ]
        shared = self._bytes
        self._pieces += new
        self._bytes += sum(piece.weigh() for piece in new)
        return PrefixChange(previous=shared, shared=shared, following=self._bytes)


def compared(previous: ModelRequest, following: ModelRequest) -> PrefixChange:
    """The change from one request to the next."""
    return _compared(list(_pieces(previous)), list(_pieces(following)))


def compared_bodies(previous: bytes, following: bytes) -> PrefixChange:
    """The same for two encoded bodies of one wire format, whichever it is."""
    return _compared(list(_body_pieces(previous)), list(_body_pieces(following)))


class _Piece:
    """One piece of a prompt; its bytes are encoded on demand, its size is cached."""

    __slots__ = ("_value", "name", "size")

    def __init__(self, name: str, value: object) -> None:
        self.name = name
        self._value = value
        self.size = -1

    def same(self, other: "_Piece") -> bool:
        """Whether both pieces have the same name and bytes."""
        if self.name != other.name:
            return False
        return self._value is other._value or self._value == other._value

    def written(self) -> bytes:
        """The bytes that count."""
        value = self._value
        data = encode(bare_message(value) if isinstance(value, Message) else value)
        self.size = len(data)
        return data

    def weigh(self) -> int:
        """How many bytes those are."""
        return self.size if self.size >= 0 else len(self.written())


def _continues(before: ModelRequest, request: ModelRequest) -> bool:
    """Whether only messages were added; equal values that are one object cost nothing."""
    return (
        before.messages == request.messages[: len(before.messages)]
        and (before.model, before.tools, before.system)
        == (request.model, request.tools, request.system)
        and _settings(before) == _settings(request)
    )


def _compared(previous: list[_Piece], following: list[_Piece]) -> PrefixChange:
    shared, why = 0, ""
    for at, piece in enumerate(previous):
        other = following[at] if at < len(following) else None
        if other is not None and (piece is other or piece.same(other)):
            shared += piece.weigh()
            continue
        old, new = piece.written(), other.written() if other else b""
        if other is not None and piece.name == other.name and old == new:
            # Only marks differ.
            shared += len(old)
            continue
        if other is not None and piece.name == other.name:
            shared += _common(old, new)
        why = _why(at, previous, following)
        break
    return PrefixChange(
        previous=sum(piece.weigh() for piece in previous),
        shared=shared,
        following=sum(piece.weigh() for piece in following),
        why=why,
    )


def _common(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _why(at: int, previous: list[_Piece], following: list[_Piece]) -> str:
    piece = previous[at]
    if at >= len(following):
        return f"{piece.name} is gone; {len(previous) - at} pieces fewer"
    other = following[at]
    if piece.name == other.name:
        return f"{piece.name} changed"
    if any(later.name == piece.name for later in following[at:]):
        return f"{other.name} was added before {piece.name}"
    return f"{piece.name} is gone"


def _summed(total: Stability, change: PrefixChange) -> Stability:
    number = total.requests + 1
    change_notes = (f"request {number}: {change.why}",) if change.why else ()
    return Stability(
        requests=number,
        bytes=total.bytes + change.previous,
        shared=total.shared + change.shared,
        changes=(*total.changes, *change_notes),
    )


def _pieces(request: ModelRequest) -> Iterator[_Piece]:
    bare = unmarked(msgspec.structs.replace(request, messages=()))
    yield _Piece("the model", bare.model)
    for tool in bare.tools:
        yield _Piece(f"tool {_tool_name(tool)}", tool)
    for at, text in enumerate(bare.system):
        yield _Piece("the system prompt" if at == 0 else f"system text {at + 1}", text)
    yield _Piece(_SETTING, _settings(bare))
    for at, message in enumerate(request.messages):
        yield _message_piece(at, message)


def _message_piece(at: int, message: Message) -> _Piece:
    return _Piece(f"message {at + 1} ({message.role})", message)


def _settings(request: ModelRequest) -> tuple[object, ...]:
    return (request.tool_choice, request.parallel_calls, request.reasoning, request.output)


def _tool_name(tool: AnyTool) -> str:
    return getattr(tool, "name", "") or getattr(tool, "kind", "")


def _body_pieces(body: bytes) -> Iterator[_Piece]:
    whole = cast(dict[str, Any], msgspec.json.decode(body))
    inner = whole.get("request")
    fields = cast(dict[str, Any], inner) if isinstance(inner, dict) else whole
    yield _Piece("the model", whole.get("model"))
    yield _Piece("the tools", _without_marks(fields.get("tools")))
    for name in ("system", "systemInstruction", "instructions"):
        if name in fields:
            yield _Piece("the system prompt", _without_marks(fields[name]))
    settings = [fields.get(name) for name in _BODY_SETTINGS]
    yield _Piece(_SETTING, settings)
    for name in ("messages", "contents", "input"):
        listed = fields.get(name)
        if isinstance(listed, list):
            for at, message in enumerate(cast(list[Any], listed)):
                yield _Piece(f"message {at + 1}", _without_marks(message))


def _without_marks(value: Any) -> Any:
    """Without cache marks, and a lone text as a string: a mark makes some formats write a list."""
    match value:
        case dict():
            members = cast(dict[str, Any], value)
            return {
                key: _without_marks(one) for key, one in members.items() if key != "cache_control"
            }
        case list():
            items = [_without_marks(one) for one in cast(list[Any], value)]
            match items:
                case [{"type": "text", "text": str(text), **rest}] if not rest:
                    return text
                case _:
                    return items
        case _:
            return value
