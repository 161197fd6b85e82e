import json

import pytest

from tests.dialects.openai_chat.exchange import (
    STOP,
    Json,
    call,
    decode,
    delta,
    done,
    options,
)
from toolwire.client.retry import USUAL, Wait, decide
from toolwire.codec import read_answer
from toolwire.dialects.openai_chat import DIALECT
from toolwire.errors import ErrorKind, IncompleteStream, MalformedStream, ProviderError
from toolwire.events import (
    Finished,
    Notice,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.wire.sse import Frame

CALLED = done(StopReason.TOOL_CALLS)
NO_REASON = Notice("no_finish_reason", "the answer ended without a finish_reason")


@pytest.mark.parametrize(
    ("word", "reason", "detail"),
    [
        ("stop", StopReason.END, ""),
        ("eos", StopReason.END, "eos"),
        ("length", StopReason.LENGTH, ""),
        ("model_length", StopReason.LENGTH, "model_length"),
        ("content_filter", StopReason.CONTENT_FILTER, ""),
        ("sensitive", StopReason.CONTENT_FILTER, "sensitive"),
        ("error", StopReason.ERROR, "error"),
        ("insufficient_system_resource", StopReason.ERROR, "insufficient_system_resource"),
        (
            "function_call_filter: MALFORMED_FUNCTION_CALL",
            StopReason.MALFORMED_CALL,
            "function_call_filter: MALFORMED_FUNCTION_CALL",
        ),
    ],
)
def test_stop_words_are_understood(word: str, reason: StopReason, detail: str):
    assert decode(delta(content="a"), delta(word)) == [TextDelta("a"), done(reason, detail)]


USAGES = [
    ({"prompt_tokens": 3, "completion_tokens": None}, Usage(input=3)),
    ({"prompt_tokens": 3, "prompt_cache_hit_tokens": 2}, Usage(input=3, cached=2)),
    ({"prompt_tokens": 3, "cached_tokens": 2}, Usage(input=3, cached=2)),
    ({"prompt_tokens": 3, "num_cached_tokens": 2}, Usage(input=3, cached=2)),
    (
        {"cache_read_input_tokens": 2, "cache_creation_input_tokens": 1},
        Usage(cached=2, cache_write=1),
    ),
    (
        {
            "completion_tokens": 9.0,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 5},
            "cost": {"total_cost": 0.5},
        },
        Usage(output=9, cached=0, cache_write=4, reasoning=5, cost=0.5),
    ),
    ({"prompt_tokens": "many", "prompt_tokens_details": None, "cost": True}, Usage()),
]


@pytest.mark.parametrize(("wire", "usage"), USAGES)
def test_usage_is_read_in_every_spelling(wire: dict[str, object], usage: Usage):
    last = {"choices": [], "usage": wire}
    assert decode(STOP, last) == [Finished(reason=StopReason.END, usage=usage)]


def test_the_last_usage_wins_and_groq_has_its_own_place():
    events = decode(
        delta(content="a") | {"usage": {"prompt_tokens": 1}},
        STOP | {"x_groq": {"usage": {"prompt_tokens": 2}}},
        "[DONE]",
    )
    assert events[-1] == Finished(reason=StopReason.END, usage=Usage(input=2))


def test_the_id_and_model_of_the_first_chunk_that_names_them_are_reported():
    events = decode({"id": "", "model": "", "choices": []}, STOP | {"id": "x", "model": "m"})
    assert events == [Finished(reason=StopReason.END, response_id="x", model="m")]


def test_a_finish_reason_sent_twice_ends_the_answer_once():
    start = delta(tool_calls=[call(id="a", name="f", arguments="{}")])
    events = decode(start, delta("tool_calls"), delta("tool_calls"), "[DONE]")
    assert events == [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", "{}"),
        ToolCallEnded("a"),
        CALLED,
    ]


def test_a_done_mark_after_content_is_an_end_without_a_reason():
    assert decode(delta(content="a"), "[DONE]") == [TextDelta("a"), NO_REASON, done()]


def test_a_stream_without_finish_reason_and_mark_is_incomplete():
    with pytest.raises(IncompleteStream):
        decode(delta(content="a"))


def test_a_done_mark_alone_is_incomplete():
    with pytest.raises(IncompleteStream):
        decode("[DONE]")


