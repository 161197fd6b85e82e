import json
from typing import Any

import jsonschema_rs
import pytest

from tests.prompted.leaked_speaking import OPEN, all_events, ids, saying, spec
from toolwire.events import Finished, ModelEvent, Notice, StopReason, TextDelta
from toolwire.messages import (
    CallKind,
    Media,
    MediaKind,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.prompted import json as json_style
from toolwire.request import (
    AnyTool,
    FreeformTool,
    JsonObject,
    ModelRequest,
    OutputFormat,
    ServerTool,
    ToolChoice,
    ToolSpec,
)

HELLO = Message(role="user", parts=(Text("hello"),))
READ = spec("read", path="string")
LIST = spec("list")


def request(*messages: Message, tools: tuple[AnyTool, ...] = (READ, LIST), **more: Any) -> Any:
    return ModelRequest(model="m", messages=messages or (HELLO,), tools=tools, **more)


def prepared(asked: ModelRequest, **more: Any) -> json_style.Prepared:
    found = json_style.prepare(asked, **more)
    assert found is not None
    return found


def schema(asked: ModelRequest) -> JsonObject:
    output = prepared(asked).request.output
    assert output is not None
    assert output.kind == "json_schema"
    assert output.schema is not None
    return output.schema


def takes(asked: ModelRequest, answer: Any) -> bool:
    return jsonschema_rs.validator_for(schema(asked)).is_valid(answer)


CALL = {"tool": "read", "arguments": {"path": "a"}}
REPLY = {"reply": "hi"}


def test_an_answer_is_one_call_or_a_reply() -> None:
    asked = request()
    assert takes(asked, CALL)
    assert takes(asked, {"tool": "list", "arguments": {}})
    assert takes(asked, REPLY)
    for wrong in (
        {"tool": "read", "arguments": {}},
        {"tool": "list", "arguments": {"path": "a"}},
        {"tool": "gone", "arguments": {}},
        {**CALL, **REPLY},
        {"calls": [CALL]},
        {},
        "hi",
    ):
        assert not takes(asked, wrong)


def test_several_calls_may_come_where_that_is_allowed() -> None:
    asked = request(parallel_calls=True)
    assert takes(asked, {"calls": [CALL, {"tool": "list", "arguments": {}}]})
    assert takes(asked, CALL)
    assert takes(asked, REPLY)
    assert not takes(asked, {"calls": []})


@pytest.mark.parametrize(
    ("choice", "call", "other", "reply"),
    [
        (ToolChoice(), True, True, True),
        (ToolChoice(mode="required"), True, True, False),
        (ToolChoice(mode="none"), False, False, True),
        (ToolChoice(mode="required", names=("read",)), True, False, False),
        (ToolChoice(names=("list",)), False, True, True),
    ],
)
def test_tool_choice_shapes_the_schema(
    choice: ToolChoice, call: bool, other: bool, reply: bool
) -> None:
    asked = request(tool_choice=choice)
    found = [takes(asked, it) for it in (CALL, {"tool": "list", "arguments": {}}, REPLY)]
    assert found == [call, other, reply]
    told = prepared(asked).request.system[-1].text
    assert ("- read" in told, "- list" in told) == (call, other)
    assert ('To say something to the person: {"reply"' in told) is reply


def test_nothing_native_is_sent() -> None:
    sent = prepared(request(parallel_calls=True, tool_choice=ToolChoice())).request
    assert (sent.tools, sent.tool_choice, sent.parallel_calls) == ((), None, None)


def test_a_request_without_tools_goes_as_it_is() -> None:
    assert json_style.prepare(request(tools=())) is None


def test_a_past_with_calls_is_rendered_even_when_no_tool_is_offered() -> None:
    call = ToolCall(id="1", name="read", arguments="{}")
    asked = request(HELLO, Message(role="assistant", parts=(call,)), tools=())
    assert takes(asked, REPLY)
    assert not takes(asked, CALL)


def test_definitions_of_two_tools_do_not_meet() -> None:
    def tree(kind: str) -> JsonObject:
        node = {"type": "object", "properties": {"is": {"type": kind}, "in": {"$ref": "#/$defs/n"}}}
        return {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}}

    a, b = (ToolSpec(name=kind, parameters=tree(kind)) for kind in ("string", "integer"))
    for several in (None, True):
        asked = request(tools=(a, b), parallel_calls=several)
        assert takes(asked, {"tool": "string", "arguments": {"n": {"in": {"is": "x"}}}})
        assert not takes(asked, {"tool": "string", "arguments": {"n": {"in": {"is": 1}}}})
        assert takes(asked, {"tool": "integer", "arguments": {"n": {"in": {"is": 1}}}})


