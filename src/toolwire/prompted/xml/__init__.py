"""XML style: tools described in the system prompt, calls parsed from the answer's text."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from functools import cache
from pkgutil import get_data
from typing import Any

from msgspec.structs import replace

from toolwire.errors import ToolwireError
from toolwire.events import (
    Finished,
    ModelEvent,
    StopReason,
    TextDelta,
    TextEnded,
    ToolCallStarted,
)
from toolwire.messages import Text
from toolwire.model import Model, reading
from toolwire.prompted.xml.parser import XmlLimits, XmlParser
from toolwire.prompted.xml.shape import FREEFORM_FIELD, ITEM, Shape, XmlTool, XmlTools
from toolwire.prompted.xml.values import as_text, call_text, safe_json
from toolwire.request import AnyTool, ModelRequest, ServerTool, ToolChoice
from toolwire.wire.json_access import dump

_DEEPEST = 6
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_TEXTS = {
    "path": "src/main.py",
    "file": "src/main.py",
    "filename": "main.py",
    "directory": "src",
    "dir": "src",
    "folder": "src",
    "cwd": "src",
    "url": "https://example.com/",
    "uri": "https://example.com/",
    "command": "ls -la",
    "regex": "TODO",
    "pattern": "TODO",
    "query": "where the settings are read",
    "question": "Which of the two should I change?",
    "content": "first line\nsecond line",
    "text": "some text",
    "message": "the tests pass now",
    "result": "Done: the tests pass.",
    "name": "example",
    "id": "42",
    "city": "Paris",
    "location": "Paris",
    "date": "2025-01-31",
    "time": "09:30",
    "email": "ann@example.com",
    "language": "en",
    "title": "A short title",
}
_FORMATS = {
    "date": "2025-01-31",
    "date-time": "2025-01-31T09:30:00Z",
    "time": "09:30:00Z",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def skeleton(tool: XmlTool) -> str:
    """A call with placeholders for its values."""
    if not tool.fields:
        return f"<{tool.tag}>\n</{tool.tag}>"
    if not tool.tagged:
        members = (f"{dump(name)}: …" for name in tool.fields)
        return f"<{tool.tag}>\n{{{', '.join(members)}}}\n</{tool.tag}>"
    lines = [_skeleton(name, shape, 0) for name, shape in tool.fields.items()]
    return "\n".join((f"<{tool.tag}>", *lines, f"</{tool.tag}>"))


def _skeleton(name: str, shape: Shape, depth: int) -> str:
    if not shape.tagged or depth > _DEEPEST:
        hint = "JSON here" if shape.main_kinds <= {"array", "object"} else f"{name} here"
        return f"<{name}>{hint}</{name}>"
    if "array" in shape.kinds:
        inner = [_skeleton(ITEM, shape.items, depth + 1), "…"]
    else:
        inner = [_skeleton(below, one, depth + 1) for below, one in shape.fields.items()]
    return "\n".join((f"<{name}>", *inner, f"</{name}>"))


def example(tool: XmlTool) -> str:
    """A call with plausible values: the required parameters, or the first one."""
    if tool.freeform is not None:
        return call_text(tool, {FREEFORM_FIELD: "some text"})
    names = [name for name in tool.fields if name in tool.required] or list(tool.fields)[:1]
    return call_text(tool, {name: _plausible(name, tool.fields[name], 0) for name in names})


def _plausible(name: str, shape: Shape, depth: int) -> Any:
    if shape.values:
        return shape.values[0]
    if shape.sample is not None:
        return shape.sample
    kinds = shape.main_kinds
    if "string" in kinds:
        return _text(name, shape)
    if "integer" in kinds or "number" in kinds:
        return shape.smallest
    if "boolean" in kinds:
        return True
    if depth > _DEEPEST or not kinds:
        return {} if shape.only("object") else [] if shape.only("array") else None
    if "array" in kinds:
        singular = name[:-1] if name.endswith("s") else name
        return [_plausible(singular, shape.items, depth + 1)]
    names = [below for below in shape.fields if below in shape.required] or list(shape.fields)[:2]
    return {below: _plausible(below, shape.fields[below], depth + 1) for below in names}


def _text(name: str, shape: Shape) -> str:
    if shape.format in _FORMATS:
        return _FORMATS[shape.format]
    words = _WORDS.findall(name)
    return _TEXTS.get(words[-1].lower() if words else "", "some text")


_SECTION = re.compile(r"^<!-- (\w+) -->\n", re.MULTILINE)


def teaching(
    tools: XmlTools | Iterable[AnyTool],
    choice: ToolChoice | None = None,
    *,
    parallel: bool | None = None,
) -> str:
    """Instructions for calling these tools; empty without tools."""
    taught = tools if isinstance(tools, XmlTools) else XmlTools(tools)
    if not taught.by_tag:
        return ""
    opening = [
        _section_text("opening"),
        _section_text("single" if parallel is False else "parallel"),
    ]
    opening.append(_section_text("results"))
    blocks = ["\n".join(opening)]
    blocks += [_tool(tool) for tool in taught.by_tag.values()]
    words = _choice(choice, taught)
    if words:
        blocks.append(words)
    return "\n\n".join(blocks)


def _choice(choice: ToolChoice | None, tools: XmlTools) -> str:
    if choice is None:
        return ""
    if choice.mode == "none":
        return _section_text("none")
    if not choice.names:
        return _section_text("required") if choice.mode == "required" else ""
    names = ", ".join(tools.tag(name) for name in choice.names)
    if choice.mode == "auto":
        return _section_text("subset").replace("{names}", names)
    section = "named" if len(choice.names) == 1 else "named_several"
    return _section_text(section).replace("{names}", names)


def _tool(tool: XmlTool) -> str:
    lines = [f"## {tool.tag}"]
    if tool.description:
        lines.append(f"Description: {tool.description.strip()}")
    if tool.freeform is not None:
        lines.append(_freeform(tool))
    elif tool.fields:
        lines.append("Parameters:")
        for name, shape in tool.fields.items():
            lines += _parameter(name, shape, name in tool.required, 0)
    else:
        lines.append("Parameters: none")
    lines += ["Usage:", skeleton(tool), "Example:", example(tool)]
    return "\n".join(lines)


def _freeform(tool: XmlTool) -> str:
    assert tool.freeform is not None  # noqa: S101 - asked only for freeform tools
    if not tool.freeform.grammar:
        return _section_text("freeform")
    words = _section_text("grammar").replace("{syntax}", tool.freeform.syntax)
    return f"{words}\n{tool.freeform.grammar.strip()}"


def _parameter(name: str, shape: Shape, required: bool, depth: int) -> list[str]:
    about = f"{_type(shape)}, {'required' if required else 'optional'}"
    line = f"{'  ' * depth}- {name} ({about})"
    if shape.description:
        line += f": {' '.join(shape.description.split())}"
    if shape.values is not None:
        line += f" One of: {', '.join(_plain(value) for value in shape.values)}."
    if shape.default is not None:
        line += f" Default: {_plain(shape.default)}."
    return [line, *_inner(shape, depth + 1)]


def _inner(shape: Shape, depth: int) -> list[str]:
    if depth > _DEEPEST:
        return []
    if shape.only("array"):
        items = shape.items
        if items.description or items.values is not None or items.only("object"):
            return _parameter(ITEM, items, True, depth)
        return _inner(items, depth)
    if not shape.only("object"):
        return []
    lines: list[str] = []
    for name, below in shape.fields.items():
        lines += _parameter(name, below, name in shape.required, depth)
    return lines


def _type(shape: Shape) -> str:
    kinds = shape.main_kinds
    if kinds >= {"string", "number", "boolean", "array", "object"}:
        return "any"
    if "number" in kinds:
        kinds -= {"integer"}
    words = sorted(kinds) or ["null"]
    if shape.only("array") and not shape.items.main_kinds >= {"string", "object"}:
        words = [f"array of {_type(shape.items)}"]
    if "null" in shape.kinds and kinds:
        words.append("null")
    return " or ".join(words)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else safe_json(value)


def _section_text(section: str) -> str:
    return _sections()[section]


@cache
def _sections() -> dict[str, str]:
    text = (get_data("toolwire.prompted.xml", "xml_teaching.md") or b"").decode()
    parts = _SECTION.split(text)[1:]
    return {name: body.rstrip("\n") for name, body in zip(parts[::2], parts[1::2], strict=True)}


def wrap(model: Model, new_id: Callable[[], str], *, limits: XmlLimits | None = None) -> Model:
    """The model with tool calls in this style; requests without tools or calls are unchanged."""

    def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        tools = XmlTools(request.tools)
        if not tools.by_tag:
            if any(message.calls or message.results for message in request.messages):
                request = replace(request, messages=as_text(request.messages, tools))
            return model(request)
        parser = XmlParser(
            tools,
            new_id,
            only=_allowed(request, tools),
            single=request.parallel_calls is False,
            limits=limits,
        )
        return _read(model(plain(request, tools)), _Reader(parser))

    return ask


def plain(request: ModelRequest, tools: XmlTools) -> ModelRequest:
    """The request with its tools described in the prompt; the vendor's own tools stay."""
    server_tools = tuple(tool for tool in request.tools if isinstance(tool, ServerTool))
    taught = teaching(tools, request.tool_choice, parallel=request.parallel_calls)
    return replace(
        request,
        system=_with_teaching(request.system, taught),
        messages=as_text(request.messages, tools),
        tools=server_tools,
        tool_choice=None,
        parallel_calls=None,
    )


