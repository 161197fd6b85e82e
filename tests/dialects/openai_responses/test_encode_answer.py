import json

import pydantic
import pytest
from openai import omit
from openai._streaming import SSEDecoder
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent

from tests.dialects.openai_responses.exchange import (
    collected,
    counted,
    decode_bytes,
    encode,
    encode_bytes,
    finished,
    ids,
    options,
    seal,
)
from toolwire.dialects.openai_responses import DIALECT
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import (
    CitationAdded,
    MediaAdded,
    ModelEvent,
    Notice,
    RefusalDelta,
    ServerBlockAdded,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import (
    CallKind,
    Citation,
    Kept,
    Media,
    MediaKind,
    Message,
    Origin,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
)

FOREIGN: list[ModelEvent] = [
    ThinkingDelta("Let me "),
    ThinkingDelta("think."),
    ThinkingEnded(Seal(origin=Origin("anthropic-messages"), data='{"signature":"x"}')),
    TextDelta("Hi "),
    CitationAdded(Citation(dialect="gemini", data="{}", url="https://e.org", title="E")),
    TextDelta("there"),
    TextEnded(kept=Kept(dialect="gemini", fields='{"a":1}')),
    TextDelta("more"),
    Notice("duplicate_call", "ours"),
    ServerBlockAdded(ServerBlock(origin=Origin("gemini"), kind="x", data="{}")),
    ToolCallStarted("c1", "read", namespace="mcp"),
    ToolCallDelta("c1", '{"a":'),
    ToolCallStarted("c2", "patch", CallKind.FREEFORM),
    ToolCallDelta("c1", "1}"),
    ToolCallEnded("c1"),
    ToolCallDelta("c2", "*** text"),
    ToolCallEnded("c2"),
    MediaAdded(Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")),
    finished(StopReason.TOOL_CALLS, usage=counted()),
]


def sdk_events(frames: list[dict]) -> list:
    from openai.types.responses import ResponseStreamEvent

    adapter = pydantic.TypeAdapter(ResponseStreamEvent)
    return [adapter.validate_python(frame) for frame in frames]


def sdk_final(frames: list[dict]):
    from openai import omit
    from openai.lib.streaming.responses._responses import ResponseStreamState

    state = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in sdk_events(frames):
        state.handle_event(event)
    return state._completed_response


def test_the_vendors_sdk_accumulates_the_stream_of_any_answer():
    response = sdk_final(encode(FOREIGN))
    assert response is not None
    assert response.output_text == "Hi theremore"
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "message",
        "function_call",
        "custom_tool_call",
        "image_generation_call",
    ]
    assert (response.id, response.model, response.status) == ("resp_tw1", "m", "completed")


def test_an_answer_of_another_format_decodes_to_the_same_message():
    message = collected(decode_bytes([encode_bytes(FOREIGN)]))
    assert message.text == "Hi theremore"
    assert message.thinking == "Let me think."
    assert [(c.id, c.name, c.namespace, c.arguments) for c in message.calls] == [
        ("c1", "read", "mcp", '{"a":1}'),
        ("c2", "patch", "", "*** text"),
    ]


def test_the_frames_of_a_short_text_are_those_of_the_server():
    frames = encode([TextDelta("hi"), finished(usage=counted())])
    assert [frame["type"] for frame in frames] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [frame["sequence_number"] for frame in frames] == list(range(9))
    item = {
        "id": "msg_tw1_0",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "hi"}],
    }
    assert frames[-2]["item"] == item
    assert frames[-1]["response"]["output"] == [item]


def test_the_phase_and_encrypted_reasoning_of_the_same_format_go_through():
    events: list[ModelEvent] = [
        ThinkingDelta("hm"),
        ThinkingEnded(seal(id="rs_1", encrypted_content="e")),
        TextDelta("hi"),
        TextEnded(seal(id="msg_1", phase="final_answer")),
        finished(),
    ]
    items = [f["item"] for f in encode(events) if f["type"] == "response.output_item.done"]
    assert items == [
        {
            "type": "reasoning",
            "id": "rs_tw1_0",
            "encrypted_content": "e",
            "summary": [{"type": "summary_text", "text": "hm"}],
        },
        {
            "type": "message",
            "id": "msg_tw1_1",
            "role": "assistant",
            "status": "completed",
            "phase": "final_answer",
            "content": [{"type": "output_text", "text": "hi", "annotations": [], "logprobs": []}],
        },
    ]


