"""Short calls of the dialect for tests."""

import json
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from toolwire.collect import Collector
from toolwire.dialects import DecodeOptions, decode_stream
from toolwire.dialects.openai_responses import DIALECT
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.events import Finished, ModelEvent, StopReason, Usage
from toolwire.messages import Kept, Message, Origin, Seal, Text
from toolwire.request import ModelRequest
from toolwire.wire.sse import SseDecoder, SseEncoder

NAME = "openai-responses"
ORIGIN = Origin(NAME)
Json = dict[str, Any]
COMPLETED: Json = {
    "type": "response.completed",
    "response": {"id": "resp_tw1", "model": "m", "status": "completed", "output": []},
}


def ids(prefix: str = "call_") -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"


def options() -> DecodeOptions:
    return DecodeOptions(new_id=ids("made_"), origin=ORIGIN)


def decode_bytes(chunks: Iterable[bytes]) -> list[ModelEvent]:
    return list(decode_stream(DIALECT, chunks, options()))


def sse_bytes(*events: Json) -> bytes:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()


def decode(*events: Json) -> list[ModelEvent]:
    return decode_bytes([sse_bytes(*events)])


def added(index: int, **item: Any) -> Json:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, **item: Any) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def delta(kind: str, index: int, text: str, **members: Any) -> Json:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **members}


def encode_bytes(events: Iterable[ModelEvent], model: str = "m") -> bytes:
    encoder, sse = DIALECT.encoder(model, ids()), SseEncoder()
    frames = [frame for event in events for frame in encoder.feed(event)]
    return b"".join(sse.encode(frame) for frame in [*frames, *encoder.close()])


def encode(events: Iterable[ModelEvent]) -> list[Json]:
    return [json.loads(frame.data) for frame in SseDecoder().feed(encode_bytes(events))]


def whole(body: Json) -> list[ModelEvent]:
    return list(DIALECT.decode_whole(json.dumps(body).encode(), options()))


def collected(events: Iterable[ModelEvent]) -> Message:
    collector = Collector()
    collector.add_all(events)
    return collector.message()


def finished(reason: StopReason = StopReason.END, detail: str = "", **members: Any) -> Finished:
    given: Json = {"response_id": "resp_tw1", "model": "m", **members}
    return Finished(reason=reason, detail=detail, **given)


def counted(number: int = 1) -> Usage:
    return Usage(input=number, output=number, cached=0, cache_write=0, reasoning=0)


def seal(**members: Any) -> Seal:
    return Seal(origin=ORIGIN, data=json.dumps(members, separators=(",", ":"), ensure_ascii=False))


def kept(**members: Any) -> Kept:
    fields = json.dumps(members, separators=(",", ":"), ensure_ascii=False)
    return Kept(dialect=NAME, fields=fields)


def request(*messages: Message, **members: Any) -> ModelRequest:
    given = messages or (Message(role="user", parts=(Text("hi"),)),)
    return ModelRequest(model="m", messages=given, **members)


def body_and_losses(asked: ModelRequest, quirks: Quirks = DEFAULT) -> tuple[Json, list[str]]:
    encoded = DIALECT.encode_request(asked, quirks)
    return json.loads(encoded.http.body), [loss.path for loss in encoded.losses]


def body(asked: ModelRequest, quirks: Quirks = DEFAULT) -> Json:
    """The body of a request that loses nothing."""
    found, losses = body_and_losses(asked, quirks)
    assert losses == []
    return found


def read(**members: Any) -> ModelRequest:
    return DIALECT.decode_request(json.dumps({"model": "m", **members}).encode())


def again(request_body: Json) -> Json:
    """A body read and written."""
    decoded = DIALECT.decode_request(json.dumps(request_body).encode())
    return json.loads(DIALECT.encode_request(decoded).http.body)
