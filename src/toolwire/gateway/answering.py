"""One request for an answer: decode, recall, route, ask, encode."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import msgspec

from toolwire import dialects
from toolwire.agent.usage import summed
from toolwire.dialects import AnswerOptions
from toolwire.dialects.losses import kept_member
from toolwire.errors import BadInput, ToolwireError
from toolwire.events import (
    Finished,
    Notice,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolCallDelta,
    Usage,
)
from toolwire.gateway.clients import (
    check_unsupported,
    conversation_of,
    with_smaller_budget,
    without_notes,
)
from toolwire.gateway.compaction import (
    CompactedAnswer,
    CompactionAnswer,
    is_triggered,
    summary_request,
    with_summaries,
)
from toolwire.gateway.counting import estimate
from toolwire.gateway.failures import failed_answer, for_client
from toolwire.gateway.memory import Maker
from toolwire.gateway.outlet import Pace, StreamedAnswer, WholeAnswer
from toolwire.gateway.parts import Estimate, StoredAnswer
from toolwire.gateway.responses import previous_not_found
from toolwire.ids import new_id
from toolwire.messages import Message, Origin
from toolwire.model import reading
from toolwire.request import AttemptMeter, Loss, ModelRequest
from toolwire.wire.json_access import object_or_empty

if TYPE_CHECKING:
    from toolwire.gateway.outlet import AnswerWriter
    from toolwire.gateway.parts import (
        Admittance,
        Caller,
        Deployment,
        FoundTurns,
        GatewayParts,
        GatewayRefusal,
        Route,
        TurnMemory,
    )
    from toolwire.gateway.paths import Destination
    from toolwire.gateway.record import RequestRecord
    from toolwire.http_server.exchange import Answering, Asked

_VIA = "claude-via/"
"""Prefix of routes in lists for clients that show only names of one vendor."""
_BYTES_PER_TOKEN = 4


class ModelCall:
    """One request and its answer."""

    def __init__(
        self,
        parts: GatewayParts,
        asked: Asked,
        out: Answering,
        address: Destination,
        caller: Caller,
        record: RequestRecord,
    ) -> None:
        self._parts = parts
        self._asked = asked
        self._out = out
        self._address = address
        self._caller = caller
        self._record = record
        self._codec = dialects.get(address.dialect)
        self._meter = AttemptMeter()
        self._written = 0
        """Characters of the answer so far."""
        self._writer: AnswerWriter | None = None
        self._deployment: Deployment | None = None
        self._begun_at = time.perf_counter()
        self._estimate = Estimate(input=0)
        self._admitted: Admittance | None = None
        self._weight = 0
        """Tokens of the request by the estimate alone."""
        self._sent: tuple[Message, ...] = ()
        self._previous = ""
        self._items = b"[]"
        self._stored = False
        """Whether the answer can be retrieved later."""
        self._lowered: tuple[Loss, ...] = ()
        self._compacts = False
        """Whether the conversation is to be summarized instead of answered."""
        self._task: asyncio.Task[object] | None = None
        self._interrupted: GatewayRefusal | None = None
        self._is_admitted = False

    @property
    def waits(self) -> bool:
        """Whether it is in the queue, or its stream has not begun."""
        record = self._record
        return not self._is_admitted or (record.streamed and record.first_event is None)

    def interrupt(self, error: GatewayRefusal) -> None:
        """Ends the request with this error instead of its answer."""
        if self._task is not None and self._interrupted is None:
            self._interrupted = error
            self._task.cancel()

    async def run(self, body: bytes) -> None:
        """Answers; an error becomes an answer too."""
        record = self._record
        self._task = asyncio.current_task()
        try:
            await self._run(body)
        except ToolwireError as error:
            await self._failed(error)
        except asyncio.CancelledError:
            if self._interrupted is None or self._task is None or self._out.gone.is_set():
                raise
            self._task.uncancel()
            await self._failed(self._interrupted)
        finally:
            if self._writer is not None:
                self._writer.close()
            if not self._out.ended and self._out.gone.is_set():
                record.disconnected = "streaming" if record.streamed else "whole"
                if record.streamed and record.first_event is None:
                    record.disconnected = "held"
            if not record.stop_reason:
                self._count_partial()
            if self._admitted is not None:
                self._admitted.settle(record)

    async def _run(self, body: bytes) -> None:
        record, parts = self._record, self._parts
        request = self._decoded(body)
        request = with_summaries(await self._with_earlier(request))
        if self._address.does == "compact" or is_triggered(request):
            self._compacts = True
            request = summary_request(request)
        name = (self._address.route or request.model).removeprefix(_VIA)
        record.requested_model = request.model or name
        self._stored = self._stores(request)
        record.conversation = conversation_of(self._asked, request)
        route = await parts.routes.find(name)
        record.route = route.name
        request = route.adapted(request)
        self._weight = estimate(request)
        tokens = parts.calibration.tokens(route.name, self._weight)
        self._estimate = Estimate(input=tokens, max_output=request.max_output_tokens)
        self._writer = self._answer_writer(request)
        if self._compacts and self._address.does != "compact":
            self._writer = CompactionAnswer(self._writer, new_id)
        self._admitted = await parts.admission.admit(self._caller, record, self._estimate, route)
        self._is_admitted = True
        turns = await parts.memory.find(self._caller.tenant, request)
        await self._tried(route, turns, self._admitted)

    def _decoded(self, body: bytes) -> ModelRequest:
        request = self._codec.decode_request(body, self._address.model)
        record = self._record
        if self._codec.family == "gemini":
            record.streamed = self._address.does == "stream"
        else:
            record.streamed = request.stream is True
        if not request.messages and not request.previous_response_id:
            raise BadInput("the request has no messages")
        if self._codec.name == "openai-responses":
            check_unsupported(request)
        elif self._codec.name == "anthropic-messages":
            request, self._lowered = with_smaller_budget(request)
        betas = _listed(self._asked.field("anthropic-beta"))
        return msgspec.structs.replace(
            request, stream=record.streamed, meter=self._meter, betas=betas
        )

    async def _with_earlier(self, request: ModelRequest) -> ModelRequest:
        """The request with the conversation that `previous_response_id` stands for."""
        self._sent = request.messages
        self._items = _input_items(request)
        self._previous = request.previous_response_id
        if not self._previous:
            return request
        chain = await self._parts.stored.chain(self._caller.tenant, self._previous)
        if chain is None:
            raise previous_not_found(self._previous)
        return msgspec.structs.replace(
            request, messages=(*chain, *request.messages), previous_response_id=""
        )

    def _answer_writer(self, request: ModelRequest) -> AnswerWriter:
        settings, address = self._parts.settings, self._address
        model = self._record.requested_model
        options = AnswerOptions(
            created=int(self._record.time),
            usage_chunk=_wants_usage(request),
            input_tokens=self._estimate.input,
            previous_response_id=self._previous,
            store=self._stored,
        )
        if address.does == "compact":
            return CompactedAnswer(
                self._out, self._items, options.created, headers=self._headers, new_id=new_id
            )
        if not self._record.streamed:
            return WholeAnswer(self._out, self._codec, model, options, headers=self._headers)
        array = address.does == "stream" and "alt=sse" not in self._asked.query
        pace = Pace(
            hold_seconds=settings.hold_seconds, heartbeat_seconds=settings.heartbeat_seconds
        )
        return StreamedAnswer(
            self._out,
            self._codec,
            model,
            options,
            headers=self._headers,
            pace=pace,
            array=array,
        )

    def _stores(self, request: ModelRequest) -> bool:
        own = self._codec.name == "openai-responses" and self._address.does != "compact"
        return own and kept_member(request.kept, self._codec.name, "store") is not False

    async def _tried(self, route: Route, turns: FoundTurns, admitted: Admittance) -> None:
        """Asks the deployments in turn until one answers."""
        record, routes = self._record, self._parts.routes
        rest = self._order(route, turns.newest, admitted)
        tried: list[Deployment] = []
        while True:
            sealed = turns.newest is not None and not tried
            deployment = await admitted.move(route.choices(rest, sealed=sealed))
            rest.remove(deployment)
            record.fallback = bool(tried)
            tried.append(deployment)
            routes.sent(deployment)
            try:
                await self._asked_of(deployment, turns)
                return
            except ToolwireError as error:
                routes.failed(deployment, error)
                if record.first_event is not None:
                    raise
                rest = list(route.after(error, tried, rest))
                if not rest:
                    raise

    def _order(self, route: Route, maker: Maker | None, admitted: Admittance) -> list[Deployment]:
        """The deployments, the one that made the newest seal of the conversation first."""
        origin = None if maker is None else maker.origin
        order = route.order(self._record.conversation, origin, admitted.allows)
        if maker is None:
            return list(order)
        return sorted(order, key=lambda one: one.name != maker.deployment)

    async def _asked_of(self, deployment: Deployment, turns: FoundTurns) -> None:
        record, parts, writer = self._record, self._parts, self._writer
        assert writer is not None  # noqa: S101 - made before
        self._deployment = deployment
        opened = deployment.opened
        target = _maker(deployment)
        record.provider, record.model = opened.provider.name, opened.model
        record.upstream_format, record.deployment = opened.provider.dialect, deployment.name
        to_maker = opened.provider.faithful
        recalled = turns.attach(target)
        request, notes = without_notes(recalled.request, to_maker=to_maker)
        record.losses = len(recalled.losses) + len(notes) + len(self._lowered)
        record.reattached = recalled.reattached
        turn = turns.capture(self._codec.family, target)
        joins = target.origin.dialect != self._codec.family
        ask = opened.in_style(opened.client)
        record.overhead = time.perf_counter() - self._begun_at - record.waited
        out = self._out
        async with reading(ask(request)) as events:
            async for event in events:
                kind = type(event)
                if kind is Notice:
                    self._noticed(cast(Notice, event))
                    continue
                if record.first_event is None:
                    record.first_event = time.perf_counter() - self._begun_at
                    parts.routes.worked(deployment)
                    writer.begin()
                if kind is Finished:
                    await self._finish(cast(Finished, event), turn)
                    continue
                if kind is TextDelta or kind is ThinkingDelta:
                    self._written += len(cast(TextDelta, event).text)
                elif kind is ToolCallDelta:
                    self._written += len(cast(ToolCallDelta, event).arguments)
                outgoing = turn.outgoing(event)
                if joins and kind is TextEnded and cast(TextEnded, event).text is None:
                    # Gemini's signed last words would be a block of their own, which clients
                    # take for the whole answer.
                    outgoing = outgoing[:-1]
                for ours in outgoing:
                    writer.feed(ours)
                if out.full:
                    await out.drained()

    def _noticed(self, notice: Notice) -> None:
        self._record.losses += notice.loss is not None
        self._record.retries += notice.retry is not None

    async def _finish(self, finished: Finished, turn: TurnMemory) -> None:
        """Stores what must outlive the answer, then sends the end mark."""
        record, writer = self._record, self._writer
        assert writer is not None  # noqa: S101 - made before
        record.upstream_id = finished.response_id
        self._count(finished)
        ours = msgspec.structs.replace(finished, response_id="", model="")
        for before in turn.outgoing(ours)[:-1]:
            writer.feed(before)
        record.losses += await turn.finish() is not None
        writer.end(ours)
        record.status = 200
        if self._stored:
            await self._store(writer)
        if self._admitted is not None:
            record.duration = time.perf_counter() - self._begun_at
            await self._admitted.book(record)
        await writer.send()

    def _count(self, finished: Finished) -> None:
        record = self._record
        record.stop_reason = finished.reason.value
        usage = finished.usage
        self._parts.calibration.counted(record.route, self._weight, usage)
        for failed in self._meter.failed:
            usage = usage if failed is None else summed(usage, failed)
        record.usage = usage
        self._price(usage)

    def _price(self, usage: Usage) -> None:
        record = self._record
        if self._deployment is None:
            return
        record.cost = self._deployment.opened.price(usage)
        if record.cost is not None:
            record.cost_source = "vendor" if usage.cost is not None else "table"

    def _count_partial(self) -> None:
        """Counts an answer without an end: by the vendor's counts so far, else by its length."""
        record = self._record
        usages = [*self._meter.failed]
        if self._meter.reading is not None:
            usages.append(self._meter.reading())
        known = [usage for usage in usages if usage is not None]
        total = Usage()
        for usage in known:
            total = summed(total, usage)
        if record.first_event is not None and not total.output:
            output = self._written // _BYTES_PER_TOKEN + 1
            total = msgspec.structs.replace(
                total, input=total.input or self._estimate.input, output=output
            )
            record.usage_estimated = True
        record.usage = total
        if known or record.usage_estimated:
            self._price(total)
            if record.cost is not None and record.usage_estimated:
                record.cost_source = "estimate"

    async def _store(self, writer: AnswerWriter) -> None:
        body = writer.body()
        answer = StoredAnswer(
            id=writer.response_id,
            parent=self._previous,
            sent=self._sent,
            reply=writer.message(),
            body=body,
            input_items=self._items,
        )
        lost = await self._parts.stored.save(self._caller.tenant, answer)
        self._record.losses += lost is not None

    async def _failed(self, error: ToolwireError) -> None:
        record, writer = self._record, self._writer
        record.error = str(error.kind)
        record.error_message = str(error)
        provider = record.provider
        same = record.upstream_format == self._codec.name
        if writer is not None and writer.begun:
            writer.fail(for_client(error, self._codec, provider, same_format=same))
            return
        answer = failed_answer(error, self._codec, provider, same_format=same)
        record.status = answer.status
        await self._out.whole(answer.status, (*answer.headers, *self._headers()), answer.body)

    def _headers(self) -> Sequence[tuple[str, str]]:
        return answer_headers(self._record)


