"""The gateway's handler: who calls, what for, and the record of it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec

from toolwire import __version__, dialects
from toolwire.errors import ErrorKind, ToolwireError
from toolwire.gateway.answering import ModelCall
from toolwire.gateway.capture import Level
from toolwire.gateway.clients import family_of
from toolwire.gateway.failures import failed_answer
from toolwire.gateway.guard import Guard, TrustedProxies
from toolwire.gateway.lookups import count, models
from toolwire.gateway.operations import METRICS, Operations, check_scope, is_open
from toolwire.gateway.parts import Caller, GatewayParts, GatewayRefusal
from toolwire.gateway.paths import Destination, NoSuchAddress, find_address
from toolwire.gateway.raw import forward, forward_to
from toolwire.gateway.record import RequestRecord, answer_headers
from toolwire.gateway.responses import stored_body
from toolwire.gateway.watch import Watch
from toolwire.http_server.exchange import Answering, Asked, ClientGone, Ends, Refusal
from toolwire.ids import new_id
from toolwire.wire.http1 import RefusedRequest, RequestHead
from toolwire.wire.json_access import encode

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console

_JSON = ("content-type", "application/json")
_CREDENTIALS = ("x-api-key", "x-goog-api-key", "api-key")
_PROJECT = "toolwire"
_TIER = {"id": "standard-tier", "name": "toolwire", "isDefault": True}
_log = logging.getLogger(__name__)


class Gateway:
    """Answers every request; `parts` may be replaced while it runs."""

    def __init__(self, parts: GatewayParts, operations: Operations, guard: Guard) -> None:
        self.parts = parts
        self.operations = operations
        self.guard = guard
        self.proxies = TrustedProxies(parts.settings.trusted_proxies)
        self._calls: set[ModelCall] = set()
        self.watch = Watch(parts.clock)
        self.console_port = 0
        """The port of the worker that has the console; 0 with one process."""
        self.console: Callable[[], Console] | None = None
        """Opens the console at its first use, and returns it."""

    @property
    def open_calls(self) -> int:
        """How many requests are being answered by models."""
        return len(self._calls)

    def check(self, head: RequestHead, ends: Ends) -> Refusal | None:
        """Why a request is refused by its head; None if it may go on."""
        return self.guard.check(head, ends)

    def interrupt(self, *, waiting_only: bool) -> None:
        """Ends requests with an error: those without an answer so far, or all."""
        for call in tuple(self._calls):
            if call.waits or not waiting_only:
                call.interrupt(
                    GatewayRefusal(
                        ErrorKind.OVERLOADED, "the gateway is shutting down", retry_after=1.0
                    )
                )

    async def handle(self, asked: Asked, out: Answering) -> None:
        """Answers one request, and shows its record to the readers."""
        parts = self.parts
        if parts.settings.prefix:
            asked = without_prefix(asked, parts.settings.prefix)
        cors = self.guard.cors(asked.head)
        if cors:
            out.added = cors
        if asked.method != "POST":
            preflight = self.guard.preflight(asked.head)
            if preflight is not None:
                out.added = ()
                await out.whole(204, preflight)
                return
            if await self.operations.answer(asked, out):
                return
        if self.console is not None and is_for_console(asked):
            out.added = ()
            elsewhere = self._console_address(asked)
            if elsewhere:
                await out.whole(307, (("location", elsewhere),))
            else:
                await self.console().answer(asked, out)
            return
        record = RequestRecord(
            id=new_id("req_"),
            time=parts.clock(),
            method=asked.method,
            path=asked.path,
            client=family_of(asked),
            bytes_in=len(asked.body),
        )
        if parts.traces is not None:
            record.caller_trace = asked.field("traceparent")
            record.trace = parts.traces(record.caller_trace)
        begun = time.perf_counter()
        try:
            await self._answered(parts, asked, out, record)
        except ClientGone:
            record.disconnected = record.disconnected or "streaming"
            raise
        except asyncio.CancelledError:
            if out.left:
                record.disconnected = record.disconnected or "admitted"
            raise
        finally:
            record.duration = time.perf_counter() - begun
            record.bytes_out = out.sent
            for reader in parts.readers:
                reader(record)
            self.watch.ended(record)

    async def _answered(
        self, parts: GatewayParts, asked: Asked, out: Answering, record: RequestRecord
    ) -> None:
        if asked.path == METRICS and asked.method == "GET" and is_open(parts):
            record.status = 200
            await self.operations.report(out)
            return
        try:
            address = find_address(asked.method, asked.path)
        except NoSuchAddress as error:
            refusal = GatewayRefusal(
                ErrorKind.NOT_FOUND, str(error), status=error.status, code="unknown_url"
            )
            allow = (("allow", error.allow),) if error.allow else ()
            await _refused(out, record, refusal, error.dialect, allow)
            return
        record.client_format = address.dialect
        try:
            await self._operation(parts, asked, out, address, record)
        except RefusedRequest as error:
            refusal = GatewayRefusal(ErrorKind.BAD_REQUEST, str(error), status=error.status)
            await _refused(out, record, refusal, address.dialect)
        except ToolwireError as error:
            await _refused(out, record, error, address.dialect)

    def _console_address(self, asked: Asked) -> str:
        """Where the console is, if another worker has it; empty if it is here."""
        name, _, port = asked.head.host.rpartition(":")
        if not self.console_port or port == str(self.console_port):
            return ""
        scheme = "https" if self.guard.tls else "http"
        return f"{scheme}://{name or asked.head.host}:{self.console_port}{asked.head.target}"

    async def _caller(self, parts: GatewayParts, asked: Asked) -> Caller:
        """Who sends the request: by a credential, or a page of the console that is logged in."""
        given = credentials_of(asked)
        if not given and self.console is not None and asked.has("x-toolwire-csrf"):
            caller = self.console().caller(asked)
            if caller is not None:
                return caller
        return await parts.admission.identify(given, self.proxies.client(asked.head, asked.address))

    def _recorded(self, parts: GatewayParts, asked: Asked, caller: Caller) -> Level:
        """What is recorded of a request; the console may ask for everything."""
        if caller.admin and asked.field("toolwire-record") == "full":
            return "full"
        return parts.settings.record

    async def _operation(
        self,
        parts: GatewayParts,
        asked: Asked,
        out: Answering,
        address: Destination,
        record: RequestRecord,
    ) -> None:
        if address.does == "root":
            await _root(asked, out, record)
            return
        if address.does == "upgrade":
            await _upgrade(asked, out, record)
            return
        caller = await self._caller(parts, asked)
        record.key, record.key_id = caller.key, caller.id
        match address.does:
            case "answer" | "stream" | "compact":
                body = asked.plain_body(parts.settings.body_limit)
                call = ModelCall(parts, asked, out, address, caller, record)
                self._calls.add(call)
                level = self._recorded(parts, asked, caller)
                watched = self.watch.begin(record, asked, body, call, level)
                if watched.capture is not None and watched.level == "full":
                    out.tap = watched.capture.sent.add
                try:
                    await call.run(body)
                finally:
                    self._calls.discard(call)
            case "forward":
                await forward(parts, asked, out, address, caller, record)
            case "raw":
                await forward_to(parts, asked, out, address, caller, record)
            case "count":
                body = asked.plain_body(parts.settings.body_limit)
                answer, fields = await count(parts, address, body)
                out.added = (*out.added, *fields)
                await _whole(out, record, answer)
            case "models" | "model":
                await _whole(out, record, await models(parts, asked, address, caller))
            case "metrics":
                check_scope(caller)
                record.status = 200
                await self.operations.report(out)
            case "retrieve" | "delete" | "input_items" | "cancel":
                body = await stored_body(
                    parts.stored, caller.tenant, address.does, address.item, asked.query
                )
                await _whole(out, record, body)
            case "load" | "onboard" | "acknowledge":
                await _whole(out, record, _code_assist(address.does))
            case _:
                raise GatewayRefusal(
                    ErrorKind.NOT_FOUND, f"{asked.method} {asked.path} is not served yet"
                )


def without_prefix(asked: Asked, prefix: str) -> Asked:
    """The request as it is without the path that a proxy leaves before all addresses."""
    target = asked.head.target
    if not (asked.path + "/").startswith(f"{prefix}/"):
        return asked
    rest = target[len(prefix) :]
    head = msgspec.structs.replace(
        asked.head, target=rest if rest[:1] == "/" else f"/{rest}", by_name={}
    )
    return Asked.of(head, asked.body, asked.address)


def is_for_console(asked: Asked) -> bool:
    """Whether the console answers: its files, its API, and a browser's request for `/`."""
    path = asked.path
    if path == "/":
        return asked.method == "GET" and "text/html" in asked.field("accept")
    return path.startswith(("/api/", "/console/")) or path in ("/api", "/console")


