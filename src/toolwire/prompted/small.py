"""For models of little strength: the request in few words, their short calls made real again."""

import re
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cache
from pkgutil import get_data
from typing import Any, cast

import msgspec

from toolwire.events import ModelEvent, Notice, ToolCallDelta, ToolCallEnded, ToolCallStarted
from toolwire.messages import Message, Part, Text, ToolCall, ToolResult
from toolwire.model import Model, reading
from toolwire.prompted import json
from toolwire.prompted.small_tools import TOOLS, Ground, shown_tools, to_real, to_shown
from toolwire.request import JsonObject, ModelRequest, ToolChoice, ToolSpec
from toolwire.wire.reading import dump

RESULT_LIMIT = 1600
"""Characters of a result: about 400 tokens, ten seconds of reading on two slow cores."""
MOST_STEPS = 8
"""Calls for one request; then the model must say what it has."""
_MOST_LISTED = 1000
"""Characters of file names that are told with the first request."""

_calls = re.compile(r'^\{"tool": "([^"]+)"', re.MULTILINE).findall
_decode = msgspec.json.Decoder().decode


def wrap(model: Model, new_id: Callable[[], str], ground: Callable[[], Ground]) -> Model:
    """The model with tools, shown to it in the short form; `ground` is asked at every request."""
    listed: list[Ground] = []

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        if not request.tools:
            async with reading(json.wrap(model, new_id)(request)) as events:
                async for event in events:
                    yield event
            return
        now = ground()
        if not listed:
            listed.append(now)
        fitted = fit(request, now, listed=listed[0])
        for notice in fitted.notices:
            yield notice
        inner = json.wrap(model, new_id, told=fitted.told)
        back = _Back(now.root)
        async with reading(inner(fitted.request)) as events:
            async for event in events:
                for told in back.read(event):
                    yield told

    return ask


class Fitted(msgspec.Struct, frozen=True):
    """A request cut down for a small model, and what was left out of it."""

    request: ModelRequest
    told: str
    """The system prompt. It teaches all tools even where a reply is due: the same tools make the
    same bytes, which need not be read again.
    """
    notices: tuple[Notice, ...] = ()


def fit(request: ModelRequest, ground: Ground, *, listed: Ground) -> Fitted:
    """The request with short instructions, short tools and short results.

    `listed` is what the first message tells of the project: it stays the same while the files
    change, so that what was read once need not be read again.
    """
    past = _Past(ground.root, listed)
    messages = tuple(past.message(message) for message in request.messages)
    choice = ToolChoice(mode="none") if past.must_reply else request.tool_choice
    tools = shown_tools(request.tools, ground)
    # What gave the same answer twice is not offered a third time.
    fresh = tuple(tool for tool in tools if tool.name not in past.repeated)
    fitted = msgspec.structs.replace(
        request,
        system=(),
        messages=messages,
        tools=fresh,
        tool_choice=choice,
        parallel_calls=None,
    )
    return Fitted(fitted, _told(tools), tuple(past.notices))


def _told(tools: Sequence[ToolSpec]) -> str:
    offered = {tool.name for tool in tools}
    examples = [block for block in _examples() if set(_calls(block)) <= offered]
    return (
        _text("small.md")
        .replace("{tools}", "\n".join(map(_line, tools)))
        .replace("{examples}", "\n\n".join(examples))
        .rstrip()
    )


@cache
def _text(name: str) -> str:
    return (get_data("toolwire.prompted", name) or b"").decode()


@cache
def _examples() -> tuple[str, ...]:
    return tuple(re.split(r"\n\n(?=Request: )", _text("small_examples.md").strip()))


def _line(tool: ToolSpec) -> str:
    members = cast(JsonObject, tool.parameters.get("properties") or {})
    about = tool.description.strip().partition("\n")[0][:160]
    return f"{tool.name}({', '.join(members)}): {about}"


