"""OpenAI's Responses format: calls and results are items of one flat list."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from toolwire.dialects import (
    USUAL_ANSWER,
    AnswerOptions,
    DecodeOptions,
    Decoder,
    Encoded,
    Encoder,
)
from toolwire.dialects.failures import read_failure
from toolwire.dialects.openai_responses import encode_request, ends, errors
from toolwire.dialects.openai_responses.decode_answer import AnswerDecoder
from toolwire.dialects.openai_responses.shapes import NAME
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import BadInput, ProviderError
from toolwire.events import Finished, ModelEvent
from toolwire.history import HistoryRules
from toolwire.messages import Message
from toolwire.request import ModelRequest
from toolwire.wire.json_access import parse_object
from toolwire.wire.sse import SseDecoder
from toolwire.wire.surrogates import whole_characters

# Modules that only a server needs are imported by the methods that use them.


class OpenAIResponses:
    """The wire format of `POST /responses`."""

    name = family = NAME
    maker_members = frozenset({"client_metadata"})
    """Codex describes its installation in it; other servers may reject it."""
    history = HistoryRules(id_limit=64, thinking_leads=True)

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The encoded request, and what it could not carry."""
        return encode_request.encode_request(request, quirks)

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """A client's request."""
        from toolwire.dialects.openai_responses import decode_request  # noqa: PLC0415

        return decode_request.decode_request(body, model)

    def frames(self) -> SseDecoder:
        return SseDecoder()

    def decoder(self, options: DecodeOptions) -> Decoder:
        """A decoder for one streamed answer."""
        return AnswerDecoder(options)

    def encoder(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER
    ) -> Encoder:
        """An encoder for one streamed answer."""
        from toolwire.dialects.openai_responses.encode_answer import (  # noqa: PLC0415
            AnswerEncoder,
        )

        return AnswerEncoder(model, new_id, options)

    def decode_whole(self, body: bytes, options: DecodeOptions) -> Iterator[ModelEvent]:
        """The events of an answer that was not streamed."""
        body = whole_characters(body)
        source = parse_object(body, "response")
        answered = "output" in source or "status" in source
        if source.get("error") or source.get("status") == "failed":
            failed = errors.provider_error(source, body)
            failed.usage = ends.usage_in(source)
            raise failed
        if not answered and (source.get("message") or source.get("detail")):
            raise errors.provider_error(source, body)
        if not answered:
            raise BadInput("the response has no output")
        try:
            yield from AnswerDecoder(options).whole(ends.read_response(body))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadInput(f"response: {error}") from error

    def encode_whole(
        self,
        message: Message,
        finished: Finished,
        model: str,
        new_id: Callable[[], str],
        options: AnswerOptions = USUAL_ANSWER,
    ) -> bytes:
        """An answer that is not streamed."""
        from toolwire.dialects.openai_responses.encode_answer import (  # noqa: PLC0415
            whole_answer,
        )

        return whole_answer(message, finished, model, new_id, options)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The typed error of a failed response."""
        return read_failure(status, headers, body)

    def encode_error(self, error: ProviderError) -> tuple[int, bytes]:
        """The status and body of an error response."""
        return errors.encode_error(error)


DIALECT = OpenAIResponses()
