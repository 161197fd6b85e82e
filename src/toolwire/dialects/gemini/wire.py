"""The common chunk of a streamed answer, typed: only what is read, and nothing unknown.

A chunk with any other member is refused here and read member by member instead (`chunks`), so that
nothing it says is lost.
"""

import msgspec

NOTHING = msgspec.Raw(b"")


class Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A whole call."""

    name: str
    args: msgspec.Raw = NOTHING
    id: str | None = None


class Part(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Text, thought or call, any of them signed."""

    text: str | None = None
    thought: bool | None = None
    functionCall: Call | None = None
    thoughtSignature: str | None = None


class Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """New parts."""

    parts: list[Part] | None = None
    role: str | None = None


class Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The answer; there is one unless more were asked for."""

    content: Content | None = None
    finishReason: str | None = None
    index: int | None = None


class Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One streamed response object."""

    candidates: list[Candidate]
    usageMetadata: msgspec.Raw = NOTHING
    modelVersion: str | None = None
    responseId: str | None = None
    createTime: str | None = None


class Enveloped(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Code Assist's envelope around it."""

    response: Chunk
    traceId: str | None = None