ERRORS = [
    ('{"error":{"message":"Token limit reached","code":502}}', ErrorKind.SERVER),
    ('{"error":"over capacity: rate limit"}', ErrorKind.RATE_LIMIT),
    (
        '{"error":{"message":"m","code":"tool_use_failed","failed_generation":"{"}}',
        ErrorKind.MALFORMED_CALL,
    ),
    ('{"object":"error","message":"bad","code":400}', ErrorKind.BAD_REQUEST),
    ('{"detail":"Invalid API key: authentication failed"}', ErrorKind.AUTH),
    ('{"choices":[],"x_groq":{"error":"over_capacity: overloaded"}}', ErrorKind.OVERLOADED),
]


@pytest.mark.parametrize(("text", "kind"), ERRORS)
def test_an_error_inside_the_stream_is_the_vendors(text: str, kind: ErrorKind):
    with pytest.raises(ProviderError) as caught:
        decode(delta(content="a"), text)
    assert (caught.value.kind, caught.value.body) == (kind, text)


UPSTREAM = {"code": 502, "message": "Upstream idle timeout exceeded", "metadata": {"raw": "gone"}}


@pytest.mark.parametrize("finish", ["error", None])
@pytest.mark.parametrize("given", [{"content": "b"}, {"content": ""}, {}, None])
def test_an_error_inside_a_choice_is_the_vendors(given: Json | None, finish: str | None):
    choice = {"index": 0, "delta": given, "finish_reason": finish, "error": UPSTREAM}
    text = json.dumps({"id": "gen-1", "choices": [choice]})
    body = f"data: {json.dumps(delta(content='a'))}\n\ndata: {text}\n\ndata: [DONE]\n\n"
    answer = read_answer("openai-chat", body.encode())
    assert answer.message.text == ("ab" if given and given["content"] else "a")
    error = answer.error
    assert isinstance(error, ProviderError)
    assert (error.kind, error.status, error.body) == (ErrorKind.SERVER, 502, text)
    assert str(error) == "Upstream idle timeout exceeded: gone"
    assert isinstance(decide(error, 1, USUAL, 0.0), Wait)


def test_an_error_inside_the_choice_of_a_whole_answer_follows_its_text():
    message = {"role": "assistant", "content": "a", "reasoning": "t"}
    choice = {"index": 0, "message": message, "finish_reason": "error", "error": UPSTREAM}
    body = json.dumps({"id": "gen-1", "choices": [choice]}).encode()
    answer = read_answer("openai-chat", body, whole=True)
    assert (answer.message.text, answer.finished) == ("a", None)
    assert isinstance(answer.error, ProviderError)
    assert (answer.error.status, answer.error.body) == (502, body.decode())


def test_an_error_inside_another_choice_is_not_read():
    choices = [{"index": 1, "delta": {}, "error": UPSTREAM}]
    assert decode({"choices": choices}, delta("stop", content="a"))[1:] == [TextDelta("a"), done()]


def test_an_error_of_odd_types_inside_a_choice_is_the_vendors():
    choice = {"index": "0", "delta": {"content": 1}, "error": "upstream overloaded"}
    with pytest.raises(ProviderError, match="upstream overloaded") as caught:
        decode({"choices": [choice]})
    assert caught.value.kind is ErrorKind.OVERLOADED


@pytest.mark.parametrize("data", [b'{"message":"went wrong"}', b"went wrong"])
def test_a_frame_named_error_is_an_error_whatever_it_says(data: bytes):
    decoder = DIALECT.decoder(options())
    with pytest.raises(ProviderError, match="went wrong"):
        decoder.feed(Frame(data, "error"))


@pytest.mark.parametrize("text", ["{", '{"choices":1}', "[]", '{"choices":[{"delta":[]}]}'])
def test_a_frame_of_another_shape_is_malformed(text: str):
    with pytest.raises(MalformedStream):
        decode(text)


def test_a_done_mark_after_nothing_but_the_head_of_a_call_is_an_end():
    events = decode(delta(tool_calls=[call(id="a", name="f", arguments="")]), "[DONE]")
    assert events == [ToolCallStarted("a", "f"), ToolCallEnded("a"), NO_REASON, CALLED]
