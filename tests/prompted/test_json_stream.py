import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.prompted.leaked_speaking import all_events, ids, pieces, saying, spec
from toolwire.collect import Collector
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
from toolwire.messages import CallKind, Message, Text, ToolCall
from toolwire.prompted import json as json_style
from toolwire.request import FreeformTool, ModelRequest

TOOLS = (spec("read", path="string"), spec("list"), FreeformTool(name="patch"))
ASKED = ModelRequest(
    model="m", messages=(Message(role="user", parts=(Text("hello"),)),), tools=TOOLS
)
DONE = Finished(reason=StopReason.END)


def answered(*chunks: str, end: Finished = DONE) -> list[ModelEvent]:
    spoken: list[ModelEvent] = [*map(TextDelta, chunks), end]
    return all_events(json_style.wrap(saying(spoken), ids()), ASKED)


def folded(events: list[ModelEvent]) -> tuple[Any, ...]:
    collector = Collector()
    collector.add_all(events)
    return collector.message().parts, collector.notices, collector.finished


def test_a_reply_streams_as_it_grows() -> None:
    assert answered('{"re', 'ply": "Hel', "lo \\u00e", '9\\n"', "}") == [
        TextDelta("Hel"),
        TextDelta("lo "),
        TextDelta("é\n"),
        DONE,
    ]


def test_a_call_streams_with_the_text_the_model_wrote() -> None:
    assert answered('{"tool": "read", "argu', 'ments": {"path":', '  "}\\""} ', "}\n") == [
        ToolCallStarted("id1", "read", made_id=True),
        ToolCallDelta("id1", '{"path":'),
        ToolCallDelta("id1", '  "}\\""}'),
        ToolCallEnded("id1"),
        Finished(reason=StopReason.TOOL_CALLS),
    ]


def test_several_calls_come_in_order() -> None:
    parts, notices, end = folded(
        answered(
            '{"calls": [{"tool": "list", "arguments": {}}, '
            '{"arguments": {"path": "a"}, "tool": "read"}]}'
        )
    )
    assert parts == (
        ToolCall(id="id1", name="list", arguments="{}", made_id=True),
        ToolCall(id="id2", name="read", arguments='{"path": "a"}', made_id=True),
    )
    assert notices == []
    assert end == Finished(reason=StopReason.TOOL_CALLS)


def test_a_freeform_tool_gets_its_text() -> None:
    parts, _, _ = folded(answered('{"tool": "patch", "arguments": {"input": "a\\nb"}}'))
    assert parts == (
        ToolCall(id="id1", name="patch", arguments="a\nb", kind=CallKind.FREEFORM, made_id=True),
    )


ANSWERS = [
    '{"reply": "plain \\"quoted\\" \\\\ \\ud83d\\ude00 \\ud83d end é 😀"}',
    '{"reply": ""}',
    '{"tool": "read", "arguments": {"path": "a}\\"{", "x": [1, {"y": null}]}}',
    ' { "arguments" : { } , "tool" : "list" } ',
    '{"calls": [{"tool": "list", "arguments": {}}, {"tool": "list", "arguments": {"a": 1}}]}',
    '{"tool": "patch", "arguments": {"input": "x"}}',
]
BROKEN = [
    "Sure, I will read it.",
    '```json\n{"reply": "x"}\n```',
    '{"tool": "read"}',
    '{"arguments": {}}',
    '{"tool": "read", "arguments": []}',
    '{"tool": "read", "arguments": {path: 1}}',
    '{"tool": "read", "arguments": {"a": 1]}',
    '{"tool": "", "arguments": {}}',
    '{"tool": 5, "arguments": {}}',
    '{"tool": "a", "tool": "b", "arguments": {}}',
    '{"thought": "hm", "tool": "read", "arguments": {}}',
    '{"reply": 5}',
    '{"reply": "a" "b"}',
    '{"reply": "bad \\x escape"}',
    '{"reply": "raw\nline"}',
    '{"calls": []}',
    '{"calls": {}}',
    "[]",
    "{}",
    "",
]


@given(text=st.sampled_from([*ANSWERS, *BROKEN]), cuts=st.lists(st.integers(0, 200), max_size=40))
def test_what_is_read_does_not_depend_on_chunks(text: str, cuts: list[int]) -> None:
    whole = folded(answered(text))
    assert folded(answered(*pieces(text, cuts))) == whole


