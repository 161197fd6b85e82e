"""Wire formats, each in both directions: pure functions and small state machines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Protocol

import msgspec

from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import ProviderError, ToolwireError, UnknownName
from toolwire.events import Finished, ModelEvent, Usage
from toolwire.history import HistoryRules
from toolwire.messages import Message, Origin
from toolwire.request import HttpRequest, Loss, ModelRequest
from toolwire.wire.names import ToolNames
from toolwire.wire.sse import Frame

_PACKAGES = {
    "openai-chat": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
    "code-assist": "code_assist",
}
NAMES = tuple(_PACKAGES)


class Encoded(msgspec.Struct, frozen=True, kw_only=True):
    """An encoded request, with everything needed to decode its answer."""

    http: HttpRequest
    losses: tuple[Loss, ...] = ()
    names: ToolNames


class DecodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How to decode one answer."""

    new_id: Callable[[], str]
    origin: Origin
    quirks: Quirks = DEFAULT
    names: ToolNames | None = None


class AnswerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an answer to a client contains besides the model's own events."""

    created: int = 0
    """Unix time of the answer, in formats that have one."""
    usage_chunk: bool = True
    """Chat: whether a stream reports its token counts (`stream_options.include_usage`)."""
    input_tokens: int = 0
    """Anthropic: estimated input tokens, which the opening reports; the end has the true count."""
    previous_response_id: str = ""
    """Responses: the answer before this one."""
    store: bool = False
    """Responses: whether the answer can be retrieved later."""


USUAL_ANSWER = AnswerOptions()


class FrameDecoder(Protocol):
    """One per response: bytes in, frames out."""

    @property
    def pending(self) -> int:
        """Bytes of the incomplete last frame."""
        ...

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """The frames that these bytes complete."""
        ...

    def close(self) -> Iterable[Frame]:
        """The frames left at the end of the body."""
        ...


class Decoder(Protocol):
    """One per response: frames in, events out. Stores only what later frames need."""

    def feed(self, frame: Frame) -> Sequence[ModelEvent]:
        """The events of one frame; raises the error that it reports."""
        ...

    def close(self) -> Sequence[ModelEvent]:
        """The last events; raises IncompleteStream without the answer's end mark."""
        ...

    def pending(self) -> Sequence[ModelEvent]:
        """Events decoded but not yet emitted when the stream broke."""
        ...

    def usage(self) -> Usage | None:
        """What the answer has used, as far as the vendor has reported it."""
        ...


class Encoder(Protocol):
    """One per response: events in, frames out, as the vendor's server sends them."""

    @property
    def response_id(self) -> str:
        """The id of the answer; empty in a format whose clients get none."""
        ...

    def feed(self, event: ModelEvent) -> Sequence[Frame]:
        """The frames of one event."""
        ...

    def close(self) -> Sequence[Frame]:
        """The last frames."""
        ...

    def beat(self) -> Sequence[Frame]:
        """The frames of a heartbeat during silence; the first may open the answer."""
        ...

    def fail(self, error: ProviderError) -> Sequence[Frame]:
        """The frames that report an error in the middle of a stream."""
        ...


class Dialect(Protocol):
    """One wire format."""

    @property
    def name(self) -> str:
        """The name commands and settings use."""
        ...

    @property
    def family(self) -> str:
        """The name on its seals and `Kept` members; Code Assist shares Gemini's."""
        ...

    @property
    def maker_members(self) -> frozenset[str]:
        """Members of a request that only the servers of the format's maker know."""
        ...

    @property
    def history(self) -> HistoryRules:
        """What the format demands of a conversation."""
        ...

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The HTTP request, and what it could not carry."""
        ...

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """A client's request; `model` if it is not in the body."""
        ...

    def frames(self) -> FrameDecoder:
        """The framing of a streamed answer: server-sent events, or the format's own."""
        ...

    def decoder(self, options: DecodeOptions, /) -> Decoder:
        """A decoder of one streamed answer."""
        ...

    def encoder(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER, /
    ) -> Encoder:
        """An encoder of one streamed answer."""
        ...

    def decode_whole(self, body: bytes, options: DecodeOptions, /) -> Iterator[ModelEvent]:
        """The events of an answer that was not streamed."""
        ...

    def encode_whole(
        self,
        message: Message,
        finished: Finished,
        model: str,
        new_id: Callable[[], str],
        options: AnswerOptions = USUAL_ANSWER,
        /,
    ) -> bytes:
        """The body of an answer that is not streamed."""
        ...

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The typed error of a failed response."""
        ...

    def encode_error(self, error: ProviderError) -> tuple[int, bytes]:
        """Status and body with which the vendor would report this error."""
        ...


@cache
def get(name: str) -> Dialect:
    """The dialect of that name."""
    package = _PACKAGES.get(name)
    if package is None:
        raise UnknownName("dialect", name, NAMES)
    return import_module(f"toolwire.dialects.{package}").DIALECT


def decode_stream(
    dialect: Dialect, chunks: Iterable[bytes], options: DecodeOptions
) -> Iterator[ModelEvent]:
    """Every event of a streamed body; raises where it breaks."""
    frames = dialect.frames()
    decoder = dialect.decoder(options)
    try:
        for chunk in chunks:
            for frame in frames.feed(chunk):
                yield from decoder.feed(frame)
        for frame in frames.close():
            yield from decoder.feed(frame)
        yield from decoder.close()
    except ToolwireError as error:
        error.usage = decoder.usage()
        yield from decoder.pending()
        raise
