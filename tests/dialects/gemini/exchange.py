"""Chunks, requests and answers, and their way through the dialect."""

import json
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from toolwire.collect import Collector
from toolwire.dialects import DecodeOptions, decode_stream
from toolwire.dialects.gemini import DIALECT
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.events import Finished, ModelEvent, StopReason, Usage
from toolwire.messages import Kept, Message, Origin, Part, Seal, Text
from toolwire.request import ModelRequest
from toolwire.wire.sse import SseEncoder

NAME = "gemini"
ORIGIN = Origin(NAME)
FROM_HERE = Kept(dialect=NAME)
Json = dict[str, Any]


def ids(prefix: str = "made_") -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{prefix}{next(numbers)}"


def options() -> DecodeOptions:
    return DecodeOptions(new_id=ids(), origin=ORIGIN)


def chunk(*parts: Any, finish: str | int | None = None, **members: Any) -> Json:
    candidate: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **members}


def sse(*chunks: Any) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(item).encode() for item in chunks)


def decode_bytes(pieces: Iterable[bytes], dialect: Any = DIALECT) -> list[ModelEvent]:
    return list(decode_stream(dialect, pieces, options()))


def decode(*chunks: Any) -> list[ModelEvent]:
    return decode_bytes([sse(*chunks)])


def encode_bytes(events: Iterable[ModelEvent], dialect: Any = DIALECT) -> bytes:
    encoder = dialect.encoder("m", ids())
    wire = SseEncoder()
    frames = [frame for event in events for frame in encoder.feed(event)]
    return b"".join(wire.encode(frame) for frame in [*frames, *encoder.close()])


def collected(events: Iterable[ModelEvent]) -> Message:
    collector = Collector()
    collector.add_all(events)
    return collector.message()


def finished(
    reason: StopReason = StopReason.END,
    detail: str = "",
    *,
    usage: Usage | None = None,
    model: str = "",
    kept: Kept | None = None,
) -> Finished:
    return Finished(
        reason=reason,
        detail=detail,
        usage=usage or Usage(reasoning_in_output=False),
        model=model,
        kept=kept,
    )


def seal(signature: str) -> Seal:
    return Seal(
        origin=ORIGIN, data=json.dumps({"thoughtSignature": signature}, separators=(",", ":"))
    )


def kept(**fields: Any) -> Kept:
    return Kept(dialect=NAME, fields=json.dumps(fields, separators=(",", ":")))


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=tuple(Text(p) if isinstance(p, str) else p for p in parts))


def model(*parts: Part | str) -> Message:
    return Message(
        role="assistant", parts=tuple(Text(p) if isinstance(p, str) else p for p in parts)
    )


def request(*messages: Message, **members: Any) -> ModelRequest:
    return ModelRequest(model="m", messages=messages, **members)


def body_and_losses(asked: ModelRequest, quirks: Quirks = DEFAULT) -> tuple[Json, list[str]]:
    encoded = DIALECT.encode_request(asked, quirks)
    return json.loads(encoded.http.body), [loss.path for loss in encoded.losses]


def again(body: Json) -> Json:
    """The body after it was read and written again."""
    encoded = DIALECT.encode_request(DIALECT.decode_request(json.dumps(body).encode()))
    assert encoded.losses == ()
    return json.loads(encoded.http.body)
