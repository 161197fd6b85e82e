"""Anthropic's Messages format, both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from toolwire.dialects import USUAL_ANSWER, AnswerOptions, DecodeOptions, Encoded
from toolwire.dialects.anthropic import errors
from toolwire.dialects.anthropic.decode_answer import Decoder, decode_whole
from toolwire.dialects.anthropic.encode_request import encode_request
from toolwire.dialects.anthropic.shapes import NAME
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import ProviderError
from toolwire.events import Finished, ModelEvent
from toolwire.history import HistoryRules
from toolwire.messages import Message
from toolwire.request import ModelRequest
from toolwire.wire.sse import SseDecoder

if TYPE_CHECKING:
    from toolwire.dialects.anthropic.encode_answer import Encoder

# What only a server needs is imported at its first use.


class AnthropicMessages:
    """The wire format of `POST /v1/messages`."""

    name = family = NAME
    maker_members = frozenset[str]()
    history = HistoryRules(id_characters="a-zA-Z0-9_-", user_first=True, thinking_leads=True)

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The HTTP request, and what it could not carry."""
        return encode_request(request, quirks)

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """A client's request; `model` if it is not in the body (Bedrock, Vertex)."""
        from toolwire.dialects.anthropic.decode_request import decode_request  # noqa: PLC0415

        return decode_request(body, model)

    def frames(self) -> SseDecoder:
        """The framing of a streamed answer."""
        return SseDecoder()

    def decoder(self, options: DecodeOptions) -> Decoder:
        """A decoder of one streamed answer."""
        return Decoder(options)

    def encoder(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER
    ) -> Encoder:
        """An encoder of one streamed answer."""
        from toolwire.dialects.anthropic.encode_answer import Encoder  # noqa: PLC0415

        return Encoder(model, new_id, options)

    def decode_whole(self, body: bytes, options: DecodeOptions) -> Iterator[ModelEvent]:
        """The events of an answer that was not streamed."""
        return decode_whole(body, options)

    def encode_whole(
        self,
        message: Message,
        finished: Finished,
        model: str,
        new_id: Callable[[], str],
        options: AnswerOptions = USUAL_ANSWER,
    ) -> bytes:
        """The body of an answer that is not streamed."""
        from toolwire.dialects.anthropic.encode_answer import encode_whole  # noqa: PLC0415

        return encode_whole(message, finished, model, new_id)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The typed error of a failed response."""
        return errors.of_response(status, headers, body)

    def encode_error(self, error: ProviderError) -> tuple[int, bytes]:
        """Status and body with which the vendor would report this error."""
        return errors.status_and_body(error)


DIALECT = AnthropicMessages()
