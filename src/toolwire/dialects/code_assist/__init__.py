"""Code Assist: Gemini's format in an envelope, as gemini-cli uses it after a login."""

from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from toolwire.dialects import DecodeOptions, Decoder, Encoded, Encoder
from toolwire.dialects.gemini import HISTORY, read_body
from toolwire.dialects.gemini.decode_answer import GeminiDecoder
from toolwire.dialects.gemini.encode_request import RequestBody, model_member, write_request
from toolwire.dialects.gemini.errors import read_error, write_error
from toolwire.dialects.gemini.shapes import ENVELOPE, is_object
from toolwire.dialects.gemini.shapes import NAME as FAMILY
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import BadInput, ProviderError
from toolwire.events import Finished, ModelEvent
from toolwire.messages import Kept, Message
from toolwire.request import HttpRequest, JsonObject, ModelRequest, Source
from toolwire.wire.json_access import dump, encode, parse_object
from toolwire.wire.sse import Frame, SseDecoder

NAME = "code-assist"
_SESSION = "session_id"
"""A member of the request inside that Gemini itself does not know."""
_INNER = "request."


class CodeAssist:
    """The dialect. It holds no state; seals and kept members are the gemini family's."""

    name = NAME
    family = FAMILY
    history = HISTORY

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The request as it goes over the wire, and what it could not carry."""
        body, written = _seal_envelope(request, quirks)
        verb = "streamGenerateContent" if request.stream else "generateContent"
        http = HttpRequest(
            path=f"/v1internal:{verb}",
            body=encode(body),
            query=(("alt", "sse"),) if request.stream else (),
        )
        return Encoded(http=http, losses=written.losses.done(), names=written.names)

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """A client's request."""
        return read_body(body, lambda given: _open_envelope(given, model))

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


def _open_envelope(body: JsonObject, model: str) -> ModelRequest:
    """The request inside, with the members of the envelope stored on it."""
    from toolwire.dialects.gemini.decode_request import read_request  # noqa: PLC0415 - for servers

    given = body.get("request")
    if not is_object(given):
        raise BadInput("request: expected an object")
    inner = dict(given)
    outer = {key: value for key, value in body.items() if key != "request"}
    fields: JsonObject = {}
    if _SESSION in inner:
        fields[ENVELOPE + _INNER + _SESSION] = inner.pop(_SESSION)
    named = outer.get("model")
    if isinstance(named, str) and named:
        del outer["model"]
        model = model or named.removeprefix("models/")
    fields |= {ENVELOPE + key: value for key, value in outer.items()}
    source = Source(NAME, body)
    request = read_request(inner, model, source)
    if fields and request.kept is not None:
        members = parse_object(request.kept.fields, "kept members") | fields
        request = replace(request, kept=Kept(dialect=FAMILY, fields=dump(members)))
        source.record(request)
    return request


def _seal_envelope(request: ModelRequest, quirks: Quirks) -> tuple[JsonObject, RequestBody]:
    """The body with its envelope, and the request inside."""
    given = request.source.body if request.source.dialect == NAME else None
    written = write_request(request, quirks, None if given is None else given["request"])
    inner = written.body
    outer = {"model": request.model} if given is None else model_member(request, given)
    for key, value in written.envelope.items():
        if key.startswith(_INNER):
            inner[key.removeprefix(_INNER)] = value
        else:
            outer[key] = value
    return {**outer, "request": inner}, written


DIALECT = CodeAssist()
