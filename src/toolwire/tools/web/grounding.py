"""What the web tools share: asking the model beside the conversation, and naming its sources."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from toolwire.collect import Collector
from toolwire.errors import ProviderError, ToolwireError
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.request import JsonObject, ModelRequest, ServerTool
from toolwire.tools.spec import ToolContext
from toolwire.wire.json_access import dump, object_or_empty

MODEL = "gemini-2.5-flash"
"""Model name in errors; the context decides which model answers."""


class Grounded(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, and its sources in Gemini's own members."""

    text: str
    grounding: JsonObject = {}
    retrieval: JsonObject = {}


async def ask(model: Model, prompt: str, server_tool: str = "") -> Grounded:
    """One question beside the conversation, with one of Gemini's own tools if named."""
    tools = (
        (ServerTool(dialect="gemini", kind=server_tool, data=dump({server_tool: {}})),)
        if server_tool
        else ()
    )
    request = ModelRequest(
        model=MODEL,
        messages=(Message(role="user", parts=(Text(prompt),)),),
        tools=tools,
        temperature=0,
        top_p=1,
    )
    collector = Collector()
    async with reading(model(request)) as events:
        async for event in events:
            collector.add(event)
    kept = collector.finished.kept if collector.finished is not None else None
    members: JsonObject = {}
    if kept is not None and kept.dialect == "gemini":
        members = msgspec.json.decode(kept.fields, type=dict[str, Any])
    return Grounded(
        text=collector.message().text,
        grounding=object_or_empty(members.get("groundingMetadata")),
        retrieval=object_or_empty(members.get("urlContextMetadata")),
    )


def searches(context: ToolContext) -> bool:
    """Whether the model beside the conversation has Gemini's own tools."""
    return context.model is not None and context.model_dialect in ("gemini", "code-assist")


def complaint(error: ToolwireError, context: ToolContext) -> str:
    """gemini-cli's message for a failed question: the vendor's body, compact."""
    message = str(error)
    if isinstance(error, ProviderError) and error.body:
        try:
            message = dump(msgspec.json.decode(error.body))
        except (msgspec.DecodeError, UnicodeError):
            message = error.body
    return (
        f"Failed to generate content with model {context.settings.side_model or MODEL}: {message}"
    )


def sources(grounding: JsonObject, *, no_uri: str) -> list[str]:
    """The numbered list of sources."""
    lines: list[str] = []
    for number, chunk in enumerate(objects(grounding.get("groundingChunks")), 1):
        page = object_or_empty(chunk.get("web"))
        lines.append(f"[{number}] {page.get('title') or 'Untitled'} ({page.get('uri') or no_uri})")
    return lines


def cited(text: str, grounding: JsonObject, encoding: str) -> str:
    """The text with a mark such as `[1][2]` at the end of each passage that has a source.

    Positions count units of the encoding: bytes of UTF-8, or the two-byte units of UTF-16.
    """
    width = 2 if encoding.startswith("utf-16") else 1
    marks: list[tuple[int, str]] = []
    for support in objects(grounding.get("groundingSupports")):
        segment, indices = support.get("segment"), support.get("groundingChunkIndices")
        if isinstance(segment, dict) and isinstance(indices, list):
            end = cast(JsonObject, segment).get("endIndex")
            mark = "".join(f"[{number + 1}]" for number in cast(list[int], indices))
            marks.append((end if isinstance(end, int) else 0, mark))
    units = text.encode(encoding, "surrogatepass")
    pieces: list[bytes] = []
    last = len(units)
    for end, mark in sorted(marks, key=lambda one: one[0], reverse=True):
        position = min(end * width, last)
        pieces[:0] = [mark.encode(encoding), units[position:last]]
        last = position
    return b"".join((units[:last], *pieces)).decode(encoding, "replace")


def listed(text: str, lines: Sequence[str]) -> str:
    """The text, and its sources below it."""
    return f"{text}\n\nSources:\n" + "\n".join(lines) if lines else text


def objects(value: Any) -> list[JsonObject]:
    """The objects of a list."""
    return (
        [object_or_empty(item) for item in cast(list[Any], value)]
        if isinstance(value, list)
        else []
    )