def test_a_call_that_never_ended_is_incomplete_in_the_stream():
    events: list[ModelEvent] = [
        ToolCallStarted("c", "f"),
        ToolCallDelta("c", '{"a'),
        finished(StopReason.LENGTH),
    ]
    again = decode_bytes([encode_bytes(events)])
    assert [call.complete for call in collected(again).calls] == [False]
    assert again[-1] == finished(StopReason.LENGTH, "max_output_tokens")


def test_an_error_in_the_middle_is_an_error_event_then_a_failed_response():
    encoder = DIALECT.encoder("m", ids())
    error = ProviderError(ErrorKind.RATE_LIMIT, "slow down", param="model")
    frames = [*encoder.feed(TextDelta("hi")), *encoder.fail(error)]
    sdk_events([json.loads(frame.data) for frame in frames])
    sent, failed = (json.loads(frame.data) for frame in frames[-2:])
    assert sent == {
        "type": "error",
        "sequence_number": 5,
        "code": "rate_limit_exceeded",
        "message": "slow down",
        "param": "model",
    }
    assert failed["response"]["status"] == "failed"
    assert encoder.feed(TextDelta("late")) == ()
    decoder = DIALECT.decoder(options())
    for frame in frames[:-2]:
        decoder.feed(frame)
    with pytest.raises(ProviderError, match="slow down"):
        decoder.feed(frames[-2])


def test_a_refusal_without_text_is_filtered_content():
    assert encode([finished(StopReason.REFUSAL)])[-1]["response"]["incomplete_details"] == {
        "reason": "content_filter"
    }
    worded = encode([RefusalDelta("no"), finished(StopReason.REFUSAL)])
    assert worded[-1]["response"]["status"] == "completed"


def test_a_whole_answer_fits_the_vendors_types_and_comes_back():
    from openai.types.responses import Response

    parts = (
        Thinking("hm"),
        Text("hi"),
        ToolCall(id="c", name="f", arguments="{}"),
        Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA"),
    )
    end = finished(StopReason.TOOL_CALLS, usage=counted())
    body = DIALECT.encode_whole(Message(role="assistant", parts=parts), end, "m", ids())
    pydantic.TypeAdapter(Response).validate_json(body)
    events = list(DIALECT.decode_whole(body, options()))
    message = collected(events)
    assert (message.thinking, message.text) == ("hm", "hi")
    assert [(call.id, call.name, call.arguments) for call in message.calls] == [("c", "f", "{}")]
    assert events[-1] == end


def test_an_error_has_the_vendors_shape_and_status():
    status, body = DIALECT.encode_error(ProviderError(ErrorKind.CONTEXT_TOO_LONG, "too long"))
    assert (status, json.loads(body)) == (
        400,
        {
            "error": {
                "message": "too long",
                "type": "invalid_request_error",
                "param": None,
                "code": "context_length_exceeded",
            }
        },
    )
    again = DIALECT.error(status, {"retry-after": "3"}, body)
    assert (again.kind, str(again), again.retry_after) == (
        ErrorKind.CONTEXT_TOO_LONG,
        "too long",
        3.0,
    )


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error":null}', b"\xff"])
def test_a_body_that_is_not_an_error_object_still_gives_an_error(body: bytes) -> None:
    assert DIALECT.error(502, {}, body).kind is ErrorKind.SERVER


def test_the_sdks_stream_helper_reads_citations_and_images():
    cited = Citation(dialect="gemini", data="{}", url="https://e.org", title="E")
    image = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
    events: list[ModelEvent] = [
        TextDelta("a"),
        CitationAdded(cited),
        CitationAdded(cited),
        TextEnded(),
        MediaAdded(image),
        MediaAdded(image),
        finished(),
    ]
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    adapter: pydantic.TypeAdapter[ResponseStreamEvent] = pydantic.TypeAdapter(ResponseStreamEvent)
    for event in SSEDecoder().iter_bytes(iter([encode_bytes(events)])):
        state.handle_event(adapter.validate_json(event.data))
