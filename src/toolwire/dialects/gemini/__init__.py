"""Gemini's `generateContent`, as AI Studio and Vertex serve it."""

from collections.abc import Callable, Iterator, Mapping

from toolwire.dialects import (
    USUAL_ANSWER,
    AnswerOptions,
    DecodeOptions,
    Decoder,
    Encoded,
    Encoder,
)
from toolwire.dialects.gemini.decode_answer import GeminiDecoder
from toolwire.dialects.gemini.encode_request import RequestBody, write_request
from toolwire.dialects.gemini.errors import read_error, write_error
from toolwire.dialects.gemini.shapes import NAME
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import BadInput, ProviderError, ToolwireError
from toolwire.events import Finished, ModelEvent
from toolwire.history import HistoryRules
from toolwire.messages import Message
from toolwire.request import HttpRequest, JsonObject, ModelRequest
from toolwire.wire.json_access import encode
from toolwire.wire.sse import Frame, SseDecoder

HISTORY = HistoryRules(alternate=True, user_first=True, results_first=False)


class Gemini:
    """The dialect. It holds no state."""

    name: str = NAME
    family = NAME
    maker_members = frozenset[str]()
    history = HISTORY
    enveloped = False
    """Whether answers have Code Assist's envelope."""

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The request as it goes over the wire, and what it could not carry."""
        given = request.source.body if request.source.dialect == NAME else None
        written = write_request(request, quirks, given)
        for name in written.envelope:
            written.losses.add(name, name, "only code-assist has it")
        prefix = "" if "/" in request.model else "models/"
        return encoded(request, f"/{prefix}{request.model}", written.body, written)

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """A client's request; the model is in its address."""
        from toolwire.dialects.gemini.decode_request import read_request  # noqa: PLC0415 - for servers

        return read_body(body, lambda given: read_request(given, model))

    def frames(self) -> SseDecoder:
        return SseDecoder()

    def decoder(self, options: DecodeOptions) -> Decoder:
        """The decoder of one streamed answer."""
        return GeminiDecoder(options, enveloped=self.enveloped)

    def encoder(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER
    ) -> Encoder:
        """The encoder of one streamed answer."""
        from toolwire.dialects.gemini.encode_answer import GeminiEncoder  # noqa: PLC0415 - for servers

        return GeminiEncoder(model, enveloped=self.enveloped)

    def decode_whole(self, body: bytes, options: DecodeOptions) -> Iterator[ModelEvent]:
        """The events of a whole answer."""
        decoder = GeminiDecoder(options, enveloped=self.enveloped, whole=True)
        try:
            yield from decoder.feed(Frame(body))
            yield from decoder.close()
        except ToolwireError as error:
            error.usage = decoder.usage()
            raise

    def encode_whole(
        self,
        message: Message,
        finished: Finished,
        model: str,
        new_id: Callable[[], str],
        options: AnswerOptions = USUAL_ANSWER,
    ) -> bytes:
        """A whole answer."""
        from toolwire.dialects.gemini.encode_answer import write_whole  # noqa: PLC0415 - for servers

        answer = write_whole(message, finished, model)
        return encode({"response": answer} if self.enveloped else answer)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The typed error of a failed response."""
        return read_error(status, headers, body)

    def encode_error(self, error: ProviderError) -> tuple[int, bytes]:
        """Status and body with which the vendor would report this error."""
        status, body = write_error(error)
        return status, encode(body)


def encoded(request: ModelRequest, path: str, body: JsonObject, written: RequestBody) -> Encoded:
    """The HTTP request for one of the two verbs at `path`."""
    verb = "streamGenerateContent" if request.stream else "generateContent"
    query = (("alt", "sse"),) if request.stream else ()
    http = HttpRequest(path=f"{path}:{verb}", body=encode(body), query=query)
    return Encoded(http=http, losses=written.losses.done(), names=written.names)


def read_body(body: bytes, read: Callable[[JsonObject], ModelRequest]) -> ModelRequest:
    """The request of a body, or an error that names what is wrong with it."""
    from toolwire.dialects.gemini.decode_request import received  # noqa: PLC0415 - for servers

    try:
        return read(received.members(body, "request")[0])
    except RecursionError as error:
        raise BadInput("request is nested too deeply") from error


DIALECT = Gemini()
