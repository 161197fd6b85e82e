"""A client's request as it arrives: decoded, with the conversation that it refers to."""

import msgspec

from toolwire.dialects import Dialect
from toolwire.dialects.losses import kept_member
from toolwire.errors import BadInput
from toolwire.gateway.clients import check_unsupported, with_smaller_budget
from toolwire.gateway.parts import Stored
from toolwire.gateway.paths import Destination
from toolwire.gateway.responses import previous_not_found
from toolwire.http_server.exchange import Asked
from toolwire.messages import Message
from toolwire.request import Loss, ModelRequest
from toolwire.wire.json_access import object_or_empty
from toolwire.wire.nesting import is_deeper

_RESPONSES = "openai-responses"
_DEEPEST = 512
"""Levels of arrays and objects in a body."""


class ClientRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded request, and how its client expects the answer."""

    request: ModelRequest
    sent: tuple[Message, ...]
    """Its messages, without those of earlier answers."""
    losses: tuple[Loss, ...] = ()
    """What had to be lowered for any vendor to accept it."""
    previous: str = ""
    """The id of the stored answer that it continues."""
    items: bytes = b"[]"
    """Its input items, as a JSON array."""
    stored: bool = False
    """Whether the answer can be retrieved later."""
    usage_chunk: bool = True
    """Whether a stream ends with the token counts."""
    array: bool = False
    """Whether a stream is one JSON array instead of events."""


def decoded(codec: Dialect, address: Destination, asked: Asked, body: bytes) -> ClientRequest:
    """The request of a body; BadInput if it is not one."""
    if is_deeper(body, _DEEPEST):
        raise BadInput(f"the request is nested deeper than {_DEEPEST} levels")
    request = codec.decode_request(body, address.model)
    if not request.messages and not request.previous_response_id:
        raise BadInput("the request has no messages")
    losses: tuple[Loss, ...] = ()
    if codec.name == _RESPONSES:
        check_unsupported(request)
    elif codec.name == "anthropic-messages":
        request, losses = with_smaller_budget(request)
    gemini = codec.family == "gemini"
    streamed = address.does == "stream" if gemini else request.stream is True
    betas = asked.field("anthropic-beta")
    if betas or request.stream is not streamed:
        request = msgspec.structs.replace(request, stream=streamed, betas=_listed(betas))
    return ClientRequest(
        request=request,
        sent=request.messages,
        losses=losses,
        previous=request.previous_response_id,
        items=_input_items(request),
        stored=_is_stored(request, codec.name, address),
        usage_chunk=_wants_usage(request),
        array=gemini and streamed and "alt=sse" not in asked.query,
    )


async def with_earlier(incoming: ClientRequest, stored: Stored, tenant: str) -> ModelRequest:
    """The request with the conversation that `previous_response_id` stands for."""
    request = incoming.request
    chain = await stored.chain(tenant, incoming.previous)
    if chain is None:
        raise previous_not_found(incoming.previous)
    return msgspec.structs.replace(
        request, messages=(*chain, *request.messages), previous_response_id=""
    )


def _listed(value: str) -> tuple[str, ...]:
    """The members of a header with a list."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if value else ()


def _is_stored(request: ModelRequest, client_format: str, address: Destination) -> bool:
    if client_format != _RESPONSES or address.does == "compact":
        return False
    return kept_member(request.kept, _RESPONSES, "store") is not False


def _wants_usage(request: ModelRequest) -> bool:
    """Whether a chat client requested token counts in the stream."""
    if request.source.dialect != "openai-chat":
        return True
    options = object_or_empty(request.source.body.get("stream_options"))
    return options.get("include_usage") is True


def _input_items(request: ModelRequest) -> bytes:
    """The input of a request of the Responses format, as a list."""
    items = request.source.body.get("input")
    if request.source.dialect != _RESPONSES or items is None:
        return b"[]"
    encoded = msgspec.json.encode(items)
    if encoded[:1] == b"[":
        return encoded
    part = {"type": "input_text", "text": msgspec.json.decode(encoded)}
    return msgspec.json.encode([{"type": "message", "role": "user", "content": [part]}])
