"""What a model is asked: the request, its tools, and what a conversion could not carry."""

from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec

from toolwire.messages import CacheMark, Kept, Message, Text

JsonObject: TypeAlias = dict[str, Any]
"""A decoded JSON object. Schemas are kept so because programs build and read them."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True, tag="json_tool"):
    """A tool whose arguments are a JSON object."""

    name: str
    description: str = ""
    parameters: JsonObject = {}
    """JSON Schema of the arguments; `{}` means none are taken."""
    strict: bool | None = None
    namespace: str = ""
    cache: CacheMark | None = None
    kept: Kept | None = None


class FreeformTool(msgspec.Struct, frozen=True, kw_only=True, tag="freeform_tool"):
    """A tool whose argument is plain text, optionally bound by a grammar."""

    name: str
    description: str = ""
    syntax: Literal["", "lark", "regex"] = ""
    grammar: str = ""
    namespace: str = ""
    kept: Kept | None = None


class ServerTool(msgspec.Struct, frozen=True, kw_only=True, tag="server_tool"):
    """A tool the vendor runs itself; known only to its own wire format."""

    dialect: str
    kind: str
    data: str
    """The vendor's JSON object, whole."""


AnyTool: TypeAlias = ToolSpec | FreeformTool | ServerTool


class ToolChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Whether and which tools may be called. One name with `required` forces that tool."""

    mode: Literal["auto", "required", "none"] = "auto"
    names: tuple[str, ...] = ()
    """Only these tools; empty for all."""
    kept: Kept | None = None


class Effort(StrEnum):
    """How hard to think."""

    NONE = "none"
    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


class Reasoning(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of the model's thinking."""

    enabled: bool | None = None
    """True or False switches it; None leaves it to the model."""
    effort: Effort | None = None
    budget: int | None = None
    """Thinking tokens at most; -1 lets the model decide."""
    visible: bool | None = None
    """Whether thoughts (or their summary) should come back as text."""
    kept: Kept | None = None


class OutputFormat(msgspec.Struct, frozen=True, kw_only=True):
    """The shape an answer must have."""

    kind: Literal["text", "json", "json_schema"] = "text"
    schema: JsonObject | None = None
    name: str = ""
    strict: bool | None = None
    kept: Kept | None = None


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model, complete."""

    model: str
    messages: tuple[Message, ...]
    system: tuple[Text, ...] = ()
    """Instructions outside the conversation. Formats that keep them in the list use system
    messages.
    """
    tools: tuple[AnyTool, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_calls: bool | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    reasoning: Reasoning | None = None
    output: OutputFormat | None = None
    stream: bool | None = None
    previous_response_id: str = ""
    kept: Kept | None = None
    """Set on every decoded request: its own format then writes just what was there, and adds no
    defaults.
    """


class Loss(msgspec.Struct, frozen=True):
    """Something a conversion could not carry, or carried weaker."""

    path: str
    what: str
    why: str


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request ready to send but for address and credentials."""

    path: str
    """After the provider's base address."""
    body: bytes
    method: str = "POST"
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
