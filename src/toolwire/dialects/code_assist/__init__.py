"""Code Assist: Gemini's format in an envelope, as gemini-cli uses it after a login."""

from collections.abc import Callable, Iterator, Mapping

from toolwire.dialects import DecodeOptions, Decoder, Encoded, Encoder
from toolwire.dialects.code_assist.envelope import NAME, open_envelope, seal_envelope
from toolwire.dialects.gemini import HISTORY, read_body
from toolwire.dialects.gemini.decode_answer import GeminiDecoder
from toolwire.dialects.gemini.errors import read_error, write_error
from toolwire.dialects.gemini.shapes import NAME as FAMILY
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import ProviderError
from toolwire.events import Finished, ModelEvent
from toolwire.messages import Message
from toolwire.request import HttpRequest, ModelRequest
from toolwire.wire.json_access import encode
from toolwire.wire.sse import Frame, SseDecoder


class CodeAssist:
    """The dialect. It holds no state; seals and kept members are the gemini family's."""

    name = NAME
    family = FAMILY
    history = HISTORY

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The request as it goes over the wire, and what it could not carry."""
        body, written = seal_envelope(request, quirks)
        verb = "streamGenerateContent" if request.stream else "generateContent"
        http = HttpRequest(
            path=f"/v1internal:{verb}",
            body=encode(body),
            query=(("alt", "sse"),) if request.stream else (),
        )
        return Encoded(http=http, losses=written.losses.done(), names=written.names)

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """A client's request."""
        return read_body(body, lambda given: open_envelope(given, model))

    def frames(self) -> SseDecoder:
        return SseDecoder()

    def decoder(self, options: DecodeOptions) -> Decoder:
        """The decoder of one streamed answer."""
        return GeminiDecoder(options, enveloped=True)

    def encoder(self, model: str, new_id: Callable[[], str]) -> Encoder:
        """The encoder of one streamed answer."""
        from toolwire.dialects.gemini.encode_answer import GeminiEncoder  # noqa: PLC0415 - for servers

        return GeminiEncoder(model, enveloped=True)

    def decode_whole(self, body: bytes, options: DecodeOptions) -> Iterator[ModelEvent]:
        """The events of a whole answer."""
        decoder = GeminiDecoder(options, enveloped=True, whole=True)
        yield from decoder.feed(Frame(body))
        yield from decoder.close()

    def encode_whole(
        self, message: Message, finished: Finished, model: str, new_id: Callable[[], str]
    ) -> bytes:
        """A whole answer."""
        from toolwire.dialects.gemini.encode_answer import write_whole  # noqa: PLC0415 - for servers

        return encode({"response": write_whole(message, finished, model)})

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The typed error of a failed response."""
        return read_error(status, headers, body)

    def encode_error(self, error: ProviderError) -> tuple[int, bytes]:
        """Status and body with which the vendor would report this error."""
        status, body = write_error(error)
        return status, encode(body)


DIALECT = CodeAssist()
