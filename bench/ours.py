"""Our own reading of a stream, as the runtime does it: bytes to canonical events."""

from collections.abc import Iterable

from toolwire import dialects
from toolwire.events import ModelEvent
from toolwire.ids import new_id
from toolwire.messages import Origin
from toolwire.wire.sse import SseDecoder

DIALECTS = {
    "chat": "openai-chat",
    "responses": "openai-responses",
    "anthropic": "anthropic-messages",
    "gemini": "gemini",
}


def fresh(wire: str) -> tuple[SseDecoder, dialects.Decoder]:
    """Both halves of a reader for one answer."""
    name = DIALECTS[wire]
    reading = dialects.DecodeOptions(new_id=new_id, origin=Origin(name))
    return SseDecoder(), dialects.get(name).decoder(reading)


def ending(sse: SseDecoder, decoder: dialects.Decoder) -> list[ModelEvent]:
    """What the end of an answer still tells."""
    found: list[ModelEvent] = []
    for frame in sse.close():
        found.extend(decoder.feed(frame))
    found.extend(decoder.close())
    return found


def read(wire: str, chunks: Iterable[bytes]) -> None:
    """Take every event of an answer and drop it."""
    sse, decoder = fresh(wire)
    split, feed = sse.feed, decoder.feed
    for chunk in chunks:
        for frame in split(chunk):
            for _ in feed(frame):
                pass
    for frame in sse.close():
        for _ in feed(frame):
            pass
    for _ in decoder.close():
        pass


def events(wire: str, chunks: Iterable[bytes]) -> list[ModelEvent]:
    """Every event of an answer."""
    sse, decoder = fresh(wire)
    found: list[ModelEvent] = []
    for chunk in chunks:
        for frame in sse.feed(chunk):
            found.extend(decoder.feed(frame))
    return [*found, *ending(sse, decoder)]