class _Past:
    """The conversation in short form; what is said of a message depends only on those before it."""

    def __init__(self, root: str, listed: Ground) -> None:
        self._root = root
        self._listed: Ground | None = listed
        self._calls: dict[str, ToolCall] = {}
        self._asked = ""
        self._done: list[tuple[str, str]] = []
        self.notices: list[Notice] = []

    @property
    def must_reply(self) -> bool:
        """The model goes in a circle, or has gone far enough."""
        return len(self.repeated) > 1 or len(self._done) >= MOST_STEPS

    @property
    def repeated(self) -> list[str]:
        """Tools that were called again with the same arguments, once for each time."""
        return [name for at, (name, it) in enumerate(self._done) if (name, it) in self._done[:at]]

    def message(self, message: Message) -> Message:
        parts = tuple(self._part(message.role, part) for part in message.parts)
        return Message(role=message.role, parts=parts)

    def _part(self, role: str, part: Part) -> Part:
        match part:
            case Text() if role == "user":
                return Text(self._request(part.text))
            case ToolCall():
                return self._call(part)
            case ToolResult():
                return self._result(part)
            case _:
                return part

    def _request(self, words: str) -> str:
        self._asked = words
        self._done.clear()
        listed, self._listed = self._listed, None
        files = _listing(listed) if listed is not None else ""
        return f"{files}Request: {words}"

    def _call(self, call: ToolCall) -> ToolCall:
        self._calls[call.id] = call
        self._done.append((call.name, call.arguments))
        arguments = _object(call.arguments)
        if call.name not in TOOLS or arguments is None:
            return call
        shown = to_shown(call.name, arguments, self._root)
        return msgspec.structs.replace(call, arguments=dump(shown))

    def _result(self, result: ToolResult) -> ToolResult:
        name = self._calls[result.call_id].name if result.call_id in self._calls else result.name
        text = result.text.replace(f"{self._root}/", "").replace(self._root, ".")
        text = self._shortened(text, name)
        # Said after every result and not only the last: the bytes before the newest stay the same.
        text = f"{text}\n\n(The request was: {self._asked[:300]}\n{_next(name, result)})"
        others = tuple(part for part in result.parts if not isinstance(part, Text))
        return msgspec.structs.replace(result, parts=(Text(text), *others))

    def _shortened(self, text: str, name: str) -> str:
        if len(text) <= RESULT_LIMIT:
            return text
        # The end often says how it came out, so a quarter of the room is kept for it.
        tail = RESULT_LIMIT // 4
        left = len(text) - RESULT_LIMIT
        words = f"{left} characters of the result of {name} were left out for this small model"
        self.notices.append(Notice("result_cut", words))
        head, end = text[: RESULT_LIMIT - tail], text[-tail:]
        return f"{head}\n[… {left} characters left out here …]\n{end}"


def _next(name: str, result: ToolResult) -> str:
    if result.is_error:
        return "That did not work. Do it another way."
    return TOOLS[name].then if name in TOOLS else "If all is done, reply."


class _Back:
    """Turns the short calls of one answer into real ones."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._open: dict[str, tuple[str, list[str]]] = {}

    def read(self, event: ModelEvent) -> list[ModelEvent]:
        match event:
            case ToolCallStarted() if event.name in TOOLS:
                self._open[event.id] = (event.name, [])
            case ToolCallDelta() if event.id in self._open:
                self._open[event.id][1].append(event.arguments)
                return []
            case ToolCallEnded() if event.id in self._open:
                name, pieces = self._open.pop(event.id)
                text = "".join(pieces)
                arguments = _object(text) if event.complete else None
                if arguments is not None:
                    text = dump(to_real(name, arguments, self._root))
                return [ToolCallDelta(event.id, text), event]
            case _:
                pass
        return [event]


def _listing(ground: Ground) -> str:
    shown: list[str] = []
    size = 0
    for file in ground.files:
        size += len(file) + 2
        if size > _MOST_LISTED:
            break
        shown.append(file)
    more = ", and more" if ground.more or len(shown) < len(ground.files) else ""
    return f"Files: {', '.join(shown)}{more}\n\n" if shown else "Files: none yet\n\n"


def _object(text: str) -> JsonObject | None:
    try:
        value: Any = _decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return cast(JsonObject, value) if isinstance(value, dict) else None
