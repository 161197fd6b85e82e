"""The auditor itself: a conversion that loses something without a word is caught."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tests import audit
from toolwire import dialects
from toolwire.messages import Media, MediaKind, Message, Text, ToolCall, ToolResult
from toolwire.request import (
    Effort,
    FreeformTool,
    ModelRequest,
    OutputFormat,
    Reasoning,
    ToolChoice,
    ToolSpec,
)

PICTURE = Media.of_bytes(MediaKind.IMAGE, "image/png", b"not really a picture")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
REQUEST = ModelRequest(
    model="some-model",
    system=(Text("Be exact."),),
    messages=(
        Message(role="user", parts=(Text("Look at this."), PICTURE)),
        Message(
            role="assistant",
            parts=(
                Text("Reading."),
                ToolCall(id="call_1", name="read", arguments='{"path":"a"}'),
                ToolCall(id="call_2", name="read", arguments='{"path":"b"}'),
            ),
        ),
        Message(
            role="user",
            parts=(
                ToolResult(call_id="call_1", name="read", parts=(Text("alpha"),)),
                ToolResult(
                    call_id="call_2", name="read", parts=(Text("no such file"),), is_error=True
                ),
                Text("And now?"),
            ),
        ),
    ),
    tools=(
        ToolSpec(name="read", description="Read a file.", parameters=SCHEMA),
        FreeformTool(name="patch", description="Apply a patch."),
    ),
    tool_choice=ToolChoice(mode="required"),
    parallel_calls=False,
    max_output_tokens=1000,
    temperature=0.5,
    top_p=0.9,
    stop=("END",),
    reasoning=Reasoning(effort=Effort.HIGH),
    output=OutputFormat(kind="json_schema", schema=SCHEMA, name="answer"),
)


def without_parts(request: ModelRequest, unwanted: Callable[[Any], bool]) -> ModelRequest:
    messages = tuple(
        replace(message, parts=tuple(part for part in message.parts if not unwanted(part)))
        for message in request.messages
    )
    return replace(request, messages=messages)


def with_parts(request: ModelRequest, change: Callable[[Any], Any]) -> ModelRequest:
    messages = tuple(
        replace(message, parts=tuple(change(part) for part in message.parts))
        for message in request.messages
    )
    return replace(request, messages=messages)


def _other_path(part: Any) -> Any:
    is_first = isinstance(part, ToolCall) and part.id == "call_1"
    return replace(part, arguments='{"path":"c"}') if is_first else part


def _other_result(part: Any) -> Any:
    is_first = isinstance(part, ToolResult) and part.call_id == "call_1"
    return replace(part, parts=(Text("beta"),)) if is_first else part


def _no_error(part: Any) -> Any:
    return replace(part, is_error=False) if isinstance(part, ToolResult) else part


SILENT_LOSSES: dict[str, Callable[[ModelRequest], ModelRequest]] = {
    "the model": lambda request: replace(request, model="another"),
    "the system text": lambda request: replace(request, system=()),
    "a tool": lambda request: replace(request, tools=request.tools[1:]),
    "a freeform tool": lambda request: replace(request, tools=request.tools[:1]),
    "a description": lambda request: replace(
        request, tools=(replace(request.tools[0], description=""), request.tools[1])
    ),
    "a schema keyword": lambda request: replace(
        request,
        tools=(
            ToolSpec(
                name="read",
                description="Read a file.",
                parameters={key: SCHEMA[key] for key in ("type", "properties")},
            ),
            request.tools[1],
        ),
    ),
    "the tool choice": lambda request: replace(request, tool_choice=None),
    "one call at a time": lambda request: replace(request, parallel_calls=None),
    "the length limit": lambda request: replace(request, max_output_tokens=77),
    "the temperature": lambda request: replace(request, temperature=None),
    "top_p": lambda request: replace(request, top_p=None),
    "a stop word": lambda request: replace(request, stop=()),
    "the effort": lambda request: replace(request, reasoning=None),
    "the output schema": lambda request: replace(request, output=None),
    "a user's text": lambda request: without_parts(request, lambda p: p == Text("And now?")),
    "an assistant's text": lambda request: without_parts(request, lambda p: p == Text("Reading.")),
    "a picture": lambda request: without_parts(request, lambda p: isinstance(p, Media)),
    "a call and its result": lambda request: without_parts(
        request, lambda p: getattr(p, "id", getattr(p, "call_id", "")) == "call_2"
    ),
    "an argument": lambda request: with_parts(request, _other_path),
    "a result's text": lambda request: with_parts(request, _other_result),
    "an error mark": lambda request: with_parts(request, _no_error),
}


@pytest.mark.parametrize("target", dialects.NAMES)
def test_an_honest_conversion_passes(target: str) -> None:
    encoded = dialects.get(target).encode_request(REQUEST)
    assert audit.unreported(REQUEST, target, encoded) == []


@pytest.mark.parametrize("target", dialects.NAMES)
@pytest.mark.parametrize("lost", SILENT_LOSSES)
def test_a_loss_without_a_word_is_caught(target: str, lost: str) -> None:
    careless = dialects.get(target).encode_request(SILENT_LOSSES[lost](REQUEST))
    assert audit.unreported(REQUEST, target, replace(careless, losses=()))


def test_the_careless_conversions_are_caught_in_a_format_that_carries_them() -> None:
    caught: set[str] = set()
    for target in dialects.NAMES:
        codec = dialects.get(target)
        honest = codec.encode_request(REQUEST)
        for lost, lose in SILENT_LOSSES.items():
            careless = replace(codec.encode_request(lose(REQUEST)), losses=honest.losses)
            if audit.unreported(REQUEST, target, careless):
                caught.add(lost)
    assert caught == set(SILENT_LOSSES)
