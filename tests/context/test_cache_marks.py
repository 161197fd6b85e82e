import asyncio
import json
from collections.abc import AsyncIterator

import msgspec
import pytest

from tests.compaction.conversations import begun, called, said, session
from toolwire import dialects
from toolwire.context.cache import marked, takes_marks, unmarked, with_cache_marks
from toolwire.dialects.quirks import Quirks
from toolwire.events import ModelEvent
from toolwire.messages import CacheMark, Message, Text, Thinking, ToolResult
from toolwire.request import ModelRequest, ServerTool

ANTHROPIC = "anthropic-messages"
PLAIN = Quirks()


def marks_in(value: object, path: str = "") -> list[str]:
    """Where an encoded body bears marks."""
    match value:
        case dict():
            here = [path] if "cache_control" in value else []
            return here + [m for key, one in value.items() for m in marks_in(one, f"{path}.{key}")]
        case list():
            return [m for at, one in enumerate(value) for m in marks_in(one, f"{path}[{at}]")]
        case _:
            return []


def sent(request: ModelRequest, dialect: str = ANTHROPIC, quirks: Quirks = PLAIN) -> object:
    encoded = dialects.get(dialect).encode_request(marked(request, dialect, quirks), quirks)
    assert not [loss for loss in encoded.losses if "cache" in loss.path]
    return json.loads(encoded.http.body)


def test_four_marks_stand_after_tools_system_and_the_last_two_user_turns():
    request = said(begun(), *called(1), *called(2))
    assert marks_in(sent(request)) == [
        ".system[0]",
        ".tools[2]",
        ".messages[4].content[0]",
        ".messages[6].content[0]",
    ]


def test_a_mark_stands_on_the_last_part_that_can_bear_it():
    end = Message(role="user", parts=(Text("x"), Text(""), Thinking("y")))
    request = marked(said(begun(), end), ANTHROPIC, PLAIN, ttl="1h")
    assert request.messages[-1].parts == (Text("x", cache=CacheMark("1h")), *end.parts[1:])


def test_a_request_without_tools_or_system_has_fewer_marks():
    request = msgspec.structs.replace(begun(), tools=(), system=(), messages=begun().messages[:1])
    assert marks_in(sent(request)) == [".messages[0].content[0]"]


def test_tools_of_the_vendor_bear_no_mark():
    search = ServerTool(dialect=ANTHROPIC, kind="web_search", data='{"type":"web_search"}')
    request = msgspec.structs.replace(begun(), tools=(*begun().tools, search))
    tools = marked(request, ANTHROPIC, PLAIN).tools
    assert [getattr(tool, "cache", None) for tool in tools] == [None, None, CacheMark(), None]


@pytest.mark.parametrize("dialect", [name for name in dialects.NAMES if name != ANTHROPIC])
def test_servers_that_cache_by_themselves_get_no_marks(dialect: str):
    request = begun()
    assert marked(request, dialect, PLAIN) is request
    assert marks_in(sent(request, dialect)) == []


def test_a_chat_server_that_reads_marks_gets_them():
    quirks = Quirks(cache_marks=True)
    assert takes_marks("openai-chat", quirks)
    assert len(marks_in(sent(said(begun(), *called(1)), "openai-chat", quirks))) == 4


def test_marks_are_taken_away_again():
    request = said(begun(), *called(1))
    assert unmarked(marked(request, ANTHROPIC, PLAIN)) == request
    inner = ToolResult(call_id="c", parts=(Text("x", cache=CacheMark()),))
    odd = said(request, Message(role="user", parts=(inner,)))
    assert unmarked(odd).messages[-1].results[0].parts == (Text("x"),)


def test_a_marked_request_can_be_marked_again():
    one, two = list(session(3))[1:]
    again = msgspec.structs.replace(
        two,
        messages=(
            *marked(one, ANTHROPIC, PLAIN).messages,
            *two.messages[len(one.messages) :],
        ),
    )
    assert marked(again, ANTHROPIC, PLAIN) == marked(two, ANTHROPIC, PLAIN)


def test_nothing_is_copied_that_bears_no_mark():
    request = begun()
    assert all(a is b for a, b in zip(unmarked(request).messages, request.messages, strict=True))


def test_a_model_is_asked_with_marks():
    asked: list[ModelRequest] = []

    async def ask(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        asked.append(request)
        return
        yield

    async def run() -> None:
        async for _ in with_cache_marks(ask, ANTHROPIC, PLAIN)(begun()):
            pass

    asyncio.run(run())
    assert asked == [marked(begun(), ANTHROPIC, PLAIN)]
    assert with_cache_marks(ask, "gemini", PLAIN) is ask
