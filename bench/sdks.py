"""What the vendors' SDKs do between bytes and the objects they hand out, without their HTTP."""

import json
from collections.abc import Callable

from bench.measure import drain
from bench.streams import Stream

NAMES = {
    "chat": "openai",
    "responses": "openai",
    "anthropic": "anthropic",
    "gemini": "google-genai",
}


def reader(stream: Stream) -> Callable[[], object]:
    """A run of the vendor's own decoding over the whole stream."""
    return _READERS[stream.wire](stream)


def _openai(stream: Stream) -> Callable[[], object]:
    from openai._models import construct_type
    from openai._streaming import SSEDecoder
    from openai.types.chat import ChatCompletionChunk
    from openai.types.responses import ResponseStreamEvent

    kind = ChatCompletionChunk if stream.wire == "chat" else ResponseStreamEvent
    blocks = stream.blocks()
    return lambda: drain(
        construct_type(type_=kind, value=sse.json())
        for sse in SSEDecoder().iter_bytes(iter(blocks))
        if not sse.data.startswith("[DONE]")
    )


def _anthropic(stream: Stream) -> Callable[[], object]:
    from anthropic._models import construct_type
    from anthropic._streaming import SSEDecoder
    from anthropic.types import RawMessageStreamEvent

    blocks = stream.blocks()
    return lambda: drain(
        construct_type(type_=RawMessageStreamEvent, value=sse.json())
        for sse in SSEDecoder().iter_bytes(iter(blocks))
    )


def _gemini(stream: Stream) -> Callable[[], object]:
    from google.genai.models import _GenerateContentResponse_from_mldev as convert
    from google.genai.types import GenerateContentResponse

    # Its line splitting sits inside its HTTP client, so it is left out in its favour.
    bodies = [frame[6:].strip() for frame in stream.frames]
    return lambda: drain(
        GenerateContentResponse._from_response(response=convert(json.loads(body)), kwargs={})
        for body in bodies
    )


_READERS = {"chat": _openai, "responses": _openai, "anthropic": _anthropic, "gemini": _gemini}
