"""Requests that are forwarded as they are: embeddings, images, audio, and `/raw/{provider}/…`."""

import json
import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, unquote

import msgspec

from toolwire import dialects
from toolwire.client.http.exchange import MAX_ERROR_BODY, Incoming
from toolwire.client.redact import without_secrets
from toolwire.errors import ErrorKind, ProviderError, ToolwireError
from toolwire.events import Usage
from toolwire.gateway.compaction import has_own_items
from toolwire.gateway.incoming import ClientRequest
from toolwire.gateway.parts import (
    Admittance,
    Caller,
    Deployment,
    Estimate,
    GatewayParts,
    GatewayRefusal,
    Route,
)
from toolwire.gateway.paths import Destination
from toolwire.gateway.record import RequestRecord, answer_headers
from toolwire.http_server.exchange import Answering, Asked
from toolwire.request import HttpRequest
from toolwire.wire.json_access import encode

_OPENAI = frozenset({"openai-chat", "openai-responses"})
_BYTES_PER_TOKEN = 4
_TAIL = 65536
"""Bytes at the end of an answer in which its token counts are looked for."""
_SENT = frozenset(
    {
        *("content-type", "content-encoding", "accept", "range"),
        *("anthropic-version", "anthropic-beta", "openai-beta"),
    }
)
_SENT_PREFIX = "x-goog-upload-"
_RETURNED = frozenset(
    {
        *("content-type", "content-disposition", "content-range", "accept-ranges", "etag"),
        *("last-modified", "retry-after"),
    }
)
_model_field = re.compile(rb'name="?model"?\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]{1,200})\r\n').search
_MOST_BEFORE_MODEL = 65536
_number = json.JSONDecoder().raw_decode


class _Named(msgspec.Struct):
    model: str = ""


class _OpenAiUsage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