def _allowed(request: ModelRequest, tools: XmlTools) -> frozenset[str] | None:
    choice = request.tool_choice
    if choice is None or (choice.mode != "none" and not choice.names):
        return None
    names = () if choice.mode == "none" else choice.names
    return frozenset(tools.tag(name) for name in names)


async def _read(stream: AsyncIterator[ModelEvent], reader: "_Reader") -> AsyncIterator[ModelEvent]:
    async with reading(stream) as events:
        try:
            async for event in events:
                for read in reader.take(event):
                    yield read
        except ToolwireError:
            # Events parsed before the stream broke are still emitted.
            for read in reader.broken():
                yield read
            raise


def _with_teaching(system: tuple[Text, ...], taught: str) -> tuple[Text, ...]:
    """Joins the instructions to the last text, since simple servers accept no list."""
    if not system:
        return (Text(taught),)
    last = system[-1]
    if last.cache or last.kept or last.seal:
        return (*system, Text(f"\n\n{taught}"))
    return (*system[:-1], replace(last, text=f"{last.text}\n\n{taught}"))


class _Reader:
    """One per answer: text goes through the parser, everything else passes."""

    def __init__(self, parser: XmlParser) -> None:
        self._parser = parser
        self._native_calls = False
        self._text_open = False
        self._finished = False

    def take(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """The events for one event of the wrapped model."""
        match event:
            case TextDelta():
                yield from self._parsed(self._parser.feed(event.text))
            case TextEnded():
                if self._text_open or event.seal is not None:
                    self._text_open = False
                    # A final text would bring back the calls that were taken out of it.
                    yield event if event.text is None else replace(event, text=None)
            case Finished():
                self._finished = True
                cut = event.reason not in (StopReason.END, StopReason.TOOL_CALLS)
                yield from self._parsed(self._parser.close(cut=cut))
                called = self._native_calls or self._parser.calls > 0
                if called and event.reason is StopReason.END:
                    event = replace(event, reason=StopReason.TOOL_CALLS)
                yield event
            case ToolCallStarted():
                self._native_calls = True
                yield event
            case _:
                yield event

    def broken(self) -> Iterator[ModelEvent]:
        """The remaining events when the stream broke."""
        if not self._finished:
            yield from self._parser.close(cut=True)

    def _parsed(self, events: list[ModelEvent]) -> Iterator[ModelEvent]:
        for event in events:
            self._text_open = isinstance(event, TextDelta)
            yield event