def test_a_required_member_without_a_schema_can_still_be_given() -> None:
    odd = ToolSpec(
        name="odd", parameters={"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}
    )
    assert takes(request(tools=(odd,)), {"tool": "odd", "arguments": {"a": 1, "b": 2}})


def test_what_a_grammar_cannot_hold_is_reported() -> None:
    loose = ToolSpec(
        name="loose",
        parameters={
            "type": "object",
            "properties": {"a": {"type": "array", "uniqueItems": True}, "b": {"pattern": "x"}},
            "not": {"required": ["c"]},
        },
    )
    notices = prepared(request(tools=(loose,))).notices
    assert [notice.kind for notice in notices] == ["schema_weakened"] * 3
    told = " ".join(notice.message for notice in notices)
    assert all(word in told for word in ("uniqueItems", "pattern", "not"))


def test_a_plain_schema_is_not_weakened() -> None:
    assert prepared(request()).notices == ()


def test_a_vendors_own_tool_is_left_out_and_reported() -> None:
    server = ServerTool(dialect="d", kind="search", data="{}")
    notices = prepared(request(tools=(READ, server))).notices
    assert [notice.kind for notice in notices] == ["tool_left_out"]


def test_the_prompt_has_an_example_of_each_tool() -> None:
    patch = FreeformTool(name="patch", description="Apply a patch.")
    told = prepared(request(tools=(READ, LIST, patch))).request.system[-1].text
    examples = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    assert examples[:-1] == [
        {"tool": "read", "arguments": {"path": "some path"}},
        {"tool": "list", "arguments": {}},
        {"tool": "patch", "arguments": {"input": "some text"}},
    ]
    assert list(examples[-1]) == ["reply"]


def test_given_examples_come_first_and_only_for_offered_tools() -> None:
    given = (
        json_style.Example("show me the notes", "read", {"path": "notes.txt"}),
        json_style.Example("burn it", "burn", {}),
    )
    told = prepared(request(), examples=given).request.system[-1].text
    assert 'Request: show me the notes\n{"tool": "read", "arguments": {"path":"notes.txt"}}' in told
    assert "burn" not in told
    assert told.count('"tool": "read"') == 1


def test_the_instructions_come_after_those_that_were_there() -> None:
    sent = prepared(request(system=(Text("Be kind."),))).request
    assert sent.system[0] == Text("Be kind.")
    assert len(sent.system) == 2


def test_the_past_is_rendered_as_the_model_would_have_written_it() -> None:
    thinking = Thinking("hm")
    said = Message(
        role="assistant",
        parts=(
            thinking,
            Text('Let me "see".'),
            ToolCall(id="1", name="read", arguments='{"path":  "a"}'),
        ),
    )
    picture = Media.of_bytes(MediaKind.IMAGE, "image/png", b"x")
    heard = Message(
        role="user",
        parts=(ToolResult(call_id="1", name="read", parts=(Text("text of a"), picture)),),
    )
    both = Message(
        role="assistant",
        parts=(
            ToolCall(id="2", name="list", arguments=""),
            ToolCall(id="3", name="patch", arguments="raw", kind=CallKind.FREEFORM),
            ToolCall(id="4", name="read", arguments='{"path": "b', complete=False),
        ),
    )
    failed = Message(
        role="user",
        parts=(ToolResult(call_id="2", is_error=True), ToolResult(call_id="3"), Text("go on")),
    )
    sent = prepared(request(HELLO, said, heard, both, failed)).request.messages
    assert sent[0] == HELLO
    assert sent[1].parts == (
        thinking,
        Text(
            '{"reply": "Let me \\"see\\"."}\n{"tool": "read", "arguments": {"path":  "a"}}',
        ),
    )
    assert sent[2].parts == (Text("Result of read:\ntext of a"), picture)
    assert json.loads(sent[3].text) == {
        "calls": [
            {"tool": "list", "arguments": {}},
            {"tool": "patch", "arguments": {"input": "raw"}},
            {"tool": "read", "arguments": '{"path": "b'},
        ]
    }
    assert sent[4].parts == (
        Text("Error from list:\n(it returned nothing)"),
        Text("Result of patch:\n(it returned nothing)"),
        Text("go on"),
    )


def test_long_results_are_shortened_and_the_cut_is_reported_to_both() -> None:
    long = ToolResult(call_id="1", name="read", parts=(Text("a" * 900 + "z" * 100),))
    found = prepared(request(HELLO, Message(role="user", parts=(long,))), result_limit=40)
    text = found.request.messages[1].text
    assert text == f"Result of read:\n{'a' * 30}\n[… 960 characters left out here …]\n{'z' * 10}"
    assert [notice.kind for notice in found.notices] == ["result_cut"]


def test_an_output_schema_is_that_of_the_reply() -> None:
    wanted = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    asked = request(output=OutputFormat(kind="json_schema", schema=wanted))
    assert takes(asked, {"reply": {"n": 1}})
    assert not takes(asked, REPLY)
    assert takes(asked, CALL)
    spoken: list[ModelEvent] = [
        TextDelta('{"reply": {"n": '),
        TextDelta("1}}"),
        Finished(reason=StopReason.END),
    ]
    events = all_events(json_style.wrap(saying(spoken), ids()), asked)
    assert events == [TextDelta('{"n": '), TextDelta("1}"), Finished(reason=StopReason.END)]


def test_notices_come_with_the_first_event_and_not_before() -> None:
    loose = ToolSpec(name="loose", parameters={**OPEN, "not": {"required": ["c"]}})
    spoken: list[ModelEvent] = [TextDelta('{"reply":"a"}'), Finished(reason=StopReason.END)]
    events = all_events(json_style.wrap(saying(spoken), ids()), request(tools=(loose,)))
    assert isinstance(events[0], Notice)
    assert events[1:] == [TextDelta("a"), Finished(reason=StopReason.END)]
    assert all_events(json_style.wrap(saying([]), ids()), request(tools=(loose,))) == []
