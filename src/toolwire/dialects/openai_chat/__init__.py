"""OpenAI Chat Completions and everything compatible with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from toolwire.dialects import USUAL_ANSWER, AnswerOptions, DecodeOptions, Encoded
from toolwire.dialects.failures import read_failure
from toolwire.dialects.openai_chat.decode_answer import ChatDecoder, decode_whole
from toolwire.dialects.openai_chat.encode_request import encode_request
from toolwire.dialects.openai_chat.errors import write_failure
from toolwire.dialects.openai_chat.shapes import NAME
from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.errors import ProviderError
from toolwire.events import Finished, ModelEvent
from toolwire.history import HistoryRules
from toolwire.messages import Message
from toolwire.request import ModelRequest
from toolwire.wire.sse import SseDecoder

if TYPE_CHECKING:
    from toolwire.dialects.openai_chat.encode_answer import ChatEncoder

# What only servers need is loaded at its first use.


class ChatDialect:
    """`POST {base}/chat/completions`."""

    name = family = NAME
    maker_members = frozenset[str]()
    history = HistoryRules(id_limit=64)

    def encode_request(self, request: ModelRequest, quirks: Quirks = DEFAULT) -> Encoded:
        """The HTTP request, and what it could not carry."""
        return encode_request(request, quirks)

    def decode_request(self, body: bytes, model: str = "") -> ModelRequest:
        """The values of a client's request."""
        from toolwire.dialects.openai_chat.decode_request import (  # noqa: PLC0415
            decode_request,
        )

        return decode_request(body, model)

    def frames(self) -> SseDecoder:
        """The framing of a streamed answer."""
        return SseDecoder()

    def decoder(self, options: DecodeOptions) -> ChatDecoder:
        """The decoder of one streamed answer."""
        return ChatDecoder(options)

    def encoder(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER
    ) -> ChatEncoder:
        """The encoder of one streamed answer."""
        from toolwire.dialects.openai_chat.encode_answer import ChatEncoder  # noqa: PLC0415

        return ChatEncoder(model, new_id, options)

    def decode_whole(self, body: bytes, options: DecodeOptions) -> Iterator[ModelEvent]:
        """The events of a whole answer."""
        return decode_whole(body, options)

    def encode_whole(
        self,
        message: Message,
        finished: Finished,
        model: str,
        new_id: Callable[[], str],
        options: AnswerOptions = USUAL_ANSWER,
    ) -> bytes:
        """The body of a whole answer."""
        from toolwire.dialects.openai_chat.encode_answer import encode_whole  # noqa: PLC0415

        return encode_whole(message, finished, model, new_id, options)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """The typed error of a failed response."""
        return read_failure(status, headers, body)

    def encode_error(self, error: ProviderError) -> tuple[int, bytes]:
        """Status and body as OpenAI would send them."""
        return write_failure(error)


DIALECT = ChatDialect()
