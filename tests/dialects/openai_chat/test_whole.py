import json

import pytest

from tests.dialects.openai_chat.exchange import collected, done, ids, options, seal, thought, whole
from toolwire.dialects.openai_chat import DIALECT
from toolwire.errors import ErrorKind, MalformedStream, ProviderError
from toolwire.events import (
    Finished,
    Notice,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import (
    CallKind,
    Kept,
    Media,
    MediaKind,
    Message,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)


def test_a_whole_message_is_one_delta_of_each_kind():
    entry = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "t", "reasoning_content": "r", "tool_calls": [entry]}
    assert whole(message, usage={"prompt_tokens": 1, "completion_tokens": 2}) == [
        ThinkingDelta("r"),
        thought(reasoning_content="r"),
        TextDelta("t"),
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", "{}"),
        ToolCallEnded("a"),
        Finished(reason=StopReason.TOOL_CALLS, usage=Usage(input=1, output=2)),
    ]


def test_details_of_a_whole_message_are_sealed_unmerged():
    details = [{"type": "reasoning.text", "text": t, "index": 0} for t in ("a", "b")]
    assert whole({"reasoning_details": details}) == [
        ThinkingDelta("ab"),
        thought(reasoning_details=details),
        done(),
    ]


def test_structured_output_given_as_an_object_is_its_text():
    assert whole({"content": {"n": 1}}) == [TextDelta('{"n":1}'), done()]


def test_an_empty_finish_reason_is_reported():
    notice = Notice("no_finish_reason", "the answer ended without a finish_reason")
    assert whole({"content": "a"}, "") == [TextDelta("a"), notice, done()]


def test_an_error_body_is_the_vendors_error():
    body = b'{"error":{"message":"filtered","code":"content_filter","status":400}}'
    with pytest.raises(ProviderError) as caught:
        DIALECT.decode_whole(body, options())
    assert (caught.value.kind, caught.value.status) == (ErrorKind.CONTENT_FILTER, 400)


@pytest.mark.parametrize("body", [b"", b"{}", b'{"choices":[]}', b"<html>", b'{"choices":{}}'])
def test_a_body_that_is_not_an_answer_is_malformed(body: bytes):
    with pytest.raises(MalformedStream):
        DIALECT.decode_whole(body, options())


MESSAGES: list[tuple[Part, ...]] = [
    (Text("a"),),
    (Refusal("no"),),
    (Thinking("r", seal(reasoning="r", reasoning_details=[{"index": 0}])), Text("a")),
    (Thinking("", seal(reasoning_details=[{"data": "x"}])),),
    (Text("a", seal=seal(extra_content={"google": {}})),),
    (
        Text("a"),
        ToolCall(id="1", name="f", arguments="{}", seal=seal(extra_content={"g": 1})),
        ToolCall(id="2", name="sql", arguments="SELECT", kind=CallKind.FREEFORM),
    ),
    (
        Media(
            kind=MediaKind.IMAGE,
            url="https://a/b.png",
            kept=Kept(dialect="openai-chat"),
        ),
    ),
]


@pytest.mark.parametrize("parts", MESSAGES)
def test_a_message_written_whole_reads_the_same(parts: tuple[Part, ...]):
    message = Message(role="assistant", parts=parts)
    body = DIALECT.encode_whole(message, done(), "m", ids())
    assert collected(DIALECT.decode_whole(body, options())) == message


def test_usage_is_written_as_openai_counts():
    usage = Usage(input=1, output=2, cached=3, cache_write=4, reasoning=5, cache_in_input=False)
    finished = Finished(reason=StopReason.END, usage=usage)
    body = DIALECT.encode_whole(Message(role="assistant", parts=()), finished, "m", ids())
    assert json.loads(body)["usage"] == {
        "prompt_tokens": 8,
        "completion_tokens": 2,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
