import asyncio
from collections.abc import AsyncIterator, Iterable
from itertools import count

import pytest
from msgspec.structs import replace

from tests.prompted.xml_reading import READ, WRITE
from toolwire.errors import IncompleteStream
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import CacheMark, Message, Text, ToolCall, ToolResult
from toolwire.prompted import xml
from toolwire.request import ModelRequest, ServerTool, ToolChoice

CALL = "<read_file>\n<path>a.py</path>\n</read_file>"
END = Finished(reason=StopReason.END, usage=Usage(input=3))
ASKED = (Message(role="user", parts=(Text("Read it."),)),)
REQUEST = ModelRequest(model="m", messages=ASKED, system=(Text("Be kind."),), tools=(READ, WRITE))


class Scripted:
    """A model that says what it is told to, and remembers what it was asked."""

    def __init__(self, *events: ModelEvent, breaks: bool = False) -> None:
        self._events = events
        self._breaks = breaks
        self.asked: list[ModelRequest] = []
        self.closed = False

    async def __call__(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request)
        try:
            for event in self._events:
                yield event
            if self._breaks:
                raise IncompleteStream("the stream broke")
        finally:
            self.closed = True


def ask(model: Scripted, request: ModelRequest = REQUEST) -> list[ModelEvent]:
    events: list[ModelEvent] = []

    async def run() -> None:
        numbers = count(1)
        async for event in xml.wrap(model, lambda: f"c{next(numbers)}")(request):
            events.append(event)

    try:
        asyncio.run(run())
    except IncompleteStream:
        events.append(Notice("broke", ""))
    return events


def said(*pieces: str) -> Iterable[TextDelta]:
    return (TextDelta(piece) for piece in pieces)


def test_tools_are_taught_in_the_system_prompt_and_leave_the_request():
    model = Scripted(END)
    ask(model, replace(REQUEST, tool_choice=ToolChoice(mode="required"), parallel_calls=False))
    (sent,) = model.asked
    (system,) = sent.system
    assert system.text.startswith("Be kind.\n\n# Tools")
    assert "## read_file" in system.text
    assert "at most one call" in system.text
    assert system.text.endswith("You must call a tool in this answer.")
    assert (sent.tools, sent.tool_choice, sent.parallel_calls) == ((), None, None)
    assert sent.messages == ASKED


def test_a_cached_system_prompt_keeps_its_mark():
    model = Scripted(END)
    ask(model, replace(REQUEST, system=(Text("Be kind.", cache=CacheMark()),)))
    first, second = model.asked[0].system
    assert first == Text("Be kind.", cache=CacheMark())
    assert second.text.startswith("\n\n# Tools")


def test_a_call_in_the_text_becomes_a_call():
    assert ask(Scripted(*said("I look.\n", CALL[:9], CALL[9:]), END)) == [
        TextDelta("I look."),
        ToolCallStarted("c1", "read_file", made_id=True),
        ToolCallDelta("c1", '{"path":"a.py"}'),
        ToolCallEnded("c1"),
        Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=3)),
    ]


def test_an_answer_without_calls_ends_as_it_did():
    assert ask(Scripted(*said("Hello."), TextEnded(), END)) == [
        TextDelta("Hello."),
        TextEnded(),
        END,
    ]


def test_a_length_stop_stays_one_and_its_open_call_is_incomplete():
    length = Finished(reason=StopReason.LENGTH)
    assert ask(Scripted(*said(CALL[:-3]), length))[-2:] == [
        ToolCallEnded("c1", complete=False),
        length,
    ]


def test_native_calls_and_thinking_pass():
    native = (ToolCallStarted("n", "read_file"), ToolCallEnded("n"))
    events = ask(Scripted(ThinkingDelta("hm"), *said("a\n"), *native, END))
    assert events == [
        ThinkingDelta("hm"),
        TextDelta("a"),
        *native,
        Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=3)),
    ]


def test_a_broken_stream_gives_what_was_read_and_still_breaks():
    model = Scripted(*said("<read_file>\n<path>a"), breaks=True)
    assert ask(model)[-2:] == [ToolCallEnded("c1", complete=False), Notice("broke", "")]


def test_a_reader_that_stops_early_stops_the_model():
    model = Scripted(*said("Hello. ", "More. "), END)

    async def first() -> None:
        stream = xml.wrap(model, lambda: "c")(REQUEST)
        async for _ in stream:
            break
        await stream.aclose()  # type: ignore[attr-defined] - an async generator

    asyncio.run(first())
    assert model.closed


@pytest.mark.parametrize("tools", [(), (ServerTool(dialect="gemini", kind="search", data="{}"),)])
def test_without_tools_it_is_the_identity(tools: tuple[ServerTool, ...]):
    request = replace(REQUEST, tools=tools)
    model = Scripted(*said(f" {CALL}\n"), END)
    assert ask(model, request) == [TextDelta(f" {CALL}\n"), END]
    assert model.asked[0] is request


def test_tools_of_the_vendor_stay_beside_taught_ones():
    search = ServerTool(dialect="gemini", kind="search", data="{}")
    model = Scripted(END)
    ask(model, replace(REQUEST, tools=(search, READ)))
    assert model.asked[0].tools == (search,)


def test_history_is_rendered_with_and_without_tools():
    call = ToolCall(id="1", name="read_file", arguments='{"path":"a.py"}')
    result = ToolResult(call_id="1", name="read_file", parts=(Text("x"),))
    messages = (
        *ASKED,
        Message(role="assistant", parts=(call,)),
        Message(role="user", parts=(result,)),
    )
    for tools in ((READ,), ()):
        model = Scripted(END)
        ask(model, replace(REQUEST, messages=messages, tools=tools))
        spoken = [message.text for message in model.asked[0].messages]
        assert spoken == ["Read it.", CALL, "[read_file for 'a.py'] Result:\nx"]


def test_a_choice_of_none_makes_no_call():
    model = Scripted(*said(CALL), END)
    events = ask(model, replace(REQUEST, tool_choice=ToolChoice(mode="none")))
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == CALL
    assert events[-1] == END


def test_a_choice_of_names_makes_only_those_calls():
    write = "<write_to_file>\n<path>a</path>\n</write_to_file>"
    chosen = ToolChoice(mode="required", names=("read_file",))
    events = ask(Scripted(*said(f"{write}\n{CALL}"), END), replace(REQUEST, tool_choice=chosen))
    started = [event.name for event in events if isinstance(event, ToolCallStarted)]
    assert started == ["read_file"]


def test_a_final_text_does_not_bring_back_a_call_that_was_taken_out():
    said = f"Reading.\n{CALL}"
    events = ask(Scripted(TextDelta(f"Yes.\n{CALL}"), TextEnded(text=said), END))
    assert all(event.text is None for event in events if isinstance(event, TextEnded))
    assert not any(CALL in event.text for event in events if isinstance(event, TextDelta))
