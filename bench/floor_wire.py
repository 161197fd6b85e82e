"""Structs of what a runtime reads of each wire format, as the floor declares them."""

from functools import reduce
from operator import or_
from typing import Any

import msgspec


class ChatFunction(msgspec.Struct):
    """A call's name or some of its arguments."""

    name: str | None = None
    arguments: str | None = None


class ChatCall(msgspec.Struct):
    """A piece of a call."""

    index: int
    function: ChatFunction
    id: str | None = None


class ChatDelta(msgspec.Struct):
    """What a chunk adds."""

    role: str | None = None
    content: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[ChatCall] | None = None


class ChatChoice(msgspec.Struct):
    """One answer of the chunk."""

    delta: ChatDelta
    index: int = 0
    finish_reason: str | None = None


class ChatChunk(msgspec.Struct):
    """A frame of a chat stream."""

    choices: list[ChatChoice]
    id: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None


class ResponsesText(msgspec.Struct, tag="response.output_text.delta"):
    """More text."""

    delta: str
    output_index: int


class ResponsesArguments(msgspec.Struct, tag="response.function_call_arguments.delta"):
    """More argument text."""

    delta: str
    output_index: int


class ResponsesItemAdded(msgspec.Struct, tag="response.output_item.added"):
    """An item begins."""

    output_index: int
    item: dict[str, Any]


class ResponsesItemDone(msgspec.Struct, tag="response.output_item.done"):
    """An item's end."""

    output_index: int
    item: dict[str, Any]


class ResponsesCompleted(msgspec.Struct, tag="response.completed"):
    """The answer's end."""

    response: dict[str, Any]


_SKIPPED = (
    "created",
    "in_progress",
    "content_part.added",
    "content_part.done",
    "output_text.done",
    "function_call_arguments.done",
)
RESPONSES_EVENT: Any = reduce(
    or_,
    (
        msgspec.defstruct("Skipped", [("output_index", int, 0)], tag=f"response.{name}")
        for name in _SKIPPED
    ),
    ResponsesText
    | ResponsesArguments
    | ResponsesItemAdded
    | ResponsesItemDone
    | ResponsesCompleted,
)


class AnthropicText(msgspec.Struct, tag="text_delta"):
    """More text."""

    text: str


class AnthropicArguments(msgspec.Struct, tag="input_json_delta"):
    """More argument text."""

    partial_json: str


class AnthropicBlock(msgspec.Struct):
    """What a block opens with."""

    type: str
    id: str = ""
    name: str = ""


class AnthropicStart(msgspec.Struct, tag="content_block_start"):
    """A block begins."""

    index: int
    content_block: AnthropicBlock


class AnthropicDelta(msgspec.Struct, tag="content_block_delta"):
    """More of a block."""

    index: int
    delta: AnthropicText | AnthropicArguments


class AnthropicStop(msgspec.Struct, tag="content_block_stop"):
    """A block's end."""

    index: int


class AnthropicEnd(msgspec.Struct, tag="message_delta"):
    """The answer's end."""

    delta: dict[str, Any]
    usage: dict[str, Any]


class _MessageStart(msgspec.Struct, tag="message_start"):
    message: dict[str, Any]


class _MessageStop(msgspec.Struct, tag="message_stop"):
    pass


class _Ping(msgspec.Struct, tag="ping"):
    pass


ANTHROPIC_EVENT: Any = (
    AnthropicDelta
    | AnthropicStart
    | AnthropicStop
    | AnthropicEnd
    | _MessageStart
    | _MessageStop
    | _Ping
)


class GeminiCall(msgspec.Struct):
    """A call, whole."""

    name: str
    args: dict[str, Any]
    id: str | None = None


class GeminiPart(msgspec.Struct):
    """Text or a call."""

    text: str | None = None
    thought: bool = False
    functionCall: GeminiCall | None = None


class GeminiContent(msgspec.Struct):
    """The parts of a chunk."""

    parts: list[GeminiPart]


class GeminiCandidate(msgspec.Struct):
    """One answer of the chunk."""

    content: GeminiContent
    finishReason: str | None = None


class GeminiChunk(msgspec.Struct):
    """A frame of a Gemini stream."""

    candidates: list[GeminiCandidate]
    usageMetadata: dict[str, Any] | None = None
    responseId: str | None = None
