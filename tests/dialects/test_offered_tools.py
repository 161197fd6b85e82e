"""Tool lists that were written before come from memory, and are the same as if written anew."""

import copy
import json
from typing import Any

import pytest
from msgspec.structs import replace

from toolwire import dialects
from toolwire.dialects.losses import Losses
from toolwire.dialects.quirks import Quirks
from toolwire.dialects.tools import OfferedTools
from toolwire.messages import CacheMark, Message, Text, ToolCall
from toolwire.request import FreeformTool, JsonObject, ModelRequest, ToolChoice, ToolSpec
from toolwire.tools.registry import builtins

NAMES = ("openai-chat", "openai-responses", "anthropic-messages", "gemini", "code-assist")
LOSSY: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 1}, "b b": {"not": {"type": "string"}}},
    "anyOf": [{"required": ["a"]}, {"required": ["b b"]}],
    "patternProperties": {"^x": {"type": "string"}},
}


def request(*tools: Any, **more: Any) -> ModelRequest:
    messages = (Message(role="user", parts=(Text(text="hi"),)),)
    return ModelRequest(model="m", messages=messages, tools=tools, **more)


def encode(name: str, asked: ModelRequest, **quirks: Any) -> tuple[bytes, tuple[Any, ...]]:
    encoded = dialects.get(name).encode_request(asked, Quirks(**quirks))
    return encoded.http.body, encoded.losses


@pytest.mark.parametrize("name", NAMES)
def test_the_same_tools_are_written_the_same_with_the_same_losses(name: str) -> None:
    tools = (
        ToolSpec(name="lossy", parameters=LOSSY, strict=True, cache=CacheMark()),
        FreeformTool(name="free", syntax="lark", grammar="start: x"),
        *(tool.spec for tool in builtins()),
    )
    asked = request(*tools)
    first = encode(name, asked)
    assert first[1]
    assert encode(name, asked) == first
    assert encode(name, request(*copy.deepcopy(tools))) == first
    assert [loss.path for loss in first[1] if loss.path.startswith("tools[0]")]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_changed_in_place_is_converted_again(name: str) -> None:
    parameters = copy.deepcopy(LOSSY)
    asked = request(ToolSpec(name="changing", parameters=parameters))
    before = encode(name, asked)
    parameters["properties"]["added"] = {"type": "string"}
    after = encode(name, asked)
    assert b'"added"' in after[0]
    assert b'"added"' not in before[0]
    del parameters["properties"]["added"]
    assert encode(name, asked) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"enum": [1]}, {"enum": [True]}),
        ({"minimum": 1}, {"minimum": 1.5}),
        ({"enum": ["a", "b"]}, {"enum": ["b", "a"]}),
        ({"type": "string", "description": "d"}, {"description": "d", "type": "string"}),
        ({"enum": ["a"]}, {"enum": ("a",)}),
        ({"enum": [None]}, {"enum": [float("nan")]}),
    ],
)
def test_schemas_that_are_nearly_equal_are_distinguished(
    name: str, one: JsonObject, other: JsonObject
) -> None:
    def asked(tool: str, schema: JsonObject) -> ModelRequest:
        parameters: JsonObject = {"type": "object", "properties": {"p": schema}}
        return request(ToolSpec(name=tool, parameters=parameters))

    # The name of the second pair is as long, and new to every cache.
    alone = encode(name, asked("pair_1", other))
    encode(name, asked("pair_2", one))
    beside, losses = encode(name, asked("pair_2", other))
    assert (beside.replace(b"pair_2", b"pair_1"), losses) == alone


@pytest.mark.parametrize("name", NAMES)
def test_name_description_place_and_choice_count_too(name: str) -> None:
    one = ToolSpec(name="one", parameters=LOSSY)
    two = ToolSpec(name="two", parameters=LOSSY)
    encode(name, request(one, two))
    assert b'"changed"' in encode(name, request(replace(one, description="changed"), two))[0]
    body, losses = encode(name, request(two, one))
    assert body.index(b'"two"') < body.index(b'"one"')
    assert losses == encode(name, request(one, two))[1]
    subset = request(one, two, tool_choice=ToolChoice(mode="auto", names=("two",)))
    for forms in (("auto",), ("auto", "subset")):
        chosen = encode(name, subset, tool_choices=frozenset(forms))
        assert chosen == encode(name, subset, tool_choices=frozenset(forms))


@pytest.mark.parametrize("name", NAMES)
def test_names_of_earlier_requests_are_not_remembered(name: str) -> None:
    tool = ToolSpec(name="known", parameters=LOSSY)
    codec = dialects.get(name)
    call = ToolCall(id="1", name="once gone", arguments="{}")
    past = Message(role="assistant", parts=(call,))
    asked = request(tool)
    names = codec.encode_request(replace(asked, messages=(*asked.messages, past))).names
    alias = names.wire_name("once gone")
    assert names.original(alias).name == "once gone"
    assert codec.encode_request(asked).names.original(alias).name == alias


def test_half_a_character_in_a_schema_is_sent_as_unknown() -> None:
    half: JsonObject = {"type": "object", "properties": {"p": {"description": "a\ud83d"}}}
    asked = request(ToolSpec(name="half", parameters=half))
    for name in NAMES:
        body, _ = encode(name, asked)
        assert encode(name, asked)[0] == body
        assert "a\ufffd" in body.decode()


def test_only_so_many_lists_are_remembered() -> None:
    written: list[str] = []
    offered = OfferedTools()

    def ask(number: int, size: int = 1) -> None:
        schema: JsonObject = {"const": "x" * number * size}
        tools = (ToolSpec(name="t", parameters=schema),)

        def write(losses: Losses) -> JsonObject:
            written.append(str(number))
            losses.add("tools[0]", "what", "why")
            return {"tools": [str(number)]}

        losses = Losses()
        members = offered.members(tools, (), losses, write)
        assert json.loads(bytes(members["tools"]) if size == 1 else b"[]") in ([str(number)], [])
        assert len(losses.done()) == 1

    for number in (*range(16), 0, 15, 16, 1, 0):
        ask(number)
    assert written == [*map(str, range(16)), "16", "0"]
    written.clear()
    ask(7, 1_000_000)
    ask(7, 1_000_000)
    assert written == ["7", "7"]
