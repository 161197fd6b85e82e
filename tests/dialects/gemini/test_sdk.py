"""The vendor's own SDK reads our answers and takes our requests."""

import json
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types

from tests import acceptance
from tests.dialects.gemini.exchange import (
    body_and_losses,
    collected,
    encode_bytes,
    finished,
    ids,
    model,
    request,
    seal,
    user,
)
from toolwire.dialects.gemini import DIALECT
from toolwire.dialects.quirks import Quirks
from toolwire.errors import ErrorKind, ProviderError
from toolwire.events import (
    Finished,
    ModelEvent,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Media, MediaKind, Text, Thinking, ToolCall, ToolResult
from toolwire.request import (
    Effort,
    FreeformTool,
    OutputFormat,
    Reasoning,
    ToolChoice,
    ToolSpec,
)

SIGNATURE = "c2FtcGxl"
EVENTS: list[ModelEvent] = [
    ThinkingDelta("hm"),
    TextDelta("naïve \u2028"),
    TextDelta(" text"),
    TextEnded(),
    TextEnded(seal(SIGNATURE)),
    ToolCallStarted("x1", "f"),
    ToolCallDelta("x1", '{"a":'),
    ToolCallDelta("x1", "1}"),
    ToolCallEnded("x1", seal=seal(SIGNATURE)),
    ToolCallStarted("made", "g", made_id=True),
    ToolCallEnded("made"),
    finished(StopReason.TOOL_CALLS, usage=Usage(input=3, output=9, reasoning=4)),
]
WANTED = [("f", {"a": 1}, "x1"), ("g", {}, None)]


def client(status: int, content_type: str, body: bytes) -> genai.Client:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers={"content-type": content_type}, content=body)

    transport = httpx2.MockTransport(answer)
    options = types.HttpOptions(httpx_client=httpx2.Client(transport=transport))
    return genai.Client(api_key="k", http_options=options)


def calls_of(parts: list[Any]) -> list[Any]:
    calls = [part.function_call for part in parts if part.function_call]
    return [(call.name, call.args, call.id) for call in calls]


def test_the_sdk_reads_our_stream() -> None:
    speaking = client(200, "text/event-stream", encode_bytes(EVENTS))
    chunks: list[Any] = list(speaking.models.generate_content_stream(model="m", contents="hi"))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    assert "".join(part.text or "" for part in parts if not part.thought) == "naïve \u2028 text"
    assert "".join(part.text or "" for part in parts if part.thought) == "hm"
    assert calls_of(parts) == WANTED
    assert [part.thought_signature for part in parts if part.thought_signature] == [b"sample"] * 2
    assert chunks[-1].candidates[0].finish_reason is types.FinishReason.STOP
    usage = chunks[-1].usage_metadata
    assert (usage.prompt_token_count, usage.candidates_token_count) == (3, 5)
    assert (usage.thoughts_token_count, usage.total_token_count) == (4, 12)


def test_the_sdk_reads_our_whole_answer() -> None:
    last = EVENTS[-1]
    assert isinstance(last, Finished)
    body = DIALECT.encode_whole(collected(EVENTS), last, "m", ids())
    speaking = client(200, "application/json", body)
    answer: Any = speaking.models.generate_content(model="m", contents="hi")
    assert calls_of(answer.candidates[0].content.parts) == WANTED


def test_the_sdk_raises_our_errors() -> None:
    status, body = DIALECT.encode_error(ProviderError(ErrorKind.NOT_FOUND, "no such model"))
    with pytest.raises(genai.errors.ClientError) as raised:
        client(status, "application/json", body).models.generate_content(model="m", contents="hi")
    assert (raised.value.code, raised.value.message) == (404, "no such model")
    assert raised.value.status == "NOT_FOUND"


@pytest.mark.parametrize(
    "quirks",
    [
        Quirks(),
        Quirks(gemini_schema="openapi", media_in_results=True, gemini_thinking="budget"),
        Quirks(signature_sentinel="c2tpcA==", send_made_ids=True),
    ],
)
def test_the_sdk_takes_our_requests(quirks: Quirks) -> None:
    image = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
    linked = Media(kind=MediaKind.DOCUMENT, url="https://a.example/x.pdf")
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    call = ToolCall(id="1", name="f", arguments='{"a":"b"}', seal=seal(SIGNATURE))
    asked = request(
        user("hi", image, linked),
        model(Thinking("hm"), "text", call, ToolCall(id="2", name="g", arguments="broken")),
        user(
            ToolResult(call_id="2", parts=(Text("bad"),), is_error=True),
            ToolResult(call_id="1", parts=(Text("ok"), image)),
        ),
        system=(Text("be brief"),),
        tools=(
            ToolSpec(name="f", description="d", parameters=schema),
            ToolSpec(name="g"),
            FreeformTool(name="patch", syntax="lark", grammar="start: x"),
        ),
        tool_choice=ToolChoice(mode="required", names=("f",)),
        max_output_tokens=5,
        temperature=0.5,
        top_p=1,
        top_k=40,
        seed=1,
        stop=("x",),
        frequency_penalty=0.1,
        presence_penalty=0.1,
        reasoning=Reasoning(effort=Effort.HIGH),
        output=OutputFormat(kind="json_schema", schema=schema),
    )
    body, _ = body_and_losses(asked, quirks)
    acceptance.check("gemini", json.loads(json.dumps(body)))
