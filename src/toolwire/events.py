"""Events of a streamed answer: one closed set for every wire format."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from toolwire.messages import CallKind, Citation, Kept, Loss, Media, Seal, ServerBlock


class StopReason(StrEnum):
    """Why an answer ended."""

    END = "end"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"
    PAUSE = "pause"
    MALFORMED_CALL = "malformed_call"
    ERROR = "error"


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens as the vendor counts them; None where not reported."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cost: float | None = None
    cache_in_input: bool = True
    """False where `input` leaves the cached tokens out (Anthropic)."""
    reasoning_in_output: bool = True
    """False where `output` leaves the reasoning tokens out (Gemini)."""

    @property
    def total_input(self) -> int:
        """All prompt tokens, cached ones included."""
        extra = 0 if self.cache_in_input else (self.cached or 0) + (self.cache_write or 0)
        return (self.input or 0) + extra

    @property
    def total_output(self) -> int:
        """All generated tokens, reasoning included."""
        return (self.output or 0) + (0 if self.reasoning_in_output else self.reasoning or 0)


class TextDelta(msgspec.Struct, frozen=True, gc=False, tag="text_delta"):
    """More of the open text part; opens one if none is open."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, gc=False, tag="thinking_delta"):
    """More reasoning."""

    text: str


class RefusalDelta(msgspec.Struct, frozen=True, gc=False, tag="refusal_delta"):
    """More refusal text."""

    text: str


class CitationAdded(msgspec.Struct, frozen=True, tag="citation_added"):
    """A source for the open text part."""

    citation: Citation


class TextEnded(msgspec.Struct, frozen=True, tag="text_ended"):
    """Closes the open text (or refusal) part, or represents an empty one, and attaches vendor
    state.

    Formats without part boundaries send none; the part then ends where another kind begins.
    """

    seal: Seal | None = None
    kept: Kept | None = None
    text: str | None = None
    """Set when the vendor's final text differs from the deltas."""


class ThinkingEnded(msgspec.Struct, frozen=True, tag="thinking_ended"):
    """Closes the open reasoning part, or represents an empty one, and attaches vendor state."""

    seal: Seal | None = None
    kept: Kept | None = None


class ToolCallStarted(msgspec.Struct, frozen=True, gc=False, tag="tool_call_started"):
    """A call begins. Ids are unique within an answer."""

    id: str
    name: str
    kind: CallKind = CallKind.JSON
    namespace: str = ""
    made_id: bool = False
    kept: Kept | None = None
    """Set where the format sends it at the start; the end's value takes precedence."""


class ToolCallDelta(msgspec.Struct, frozen=True, gc=False, tag="tool_call_delta"):
    """More raw argument text."""

    id: str
    arguments: str


class ToolCallEnded(msgspec.Struct, frozen=True, gc=False, tag="tool_call_ended"):
    """A call's end. `arguments` is set when the vendor's final value differs from the deltas."""

    id: str
    arguments: str | None = None
    complete: bool = True
    seal: Seal | None = None
    kept: Kept | None = None


class MediaAdded(msgspec.Struct, frozen=True, tag="media_added"):
    """An image, sound or file from the model."""

    media: Media


class ServerBlockAdded(msgspec.Struct, frozen=True, tag="server_block_added"):
    """A server-side step, whole."""

    block: ServerBlock


class Retry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a failed request is repeated."""

    status: int | None = None
    """HTTP status of the failure, if it has one."""
    attempt: int
    """Number of the attempt that follows, counted from 1."""
    wait: float = 0.0
    """Seconds before it."""


UNMARKED_END = "unmarked_end"
"""Kind of the notice that an answer arrived whole but without the vendor's end mark."""


class Notice(msgspec.Struct, frozen=True, gc=False, tag="notice"):
    """A notice for readers: a duplicate, a dropped choice."""

    kind: str
    message: str
    loss: Loss | None = None
    """What a notice of kind `loss` reports."""
    retry: Retry | None = None
    """What a notice of kind `retry` reports."""


class Finished(msgspec.Struct, frozen=True, kw_only=True, tag="finished"):
    """The end of a complete answer. Nothing follows it."""

    reason: StopReason
    usage: Usage = Usage()
    detail: str = ""
    """The vendor's stop reason where it is more specific, with its message."""
    response_id: str = ""
    model: str = ""
    kept: Kept | None = None


ModelEvent: TypeAlias = (
    TextDelta
    | ThinkingDelta
    | RefusalDelta
    | CitationAdded
    | TextEnded
    | ThinkingEnded
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallEnded
    | MediaAdded
    | ServerBlockAdded
    | Notice
    | Finished
)
