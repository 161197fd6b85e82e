from typing import Any

import pytest

from tests.dialects.openai_chat.exchange import Json, ask, losses, seal, written
from toolwire.dialects.quirks import Quirks
from toolwire.messages import (
    Message,
    Origin,
    Part,
    Seal,
    Text,
    Thinking,
    ToolCall,
)
from toolwire.request import (
    ModelRequest,
)

CALL = ToolCall(id="a", name="f", arguments="{}")
CALLED: Json = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def said(*parts: Part, role: Any = "assistant") -> ModelRequest:
    return ask(messages=(Message(role=role, parts=parts),))


def messages(request: ModelRequest, quirks: Quirks | None = None) -> list[Json]:
    return written(request, quirks or Quirks())["messages"]


SEALED = Thinking("r", seal(reasoning_content="r"))
DETAILS = Thinking("r", seal(reasoning="r", reasoning_details=[{"index": 0, "text": "r"}]))
PART = Thinking("r", seal(type="thinking", thinking=[{"type": "text", "text": "r"}]))
FOREIGN = Thinking("r", Seal(origin=Origin("gemini"), data="{}"))
DEEPSEEK = Quirks(reasoning_field="reasoning_content")
REPLAYS: list[tuple[tuple[Part, ...], Quirks, Json]] = [
    ((SEALED, CALL), Quirks(), {"reasoning_content": "r"}),
    ((SEALED,), Quirks(reasoning_replay="always"), {"reasoning_content": "r"}),
    ((SEALED, CALL), Quirks(reasoning_replay="never"), {}),
    ((SEALED, Text("t")), Quirks(), {}),
    (
        (DETAILS, Text("t")),
        Quirks(),
        {"reasoning": "r", **{"reasoning_details": [{"index": 0, "text": "r"}]}},
    ),
    ((FOREIGN, CALL), DEEPSEEK, {"reasoning_content": "r"}),
    ((CALL,), DEEPSEEK, {"reasoning_content": ""}),
    ((Text("t"),), DEEPSEEK, {}),
    ((FOREIGN, CALL), Quirks(), {}),
]


@pytest.mark.parametrize(("parts", "quirks", "wanted"), REPLAYS)
def test_thinking_goes_back_where_it_is_wanted(
    parts: tuple[Part, ...], quirks: Quirks, wanted: Json
):
    (message,) = messages(said(*parts), quirks) or [{}]
    assert {key: value for key, value in message.items() if key.startswith("reasoning")} == wanted


def test_thinking_that_stays_behind_is_reported():
    assert losses(said(SEALED, Text("t"))) == ["messages[0].parts[0]"]


def test_thinking_from_the_content_list_goes_back_there():
    (message,) = messages(said(PART, Text("t"), CALL))
    assert message["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "r"}]},
        {"type": "text", "text": "t"},
    ]


def test_pieces_of_details_sealed_apart_are_joined_again():
    first = Thinking("a", seal(reasoning_details=[{"index": 0, "text": "a"}]))
    second = Thinking("", seal(reasoning_details=[{"index": 0, "signature": "s"}]))
    (message,) = messages(said(first, Text("t"), second, CALL))
    assert message["reasoning_details"] == [{"index": 0, "text": "a", "signature": "s"}]


def test_signatures_go_back_to_text_and_call():
    signed = ToolCall(id="a", name="f", arguments="{}", seal=seal(extra_content={"g": 1}))
    (message,) = messages(said(Text("t", seal=seal(extra_content={"g": 2})), signed))
    assert message == {
        "role": "assistant",
        "content": "t",
        "extra_content": {"g": 2},
        "tool_calls": [CALLED | {"extra_content": {"g": 1}}],
    }
