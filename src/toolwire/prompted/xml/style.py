"""Tool calling in tags: the tools are taught in the prompt, the calls read from the text."""

from collections.abc import AsyncIterator, Callable, Iterator

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
from toolwire.prompted.xml.history import as_text
from toolwire.prompted.xml.parser import XmlLimits, XmlParser
from toolwire.prompted.xml.prompt import teaching
from toolwire.prompted.xml.shape import XmlTools
from toolwire.request import ModelRequest, ServerTool


def wrap(model: Model, new_id: Callable[[], str], *, limits: XmlLimits | None = None) -> Model:
    """The model with tool calls in this style. A request without tools or calls goes as it is."""

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
    """The request with its tools taught in words; tools the vendor runs itself stay."""
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
            # What was read before the stream broke stays with the reader of the events.
            for read in reader.broken():
                yield read
            raise


def _with_teaching(system: tuple[Text, ...], taught: str) -> tuple[Text, ...]:
    """One text where possible: simple servers take no list."""
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
        """What an event of the wrapped model means."""
        match event:
            case TextDelta():
                yield from self._parsed(self._parser.feed(event.text))
            case TextEnded():
                if self._text_open or event.seal is not None:
                    self._text_open = False
                    yield event
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
        """What is left when the stream broke."""
        if not self._finished:
            yield from self._parser.close(cut=True)

    def _parsed(self, events: list[ModelEvent]) -> Iterator[ModelEvent]:
        for event in events:
            self._text_open = isinstance(event, TextDelta)
            yield event