@given(text=st.text(), cuts=st.lists(st.integers(0, 200), max_size=10))
def test_any_reply_comes_back_as_it_was(text: str, cuts: list[int]) -> None:
    for ascii_only in (True, False):
        answer = json.dumps({"reply": text}, ensure_ascii=ascii_only)
        events = answered(*pieces(answer, cuts))
        assert "".join(it.text for it in events if isinstance(it, TextDelta)) == text
        assert events[-1] == DONE


@pytest.mark.parametrize("text", BROKEN)
def test_an_answer_in_another_form_is_malformed_and_reported(text: str) -> None:
    parts, notices, end = folded(answered(text))
    assert [notice.kind for notice in notices] == ["malformed_answer"]
    assert text in notices[0].message
    assert end.reason is StopReason.MALFORMED_CALL
    assert end.detail
    assert not [part for part in parts if isinstance(part, ToolCall) and part.complete]


@pytest.mark.parametrize("text", ANSWERS)
@pytest.mark.parametrize("reason", [StopReason.END, StopReason.LENGTH, StopReason.CONTENT_FILTER])
def test_a_cut_answer_has_no_complete_call_that_was_cut(text: str, reason: StopReason) -> None:
    whole = [it for it in folded(answered(text))[0] if isinstance(it, ToolCall)]
    for end in range(1, len(text.rstrip())):
        parts, notices, finished = folded(answered(text[:end], end=Finished(reason=reason)))
        done = [it for it in parts if isinstance(it, ToolCall) and it.complete]
        assert done == whole[: len(done)]
        assert len(done) < max(1, len(whole)) or "calls" in text
        cut = StopReason.MALFORMED_CALL if reason is StopReason.END else reason
        assert finished.reason is cut
        assert bool(notices) is (reason is StopReason.END)


def test_a_length_stop_leaves_the_reply_as_far_as_it_came() -> None:
    events = answered('{"reply": "so fa', end=Finished(reason=StopReason.LENGTH))
    assert events == [TextDelta("so fa"), Finished(reason=StopReason.LENGTH)]


def test_text_after_the_answer_is_reported() -> None:
    parts, notices, end = folded(answered('{"reply": "a"}', ' {"reply": "b"}'))
    assert parts == (Text("a"),)
    assert [notice.kind for notice in notices] == ["extra_text"]
    assert end == DONE


def test_a_call_of_an_unknown_tool_is_passed_on_for_the_scheduler_to_refuse() -> None:
    parts, _, _ = folded(answered('{"tool": "gone", "arguments": {}}'))
    assert parts == (ToolCall(id="id1", name="gone", arguments="{}", made_id=True),)


def test_thinking_passes_and_the_end_keeps_what_it_says() -> None:
    end = Finished(reason=StopReason.END, usage=Usage(input=5), model="m")
    spoken: list[ModelEvent] = [
        ThinkingDelta("hm"),
        TextDelta('{"reply": "a"}'),
        TextEnded(),
        Notice("x", "y"),
        end,
    ]
    events = all_events(json_style.wrap(saying(spoken), ids()), ASKED)
    assert events == [ThinkingDelta("hm"), TextDelta("a"), Notice("x", "y"), end]


def test_a_refusal_stays_a_refusal() -> None:
    end = Finished(reason=StopReason.REFUSAL)
    assert answered("I will not.", end=end)[-1] == end


@pytest.mark.parametrize(
    ("head", "unit", "tail"),
    [
        ('{"reply": "', "word \\n ", '"}'),
        ('{"tool": "read", "arguments": {"path": "', 'a\\"b', '"}}'),
        ('{"tool": "read", "arguments": {"path": [', "[1], ", "1]}}"),
        ("", " \n", '{"reply": "x"}'),
    ],
)
def test_the_cost_grows_with_the_text_and_no_faster(head: str, unit: str, tail: str) -> None:
    def seconds(size: int) -> float:
        text = head + unit * (size // len(unit)) + tail
        start = time.process_time()
        answered(*[text[at : at + 3] for at in range(0, len(text), 3)])
        return time.process_time() - start

    seconds(2_000)
    small, large = seconds(20_000), seconds(120_000)
    assert large < 6 * small * 3 + 0.2