def credentials_of(asked: Asked) -> list[str]:
    """Every credential of a request, wherever its client sends one."""
    fields = asked.head.by_name
    found: list[str] = []
    if "authorization" in fields:
        scheme, _, bearer = fields["authorization"].partition(" ")
        if scheme.lower() == "bearer" and (bearer := bearer.strip()):
            found.append(bearer)
    found += filter(None, map(fields.get, _CREDENTIALS))
    if "key=" in asked.head.target:
        found += [value for name, value in parse_qsl(asked.query) if name == "key"]
    return found


async def _refused(
    out: Answering,
    record: RequestRecord,
    error: ToolwireError,
    dialect: str,
    fields: tuple[tuple[str, str], ...] = (),
) -> None:
    answer = failed_answer(error, dialects.get(dialect))
    record.status, record.error, record.error_message = answer.status, str(error.kind), str(error)
    await out.whole(answer.status, (*answer.headers, *fields, *answer_headers(record)), answer.body)


async def _whole(out: Answering, record: RequestRecord, body: object, status: int = 200) -> None:
    record.status = status
    data = body if isinstance(body, bytes) else encode(body)
    await out.whole(status, (_JSON, *answer_headers(record)), data)


async def _root(asked: Asked, out: Answering, record: RequestRecord) -> None:
    """Claude Code probes with HEAD at its start."""
    if asked.method not in ("GET", "HEAD"):
        message = f"{asked.method} is not possible at /; use GET"
        refusal = GatewayRefusal(ErrorKind.BAD_REQUEST, message, status=405)
        await _refused(out, record, refusal, "openai-chat", (("allow", "GET, HEAD"),))
        return
    await _whole(out, record, {"toolwire": __version__})


async def _upgrade(asked: Asked, out: Answering, record: RequestRecord) -> None:
    """Codex asks for a WebSocket first; only this status makes it use HTTP at once."""
    if asked.field("upgrade").lower() == "websocket":
        words = "WebSockets are not served here; use POST /v1/responses"
        refusal = GatewayRefusal(ErrorKind.BAD_REQUEST, words, status=426)
        await _refused(out, record, refusal, "openai-responses", (("upgrade", "HTTP/1.1"),))
        return
    refusal = GatewayRefusal(
        ErrorKind.BAD_REQUEST, "GET is not possible at /v1/responses; use POST", status=405
    )
    await _refused(out, record, refusal, "openai-responses", (("allow", "POST"),))


def _code_assist(does: str) -> object:
    """What gemini-cli asks beside its requests after a login."""
    match does:
        case "load":
            return {
                "currentTier": _TIER,
                "allowedTiers": [_TIER],
                "cloudaicompanionProject": _PROJECT,
            }
        case "onboard":
            return {"done": True, "response": {"cloudaicompanionProject": {"id": _PROJECT}}}
        case _:
            return {}
