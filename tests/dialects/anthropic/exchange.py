"""Short calls of the dialect for tests."""

import json
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from toolwire.collect import Collector
from toolwire.dialects import DecodeOptions, decode_stream
from toolwire.dialects.anthropic import DIALECT
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.events import Finished, ModelEvent, StopReason, Usage
from toolwire.messages import Kept, Message, Origin, Seal, Text
from toolwire.request import ModelRequest
from toolwire.wire.sse import SseDecoder, SseEncoder

NAME = "anthropic-messages"
ORIGIN = Origin(NAME)
Json = dict[str, Any]

START: Json = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    },
}
STOP: Json = {"type": "message_stop"}


def begin(index: int, kind: str, **members: Any) -> Json:
    block = {"type": kind, **members}
    return {"type": "content_block_start", "index": index, "content_block": block}


def more(index: int, kind: str, **members: Any) -> Json:
    delta = {"type": kind, **members}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def end(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def ending(reason: str | None, **members: Any) -> Json:
    delta = {"stop_reason": reason, "stop_sequence": None, **members}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 0}}


def ids(prefix: str = "") -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"


def reading() -> DecodeOptions:
    return DecodeOptions(new_id=ids("made_"), origin=ORIGIN)


def decode_bytes(chunks: Iterable[bytes]) -> list[ModelEvent]:
    return list(decode_stream(DIALECT, chunks, reading()))


def sse_bytes(*events: Json) -> bytes:
    lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return "".join(lines).encode()


def decode(*events: Json) -> list[ModelEvent]:
    return decode_bytes([sse_bytes(*events)])


def encode_bytes(events: Iterable[ModelEvent], model: str = "m") -> bytes:
    encoder, sse = DIALECT.encoder(model, ids("msg_")), SseEncoder()
    frames = [frame for event in events for frame in encoder.feed(event)]
    return b"".join(sse.encode(frame) for frame in [*frames, *encoder.close()])


def encode(events: Iterable[ModelEvent]) -> list[Json]:
    frames = SseDecoder().feed(encode_bytes(events))
    return [json.loads(frame.data) for frame in frames]


def collected(events: Iterable[ModelEvent]) -> Message:
    collector = Collector()
    collector.add_all(events)
    return collector.message()


def finished(reason: StopReason = StopReason.END, detail: str = "", **members: Any) -> Finished:
    usage = members.pop("usage", Usage(input=0, output=0, cache_in_input=False))
    return Finished(
        reason=reason, usage=usage, detail=detail, response_id="msg_1", model="m", **members
    )


def seal(**members: str) -> Seal:
    return Seal(origin=ORIGIN, data=json.dumps(members, separators=(",", ":")))


def kept(**members: Any) -> Kept:
    return Kept(dialect=NAME, fields=json.dumps(members, separators=(",", ":")))


def request(*messages: Message, **members: Any) -> ModelRequest:
    given = messages or (Message(role="user", parts=(Text("hi"),)),)
    return ModelRequest(model="m", messages=given, **members)


def body_and_losses(given: ModelRequest, quirks: Quirks = DEFAULT) -> tuple[Json, list[str]]:
    encoded = DIALECT.encode_request(given, quirks)
    return json.loads(encoded.http.body), [loss.path for loss in encoded.losses]


def body(given: ModelRequest, quirks: Quirks = DEFAULT) -> Json:
    """The body of a request that loses nothing."""
    found, losses = body_and_losses(given, quirks)
    assert losses == []
    return found
