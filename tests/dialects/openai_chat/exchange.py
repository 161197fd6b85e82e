"""Short calls of the chat dialect for tests."""

import json
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any

from toolwire import dialects
from toolwire.collect import Collector
from toolwire.dialects import DecodeOptions
from toolwire.dialects.openai_chat import DIALECT
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.events import Finished, ModelEvent, StopReason, ThinkingEnded
from toolwire.messages import Kept, Message, Origin, Seal, Text
from toolwire.request import ModelRequest
from toolwire.wire.sse import Frame, SseEncoder

NAME = "openai-chat"
ORIGIN = Origin(NAME)
Json = dict[str, Any]


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"made_{next(numbers)}"


def options(quirks: Quirks = DEFAULT) -> DecodeOptions:
    return DecodeOptions(new_id=ids(), origin=ORIGIN, quirks=quirks)


def delta(finish: str | None = None, /, **members: Any) -> Json:
    return {"choices": [{"index": 0, "delta": members, "finish_reason": finish}]}


def call(index: int | None = 0, /, arguments: Any = None, **members: Any) -> Json:
    name = members.pop("name", None)
    function = {"name": name, "arguments": arguments}
    return {"index": index, "function": function, **members}


STOP = delta("stop")


def decode(*chunks: Json | str, quirks: Quirks = DEFAULT) -> list[ModelEvent]:
    """The events of chunks, without a `[DONE]` unless one is given."""
    decoder = DIALECT.decoder(options(quirks))
    events: list[ModelEvent] = []
    for chunk in chunks:
        data = chunk if isinstance(chunk, str) else json.dumps(chunk)
        events.extend(decoder.feed(Frame(data.encode())))
    events.extend(decoder.close())
    return events


def decode_bytes(chunks: Iterable[bytes]) -> list[ModelEvent]:
    return list(dialects.decode_stream(DIALECT, chunks, options()))


def encode_bytes(events: Iterable[ModelEvent], model: str = "m") -> bytes:
    encoder = DIALECT.encoder(model, ids())
    frames = [frame for event in events for frame in encoder.feed(event)]
    frames.extend(encoder.close())
    return b"".join(map(SseEncoder().encode, frames))


def whole(message: Json, finish: str | None = "stop", **members: Any) -> list[ModelEvent]:
    body = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **members}
    return list(DIALECT.decode_whole(json.dumps(body).encode(), options()))


def collected(events: Iterable[ModelEvent]) -> Message:
    collector = Collector()
    collector.add_all(events)
    return collector.message()


def done(reason: StopReason = StopReason.END, detail: str = "") -> Finished:
    return Finished(reason=reason, detail=detail)


def seal(**members: Any) -> Seal:
    data = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    return Seal(origin=ORIGIN, data=data)


def thought(**members: Any) -> ThinkingEnded:
    return ThinkingEnded(seal(**members))


def ask(**members: Any) -> ModelRequest:
    """A small request made by us."""
    said = (Message(role="user", parts=(Text("Hi"),)),)
    wanted: Json = {"model": "m", "messages": said, **members}
    return ModelRequest(**wanted)


def written(request: ModelRequest, quirks: Quirks = DEFAULT) -> Json:
    return json.loads(DIALECT.encode_request(request, quirks).http.body)


def losses(request: ModelRequest, quirks: Quirks = DEFAULT) -> list[str]:
    return [loss.path for loss in DIALECT.encode_request(request, quirks).losses]


def again(body: Json) -> Json:
    """The body after a way in and out."""
    return written(DIALECT.decode_request(json.dumps(body).encode()))


def kept(**members: Any) -> Kept:
    return Kept(dialect=NAME, fields=json.dumps(members, separators=(",", ":")))
