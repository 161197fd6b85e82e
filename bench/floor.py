"""The floor: what bytes to events cost in a straightforward prototype without any hardening.

Splits lines, decodes into structs of what a runtime reads, makes plain event objects and parses
arguments once at a call's end. It trusts every byte, so it is a measure and never a reader.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bench import floor_wire as wire

Feed = Callable[[bytes], list["Event"]]


class Said(msgspec.Struct, frozen=True, gc=False):
    """More text."""

    text: str


class Opened(msgspec.Struct, frozen=True, gc=False):
    """A call begins."""

    handle: int
    id: str
    name: str


class Grew(msgspec.Struct, frozen=True, gc=False):
    """More argument text."""

    handle: int
    arguments: str


class Closed(msgspec.Struct, frozen=True):
    """A call's end, arguments parsed."""

    handle: int
    arguments: Any


class Ended(msgspec.Struct, frozen=True):
    """The answer's end."""

    reason: str
    usage: dict[str, Any] | None


Event = Said | Opened | Grew | Closed | Ended
_parse = msgspec.json.Decoder().decode


class Splitter:
    """Server-sent events for servers that make no mistakes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of each frame this chunk completes."""
        if self._rest:
            chunk = self._rest + chunk
        if b"\r" in chunk:
            if chunk[-1] == 0x0D:
                self._rest = chunk
                return []
            chunk = chunk.replace(b"\r\n", b"\n")
        blocks = chunk.split(b"\n\n")
        self._rest = blocks.pop()
        found: list[bytes] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                found.append(block[6:])
                continue
            data = [line[6:] for line in block.split(b"\n") if line.startswith(b"data: ")]
            if data:
                found.append(b"\n".join(data))
        return found


def feeder(name: str) -> Feed:
    """A fresh reader for one answer in that wire format: chunks in, events out."""
    split = Splitter().feed
    read = _READERS[name]()

    def feed(chunk: bytes) -> list[Event]:
        events: list[Event] = []
        for data in split(chunk):
            events += read(data)
        return events

    return feed


def _chat() -> Callable[[bytes], Sequence[Event]]:
    decode = msgspec.json.Decoder(wire.ChatChunk).decode
    open_calls: dict[int, list[str]] = {}

    def read(data: bytes) -> Sequence[Event]:
        if data == b"[DONE]":
            return ()
        chunk = decode(data)
        events: list[Event] = []
        for choice in chunk.choices:
            delta = choice.delta
            if delta.content:
                events.append(Said(delta.content))
            if delta.tool_calls:
                for piece in delta.tool_calls:
                    index, function = piece.index, piece.function
                    if index not in open_calls:
                        open_calls[index] = []
                        events.append(Opened(index, piece.id or "", function.name or ""))
                    if function.arguments:
                        open_calls[index].append(function.arguments)
                        events.append(Grew(index, function.arguments))
            if choice.finish_reason:
                for index, parts in open_calls.items():
                    events.append(Closed(index, _parse("".join(parts))))
                events.append(Ended(choice.finish_reason, None))
        if chunk.usage:
            events.append(Ended("", chunk.usage))
        return events

    return read


def _responses() -> Callable[[bytes], Sequence[Event]]:
    decode = msgspec.json.Decoder(wire.RESPONSES_EVENT).decode
    open_calls: dict[int, list[str]] = {}

    def read(data: bytes) -> Sequence[Event]:
        event = decode(data)
        kind = type(event)
        if kind is wire.ResponsesText:
            return (Said(event.delta),)
        if kind is wire.ResponsesArguments:
            open_calls[event.output_index].append(event.delta)
            return (Grew(event.output_index, event.delta),)
        if kind is wire.ResponsesItemAdded and event.item["type"] == "function_call":
            open_calls[event.output_index] = []
            return (Opened(event.output_index, event.item["call_id"], event.item["name"]),)
        if kind is wire.ResponsesItemDone and event.output_index in open_calls:
            parts = open_calls.pop(event.output_index)
            return (Closed(event.output_index, _parse("".join(parts))),)
        if kind is wire.ResponsesCompleted:
            return (Ended("completed", event.response["usage"]),)
        return ()

    return read


def _anthropic() -> Callable[[bytes], Sequence[Event]]:
    decode = msgspec.json.Decoder(wire.ANTHROPIC_EVENT).decode
    open_calls: dict[int, list[str]] = {}

    def read(data: bytes) -> Sequence[Event]:
        event = decode(data)
        kind = type(event)
        if kind is wire.AnthropicDelta:
            delta = event.delta
            if type(delta) is wire.AnthropicText:
                return (Said(delta.text),)
            open_calls[event.index].append(delta.partial_json)
            return (Grew(event.index, delta.partial_json),)
        if kind is wire.AnthropicStart and event.content_block.type == "tool_use":
            open_calls[event.index] = []
            return (Opened(event.index, event.content_block.id, event.content_block.name),)
        if kind is wire.AnthropicStop and event.index in open_calls:
            return (Closed(event.index, _parse("".join(open_calls.pop(event.index)))),)
        if kind is wire.AnthropicEnd:
            return (Ended(event.delta["stop_reason"], event.usage),)
        return ()

    return read


def _gemini() -> Callable[[bytes], Sequence[Event]]:
    decode = msgspec.json.Decoder(wire.GeminiChunk).decode
    count = 0

    def read(data: bytes) -> Sequence[Event]:
        nonlocal count
        chunk = decode(data)
        events: list[Event] = []
        for candidate in chunk.candidates:
            for part in candidate.content.parts:
                call = part.functionCall
                if call is not None:
                    events.append(Opened(count, f"call_{count}", call.name))
                    events.append(Closed(count, call.args))
                    count += 1
                elif part.text:
                    events.append(Said(part.text))
            if candidate.finishReason:
                events.append(Ended(candidate.finishReason, chunk.usageMetadata))
        return events

    return read


_READERS = {"chat": _chat, "responses": _responses, "anthropic": _anthropic, "gemini": _gemini}