async def forward(
    parts: GatewayParts,
    asked: Asked,
    out: Answering,
    address: Destination,
    caller: Caller,
    record: RequestRecord,
) -> None:
    """Forwards a request for what the OpenAI formats have beside answers."""
    _check_scope(caller, "raw")
    kind = asked.field("content-type").partition(";")[0].strip().lower()
    named = _model_of(kind, asked.body)
    name = address.route or named
    if not name:
        raise GatewayRefusal(ErrorKind.BAD_REQUEST, "the request names no model", param="model")
    record.requested_model = named or name
    route = await parts.routes.find(name)
    record.route = route.name
    estimate = Estimate(input=len(asked.body) // _BYTES_PER_TOKEN, max_output=0)
    admitted = await parts.admission.admit(caller, record, estimate, route)
    try:
        deployment = await _chosen(route, record, admitted)
        body = _renamed(kind, asked.body, named, deployment.opened.model)
        http = HttpRequest(
            method=asked.method, path=address.item, body=body, headers=_sent_headers(asked)
        )
        await _Forwarding(parts, out, record, admitted, deployment).run(http)
    finally:
        admitted.settle(record)


async def forward_to(
    parts: GatewayParts,
    asked: Asked,
    out: Answering,
    address: Destination,
    caller: Caller,
    record: RequestRecord,
) -> None:
    """Forwards any request to a provider that the settings open for it."""
    provider = address.route
    if provider not in parts.settings.raw:
        raise GatewayRefusal(
            ErrorKind.NOT_FOUND,
            f'/raw/{provider[:100]} is not open; add "{provider[:100]}" to gateway.raw',
            code="unknown_url",
        )
    _check_scope(caller, f"raw:{provider}")
    path = checked_path(address.item)
    record.requested_model = record.route = f"raw/{provider}"
    route = await parts.routes.find(f"{provider}/raw")
    deployment = route.all[0]
    if deployment.opened.provider.name != provider:
        raise GatewayRefusal(
            ErrorKind.NOT_FOUND, f'"{provider}" is not the provider that this gateway uses'
        )
    admitted = await parts.admission.admit_raw(caller, record, len(asked.body) // _BYTES_PER_TOKEN)
    try:
        # A credential of the client in the address must not reach the provider.
        query = tuple(one for one in parse_qsl(asked.query, True) if one[0] != "key")
        http = HttpRequest(
            method=asked.method,
            path=path,
            body=asked.body,
            query=query,
            headers=_sent_headers(asked),
        )
        await _Forwarding(parts, out, record, admitted, deployment).run(http)
    finally:
        admitted.settle(record)


def compacts_itself(
    route: Route, address: Destination, request: ClientRequest, body: bytes
) -> bool:
    """Whether the route's own server compacts this conversation.

    It knows neither the compactions nor the stored answers of this gateway.
    """
    for one in route.all:
        provider = one.opened.provider
        if not provider.faithful or provider.dialect != "openai-responses":
            return False
    return address.does != "compact" or not (request.previous or has_own_items(body))


async def forward_compaction(
    parts: GatewayParts,
    out: Answering,
    record: RequestRecord,
    admitted: Admittance,
    route: Route,
    body: bytes,
) -> None:
    """Has the vendor compact a conversation."""
    deployment = await _chosen(route, record, admitted)
    body = _renamed("", body, _model_of("", body), deployment.opened.model)
    http = HttpRequest(path="/responses/compact", body=body)
    await _Forwarding(parts, out, record, admitted, deployment).run(http)


def checked_path(path: str) -> str:
    """The path below a provider's address; GatewayRefusal if it could leave it."""
    plain = unquote(unquote(path))
    segments = re.split(r"[/\\]", plain.lstrip("/"))
    if (
        "://" in plain
        or "\\" in plain
        or plain.startswith("//")
        or any(segment in (".", "..") for segment in segments)
        or any(character < " " or character == "\x7f" for character in plain)
    ):
        raise GatewayRefusal(ErrorKind.BAD_REQUEST, "the path leaves the provider's address")
    return path


class _Forwarding:
    """One request to a provider, and its answer as it arrives."""

    def __init__(
        self,
        parts: GatewayParts,
        out: Answering,
        record: RequestRecord,
        admitted: Admittance,
        deployment: Deployment,
    ) -> None:
        self._parts = parts
        self._out = out
        self._record = record
        self._admitted = admitted
        self._deployment = deployment
        self._tail = b""

    async def run(self, http: HttpRequest) -> None:
        """Sends it and passes the answer on."""
        record, opened = self._record, self._deployment.opened
        record.provider, record.model = opened.provider.name, opened.model
        record.upstream_format, record.deployment = opened.provider.dialect, self._deployment.name
        if opened.endpoint is None:
            raise GatewayRefusal(ErrorKind.NOT_FOUND, f"{opened.name} has no server")
        routes = self._parts.routes
        routes.sent(self._deployment)
        try:
            async with await opened.endpoint.exchange(http) as incoming:
                if incoming.status >= 400:
                    await self._refused(incoming)
                    return
                await self._passed(incoming)
        except ToolwireError as error:
            routes.failed(self._deployment, error)
            if not self._out.begun:
                raise
            record.error, record.error_message = str(error.kind), str(error)
            self._out.cut()
            return
        routes.worked(self._deployment)

    async def _passed(self, incoming: Incoming) -> None:
        record, out = self._record, self._out
        record.status = incoming.status
        record.streamed = "event-stream" in incoming.headers.get("content-type", "")
        out.put_head(incoming.status, (*_returned(incoming), *answer_headers(record)))
        async for chunk in incoming.chunks:
            self._tail = (self._tail + chunk)[-_TAIL:]
            out.put(chunk)
            if out.full:
                await out.drained()
        self._count()
        await self._admitted.book(record)
        await out.end()

    async def _refused(self, incoming: Incoming) -> None:
        """The provider's error as it is, without secrets."""
        body = bytearray()
        async for chunk in incoming.chunks:
            body += chunk
            if len(body) > MAX_ERROR_BODY:
                break
        text = without_secrets(body[:MAX_ERROR_BODY].decode("utf-8", "replace"))
        record, status = self._record, incoming.status
        provider = self._deployment.opened.provider.name
        if status in (401, 403):
            # The client's own key is valid: it must not ask its user to log in.
            raise ProviderError(ErrorKind.AUTH, f"{provider} answered {status}", status=status)
        dialect = dialects.get(self._deployment.opened.provider.dialect)
        error = dialect.error(status, incoming.headers, text.encode())
        self._parts.routes.failed(self._deployment, error)
        record.status, record.error = status, str(error.kind)
        record.error_message = str(error)[:500]
        fields = (*_returned(incoming), *answer_headers(record))
        await self._out.whole(status, fields, text.encode())

    def _count(self) -> None:
        record = self._record
        found = usage_in(self._tail)
        if found is None:
            return
        record.usage = found
        record.stop_reason = "end"
        record.cost = self._deployment.opened.price(found)
        record.cost_source = "none" if record.cost is None else "table"


def usage_in(tail: bytes) -> Usage | None:
    """The token counts at the end of an answer of OpenAI's formats; None without any."""
    at = tail.rfind(b'"usage"')
    start = tail.find(b"{", at)
    if at < 0 or start < 0:
        return None
    try:
        value, _ = _number(tail[start:].decode("utf-8", "replace"))
        counts = msgspec.convert(value, _OpenAiUsage)
    except (ValueError, msgspec.ValidationError):
        return None
    read = counts.prompt_tokens or counts.input_tokens
    written = counts.completion_tokens or counts.output_tokens
    return Usage(input=read or max(0, counts.total_tokens - written), output=written)


async def _chosen(route: Route, record: RequestRecord, admitted: Admittance) -> Deployment:
    """The first deployment whose server has these operations."""
    order = route.order(record.conversation, None, admitted.allows)
    fitting = [one for one in order if one.opened.provider.dialect in _OPENAI]
    if not fitting:
        raise GatewayRefusal(
            ErrorKind.NOT_FOUND,
            f'"{route.name}" is answered by {order[0].opened.provider.name}, which does not speak '
            "OpenAI's formats; this address only forwards to servers that do",
            code="unknown_url",
        )
    return await admitted.move(fitting[:1])


def _check_scope(caller: Caller, scope: str) -> None:
    if not caller.admin and scope not in caller.scopes:
        raise GatewayRefusal(
            ErrorKind.PERMISSION,
            f"this key may not use this address; it needs the scope {scope}",
            status=403,
            should_retry=False,
        )


def _model_of(kind: str, body: bytes) -> str:
    if kind == "multipart/form-data":
        found = _model_field(body[:_MOST_BEFORE_MODEL]) or _model_field(body[-_MOST_BEFORE_MODEL:])
        return found[1].decode("utf-8", "replace").strip() if found else ""
    try:
        return msgspec.json.decode(body, type=_Named).model
    except msgspec.MsgspecError as error:
        raise GatewayRefusal(ErrorKind.BAD_REQUEST, f"the body cannot be read: {error}") from error


def _renamed(kind: str, body: bytes, named: str, model: str) -> bytes:
    """The body with the provider's name of the model; untouched if it has that name."""
    if not named or named == model:
        return body
    if kind == "multipart/form-data":
        old, new = (b"\r\n\r\n%b\r\n" % text.encode() for text in (named, model))
        return body.replace(old, new, 1)
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    members["model"] = msgspec.Raw(encode(model))
    return msgspec.json.encode(members)


def _sent_headers(asked: Asked) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value)
        for name, value in asked.head.fields
        if name in _SENT or name.startswith(_SENT_PREFIX)
    )


def _returned(incoming: Incoming) -> Sequence[tuple[str, str]]:
    return [(name, value) for name, value in incoming.headers.items() if name in _RETURNED]
