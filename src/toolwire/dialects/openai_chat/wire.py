"""What is read of a Chat Completions answer: private shapes, every member optional or null."""

from typing import Any

import msgspec
from msgspec import Raw

NAME = "openai-chat"

REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""Members in which compatible servers tell of thinking and want it back."""


class Function(msgspec.Struct, gc=False):
    """A piece of a function call; some servers write the arguments as an object."""

    name: str | None = None
    arguments: str | dict[str, Raw] | list[Raw] | None = None


class Custom(msgspec.Struct, gc=False):
    """A piece of a call of a freeform tool."""

    name: str | None = None
    input: str | dict[str, Raw] | list[Raw] | None = None


class Fragment(msgspec.Struct, gc=False):
    """A piece of a call, or a whole one."""

    index: int | None = None
    function: Function | None = None
    id: str | None = None
    custom: Custom | None = None
    type: str | None = None
    extra_content: dict[str, Any] | None = None


class Audio(msgspec.Struct, gc=False):
    """A piece of spoken output."""

    id: str | None = None
    data: str | None = None
    transcript: str | None = None
    expires_at: int | None = None


class Delta(msgspec.Struct, gc=False):
    """More of the message; the message of a whole answer has the same members."""

    content: str | list[Raw] | dict[str, Raw] | None = None
    tool_calls: list[Fragment] | None = None
    reasoning_content: str | None = None
    reasoning: str | dict[str, Any] | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    function_call: Function | None = None
    annotations: list[Raw] | None = None
    audio: Audio | None = None
    images: list[dict[str, Any]] | None = None
    extra_content: dict[str, Any] | None = None


class Choice(msgspec.Struct, gc=False):
    """One of the answers; `message` is the whole so far where `delta` stands beside it."""

    delta: Delta | None = None
    index: int | None = None
    finish_reason: str | None = None
    message: Raw = Raw(b"")
    usage: dict[str, Any] | None = None


class Groq(msgspec.Struct, gc=False):
    """What Groq says beyond the format."""

    usage: dict[str, Any] | None = None
    error: Any = None


class ReadSoFar(msgspec.Struct, gc=False):
    """How much of the prompt llama.cpp has read, while it reads."""

    total: int = 0
    processed: int = 0


class Chunk(msgspec.Struct, gc=False):
    """What is read of every frame of a stream."""

    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    x_groq: Groq | None = None
    prompt_progress: ReadSoFar | None = None


class NamedChunk(Chunk, gc=False):
    """A frame whose names are not known yet, and a whole answer too."""

    id: str | None = None
    model: str | None = None


class ContentPart(msgspec.Struct, gc=False):
    """One part of a message whose content is a list."""

    type: str | None = None
    text: str | None = None
    refusal: str | None = None
    thinking: str | list[dict[str, Any]] | None = None
    image_url: str | dict[str, Any] | None = None


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are not JSON of the expected shape."""

read_chunk = msgspec.json.Decoder(NamedChunk).decode
read_next_chunk = msgspec.json.Decoder(Chunk).decode
read_delta = msgspec.json.Decoder(Delta).decode
read_part = msgspec.json.Decoder(ContentPart).decode
