"""The vendor's own SDK reads our streams and takes our requests."""

import json
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic.types import RawMessageStreamEvent
from anthropic.types.beta import BetaRawMessageStreamEvent
from pydantic import TypeAdapter

from tests import acceptance
from tests.dialects.anthropic.exchange import (
    body_and_losses,
    collected,
    decode_bytes,
    encode_bytes,
    finished,
    ids,
    request,
    seal,
)
from toolwire.dialects.anthropic import DIALECT
from toolwire.events import (
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import (
    CacheMark,
    Media,
    MediaKind,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import (
    Effort,
    FreeformTool,
    OutputFormat,
    Reasoning,
    ToolChoice,
    ToolSpec,
)

SAMPLES = sorted((Path(__file__).parents[2] / "wire" / "anthropic").glob("*.sse"))
EVENTS: list[ModelEvent] = [
    ThinkingDelta("so"),
    ThinkingEnded(seal(signature="s")),
    TextDelta("hi"),
    ToolCallStarted("toolu_a", "read"),
    ToolCallDelta("toolu_a", '{"path":'),
    ToolCallDelta("toolu_a", '"a"}'),
    ToolCallEnded("toolu_a"),
    ToolCallStarted("toolu_b", "list"),
    ToolCallEnded("toolu_b"),
    finished(StopReason.TOOL_CALLS),
]
CONTENT = [
    {"type": "thinking", "thinking": "so", "signature": "s"},
    {"type": "text", "text": "hi"},
    {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {"path": "a"}},
    {"type": "tool_use", "id": "toolu_b", "name": "list", "input": {}},
]


def client(body: bytes, kind: str) -> anthropic.Anthropic:
    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=body, headers={"content-type": kind})

    transport = httpx2.MockTransport(answer)
    return anthropic.Anthropic(api_key="x", http_client=httpx2.Client(transport=transport))


def plain(content: Any) -> list[dict[str, Any]]:
    return [block.model_dump(exclude_none=True) for block in content]


def ask(beta: bool, body: bytes) -> Any:
    asked: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    sdk = client(body, "text/event-stream")
    messages = sdk.beta.messages if beta else sdk.messages
    with messages.stream(**asked) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("beta", [False, True])
def test_the_sdk_accumulates_what_we_stream(beta: bool) -> None:
    message = ask(beta, encode_bytes(EVENTS))
    assert plain(message.content) == CONTENT
    assert (message.id, message.model, message.stop_reason) == ("msg_1", "m", "tool_use")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_sdk_reads_a_sample_and_our_copy_of_it_alike(path: Path) -> None:
    if path.stem == "odd_server":
        pytest.skip("the SDK passes over events without a name")
    original = path.read_bytes()
    copy = encode_bytes(decode_bytes([original]), "claude-sonnet-5")
    one, other = ask(True, original), ask(True, copy)
    assert plain(other.content) == plain(one.content)
    assert other.stop_reason == one.stop_reason
    assert other.usage.output_tokens == one.usage.output_tokens


def test_the_sdk_reads_our_whole_answers() -> None:
    whole = DIALECT.encode_whole(collected(EVENTS), finished(StopReason.TOOL_CALLS), "m", ids())
    message = client(whole, "application/json").messages.create(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
    )
    assert plain(message.content) == CONTENT


@pytest.mark.parametrize("union", [RawMessageStreamEvent, BetaRawMessageStreamEvent])
def test_every_frame_is_of_the_sdks_types(union: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(union)
    for line in encode_bytes(EVENTS).decode().split("\n"):
        if line.startswith("data: "):
            adapter.validate_json(line.removeprefix("data: "), strict=True)


TOOL = ToolSpec(name="a.b", description="d", parameters={"type": "object", "properties": {}})
IMAGE = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AA==")
SOUND = Media(kind=MediaKind.AUDIO, mime="audio/mpeg", base64="AA==")
PAPER = Media(kind=MediaKind.DOCUMENT, mime="application/pdf", base64="AA==", name="p.pdf")
NOTE = Media(kind=MediaKind.DOCUMENT, mime="text/markdown", base64="YQ==")
LINK = Media(kind=MediaKind.IMAGE, url="https://example.org/a.png")
CALL = ToolCall(id="c1", name="a.b", arguments='{"x":1}')
RESULT = ToolResult(call_id="c1", name="a.b", parts=(Text("ok"), IMAGE), is_error=True)
TALK = (
    Message(role="system", parts=(Text("be kind", cache=CacheMark("1h")),)),
    Message(role="user", parts=(Text("look"), IMAGE, SOUND, PAPER, NOTE, LINK)),
    Message(role="assistant", parts=(Thinking("hm"), Text("I look."), CALL)),
    Message(role="user", parts=(Text("and?"), RESULT)),
)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"tools": (TOOL, FreeformTool(name="patch", syntax="lark", grammar="x"))},
        {"tools": (TOOL,), "tool_choice": ToolChoice(mode="required", names=("a.b",))},
        {"tools": (TOOL,), "tool_choice": ToolChoice(mode="none"), "parallel_calls": False},
        {"tools": (TOOL,), "parallel_calls": False},
        {"reasoning": Reasoning(effort=Effort.MINIMAL, visible=True)},
        {"reasoning": Reasoning(budget=10_000), "max_output_tokens": 2000},
        {"reasoning": Reasoning(enabled=False)},
        {"output": OutputFormat(kind="json_schema", schema={"type": "object"}, name="n")},
        {"stop": ("a", " "), "seed": 1, "temperature": 1.7, "top_p": 0.5, "stream": True},
    ],
)
def test_requests_from_elsewhere_are_of_the_sdks_types(members: dict[str, Any]) -> None:
    body, _ = body_and_losses(request(*TALK, **members))
    acceptance.check("anthropic-messages", json.loads(json.dumps(body)))
