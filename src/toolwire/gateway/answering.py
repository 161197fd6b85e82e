"""One request for an answer: decode, recall, route, ask, encode."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from toolwire import dialects
from toolwire.dialects import AnswerOptions
from toolwire.errors import ToolwireError
from toolwire.events import (
    Finished,
    ModelEvent,
    Notice,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolCallDelta,
)
from toolwire.gateway.capture import capturing
from toolwire.gateway.clients import conversation_of, without_notes
from toolwire.gateway.compaction import (
    CompactedAnswer,
    CompactionAnswer,
    is_triggered,
    summary_request,
    with_summaries,
)
from toolwire.gateway.failures import failed_answer, for_client
from toolwire.gateway.incoming import ClientRequest, decoded, with_earlier
from toolwire.gateway.memory import Maker
from toolwire.gateway.metering import AnswerMeter
from toolwire.gateway.outlet import Pace, StreamedAnswer, WholeAnswer
from toolwire.gateway.parts import StoredAnswer
from toolwire.gateway.raw import compacts_itself, forward_compaction
from toolwire.gateway.record import answer_headers
from toolwire.gateway.transparent import PassedAnswer, passes
from toolwire.ids import new_id
from toolwire.messages import Origin
from toolwire.model import batches
from toolwire.request import AnswerTap

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
    from toolwire.request import ModelRequest

_VIA = "claude-via/"
"""Prefix of routes in lists for clients that show only names of one vendor."""


class ModelCall:
    """One request and its answer."""

    _writer: AnswerWriter | None = None
    _own: AnswerWriter | None = None
    """Writes in the client's format what the upstream's bytes do not give."""
    _admitted: Admittance | None = None
    _incoming: ClientRequest | None = None
    _compacts = False
    """Whether the conversation is to be summarized instead of answered."""
    _task: asyncio.Task[object] | None = None
    _interrupted: GatewayRefusal | None = None
    _is_admitted = False

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
        self._meter = AnswerMeter(record, parts.calibration)
        self._begun_at = time.perf_counter()

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
            if self._interrupted is None or self._task is None or self._out.left:
                raise
            self._task.uncancel()
            await self._failed(self._interrupted)
        finally:
            if self._writer is not None:
                self._writer.close()
            if not self._out.ended and self._out.left:
                record.disconnected = "streaming" if record.streamed else "whole"
                if record.streamed and record.first_event is None:
                    record.disconnected = "held"
            if not record.stop_reason:
                self._meter.count_partial()
            if self._admitted is not None:
                self._admitted.settle(record)
            # They refer to this object: cut, all of the request is freed at once.
            self._writer = self._own = self._task = None

    async def _run(self, body: bytes) -> None:
        record, parts = self._record, self._parts
        incoming = self._incoming = decoded(self._codec, self._address, self._asked, body)
        record.streamed = incoming.request.stream is True
        capture = capturing()
        if capture is not None:
            capture.decoding(incoming.request, len(body))
        request = incoming.request
        if incoming.previous:
            request = await with_earlier(incoming, parts.stored, self._caller.tenant)
        request = msgspec.structs.replace(with_summaries(request), meter=self._meter.attempts)
        compacts = self._address.does == "compact" or is_triggered(request)
        name = (self._address.route or request.model).removeprefix(_VIA)
        record.requested_model = request.model or name
        record.conversation = conversation_of(self._asked, request)
        style = self._asked.field("toolwire-style") if self._caller.admin else ""
        route = await parts.routes.find(name, style)
        record.route = route.name
        forwards = compacts and compacts_itself(route, self._address, incoming, body)
        if compacts and not forwards:
            self._compacts = True
            request = summary_request(request)
        request = route.adapted(request)
        expected = self._meter.estimate(request)
        self._own = self._writer = self._answer_writer(incoming, expected.input)
        if self._compacts and self._address.does != "compact":
            self._own = self._writer = CompactionAnswer(self._writer, new_id)
        self._admitted = await parts.admission.admit(self._caller, record, expected, route)
        self._is_admitted = True
        if forwards and self._address.does == "compact":
            await forward_compaction(parts, self._out, record, self._admitted, route, body)
            return
        turns = await parts.memory.find(self._caller.tenant, request)
        await self._tried(route, turns, self._admitted)

    def _answer_writer(self, incoming: ClientRequest, input_tokens: int) -> AnswerWriter:
        settings, address = self._parts.settings, self._address
        model = self._record.requested_model
        options = AnswerOptions(
            created=int(self._record.time),
            usage_chunk=incoming.usage_chunk,
            input_tokens=input_tokens,
            previous_response_id=incoming.previous,
            store=incoming.stored,
        )
        if address.does == "compact":
            return CompactedAnswer(
                self._out, incoming.items, options.created, headers=self._headers, new_id=new_id
            )
        if not self._record.streamed:
            return WholeAnswer(self._out, self._codec, model, options, headers=self._headers)
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
            deadlines=self._parts.deadlines,
            array=incoming.array,
        )

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
                capture = capturing()
                if capture is not None:
                    capture.failing(deployment.name, error)
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

    def _prepared(
        self, deployment: Deployment, turns: FoundTurns
    ) -> tuple[ModelRequest, TurnMemory, AnswerWriter]:
        """The request for a deployment, the memory of its answer, and who writes the answer."""
        record, writer, incoming = self._record, self._own, self._incoming
        assert writer is not None and incoming is not None  # noqa: S101, PT018 - made before
        opened = self._meter.opened = deployment.opened
        target = _maker(deployment)
        record.provider, record.model = opened.provider.name, opened.model
        record.upstream_format, record.deployment = opened.provider.dialect, deployment.name
        recalled = turns.attach(target)
        request, notes = without_notes(recalled.request, to_maker=opened.provider.faithful)
        record.losses = len(recalled.losses) + len(notes) + len(incoming.losses)
        record.reattached = recalled.reattached
        capture = capturing()
        if capture is not None:
            capture.asking(request, recalled, (*notes, *incoming.losses))
        if record.trace and self._parts.settings.traceparent:
            request = msgspec.structs.replace(request, traceparent=record.trace)
        passed = not self._compacts and passes(opened, incoming, self._codec.name)
        if passed:
            tap = AnswerTap()
            request = msgspec.structs.replace(request, tap=tap)
            writer = PassedAnswer(self._out, writer, tap, incoming, record, self._headers)
        self._writer = writer
        turn = turns.capture(self._codec.family, target, renames=not passed)
        return request, turn, writer

    async def _asked_of(self, deployment: Deployment, turns: FoundTurns) -> None:
        record, parts = self._record, self._parts
        request, turn, writer = self._prepared(deployment, turns)
        opened = deployment.opened
        joins = dialects.get(opened.provider.dialect).family != self._codec.family
        record.overhead = time.perf_counter() - self._begun_at - record.waited
        out = self._out
        events = batches(deployment.ask, request)
        try:
            async for batch in events:
                begun = record.first_event is not None
                outgoing, finished = self._relayed(batch, turn, joins=joins)
                if not begun and record.first_event is not None:
                    parts.routes.worked(deployment)
                    writer.begin()
                if outgoing:
                    writer.feed(outgoing, last=begun and finished is not None)
                if finished is not None:
                    await self._finish(finished, turn)
                if out.full:
                    await out.drained()
        finally:
            await events.aclose()

    def _relayed(
        self, batch: Sequence[Any], turn: TurnMemory, *, joins: bool
    ) -> tuple[list[ModelEvent], Finished | None]:
        """The events as the client gets them, and the end if it is among them."""
        record, written, count = self._record, 0, 0
        outgoing: list[ModelEvent] = []
        finished: Finished | None = None
        for event in batch:
            kind = type(event)  # pyright: ignore[reportUnknownVariableType] - of any kind
            if kind is Notice:
                self._noticed(event)
                continue
            count += 1
            if kind is Finished:
                finished = event
                continue
            if kind is TextDelta or kind is ThinkingDelta:
                written += len(event.text)
            elif kind is ToolCallDelta:
                written += len(event.arguments)
            outgoing += turn.outgoing(event)
            if joins and kind is TextEnded and event.text is None:
                # Gemini's signed last words would be a block of their own, which clients
                # take for the whole answer.
                outgoing.pop()
        self._meter.written += written
        if count:
            record.events += count
            if record.first_event is None:
                record.first_event = time.perf_counter() - self._begun_at
        return outgoing, finished

    def _noticed(self, notice: Notice) -> None:
        self._record.losses += notice.loss is not None
        self._record.retries += notice.retry is not None
        capture = capturing()
        if capture is not None:
            capture.noticed(notice, self._record.deployment)

    async def _finish(self, finished: Finished, turn: TurnMemory) -> None:
        """Stores what must outlive the answer, then sends the end mark."""
        record, writer = self._record, self._writer
        assert writer is not None  # noqa: S101 - made before
        record.upstream_id, record.upstream_model = finished.response_id, finished.model
        self._meter.count(finished)
        ours = msgspec.structs.replace(finished, response_id="", model="")
        before = turn.outgoing(ours)[:-1]
        if before:
            writer.feed(before, last=True)
        record.losses += await turn.finish() is not None
        writer.end(ours)
        record.status = 200
        if self._incoming is not None and self._incoming.stored:
            await self._store(writer, self._incoming)
        if self._admitted is not None:
            record.duration = time.perf_counter() - self._begun_at
            await self._admitted.book(record)
        await writer.send()

    async def _store(self, writer: AnswerWriter, incoming: ClientRequest) -> None:
        body = writer.body()
        answer = StoredAnswer(
            id=writer.response_id,
            parent=incoming.previous,
            sent=incoming.sent,
            reply=writer.message(),
            body=body,
            input_items=incoming.items,
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


def _maker(deployment: Deployment) -> Maker:
    opened = deployment.opened
    family = dialects.get(opened.provider.dialect).family
    return Maker(Origin(family, opened.provider.name, opened.model), deployment.name)