def _listed(value: str) -> tuple[str, ...]:
    """The members of a header with a list."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if value else ()


def answer_headers(record: RequestRecord) -> list[tuple[str, str]]:
    """The headers of an answer that say what became of the request."""
    found = [("x-request-id", record.id), ("request-id", record.id)]
    if record.provider:
        found += [
            ("toolwire-route", f"{record.provider}/{record.model}"),
            ("toolwire-losses", str(record.losses)),
            ("toolwire-reattached", str(record.reattached)),
        ]
    if record.upstream_id:
        found.append(("toolwire-upstream-id", record.upstream_id))
    return found


def _maker(deployment: Deployment) -> Maker:
    opened = deployment.opened
    family = dialects.get(opened.provider.dialect).family
    return Maker(Origin(family, opened.provider.name, opened.model), deployment.name)


def _wants_usage(request: ModelRequest) -> bool:
    """Whether a chat client requested token counts in the stream."""
    if request.source.dialect != "openai-chat":
        return True
    options = object_or_empty(request.source.body.get("stream_options"))
    return options.get("include_usage") is True


def _input_items(request: ModelRequest) -> bytes:
    """The input of a request of the Responses format, as a list."""
    items = request.source.body.get("input")
    if request.source.dialect != "openai-responses" or items is None:
        return b"[]"
    encoded = msgspec.json.encode(items)
    if encoded[:1] == b"[":
        return encoded
    part = {"type": "input_text", "text": msgspec.json.decode(encoded)}
    return msgspec.json.encode([{"type": "message", "role": "user", "content": [part]}])
