"""Requests of the gateway as OpenTelemetry's spans and metrics; none of their words."""

import asyncio
import re
from collections.abc import Callable, Iterator

from toolwire.gateway.record import RequestRecord
from toolwire.telemetry.attributes import basic_of, histogram, token_measures, usage_of
from toolwire.telemetry.genai import operation_of, provider_name
from toolwire.telemetry.signals import Attributes, Measure, Signal, Span
from toolwire.telemetry.sink import SignalSink, new_trace_id, read_traceparent

_MODEL = re.compile(r"/models/[^:]+")
_STORED = re.compile(r"/responses/(?!compact$)[^/]+")
_FULL = 256
"""Signals that are sent without waiting for more."""
_SECONDS = 1.0


class GatewaySpans:
    """A reader of records; sends what a second brings together."""

    def __init__(self, sink: SignalSink) -> None:
        self._sink = sink
        self._held: list[Signal] = []

    def __call__(self, record: RequestRecord) -> None:
        """Records a request."""
        if not self._held:
            asyncio.get_running_loop().call_later(_SECONDS, self._flush)
        self._held += signals_of(record, new_trace_id)
        if len(self._held) >= _FULL:
            self._flush()

    def close(self) -> str:
        """Sends the rest; returns what failed."""
        self._flush()
        return self._sink.close()

    def _flush(self) -> None:
        held, self._held = self._held, []
        if held:
            self._sink.send(held)


def new_trace(caller: str) -> str:
    """The trace of a request to an upstream: the client's, if it has one."""
    trace = read_traceparent(caller)[0] or new_trace_id(16)
    return f"00-{trace:032x}-{new_trace_id(8):016x}-01"


def signals_of(record: RequestRecord, new_id: Callable[[int], int]) -> Iterator[Signal]:
    """The spans and measures of a request that has ended."""
    trace, inner = read_traceparent(record.trace)
    if not trace:
        return
    server = new_id(8)
    start, end = int(record.time * 1e9), int((record.time + record.duration) * 1e9)
    error = record.error or ("cancelled" if record.disconnected else "")
    if record.provider:
        yield from _upstream(record, trace, inner, server, error)
    yield Span(
        name=f"{record.method} {route_of(record.path)}",
        kind="server",
        trace=trace,
        id=server,
        parent=read_traceparent(record.caller_trace)[1],
        start=start,
        end=end,
        attributes=_server(record, error),
        error=error if record.status >= 500 or not record.status else "",
    )


def route_of(path: str) -> str:
    """The path without names and ids, of which there may be any number."""
    return _STORED.sub("/responses/{id}", _MODEL.sub("/models/{model}", path))


def _server(record: RequestRecord, error: str) -> Attributes:
    found: Attributes = {
        "http.request.method": record.method,
        "http.route": route_of(record.path),
        "url.path": record.path,
        "toolwire.request.id": record.id,
        "toolwire.losses": record.losses,
        "toolwire.reattached": record.reattached,
        "toolwire.overhead": record.overhead,
        "toolwire.waited": record.waited,
    }
    named = {
        "http.response.status_code": record.status,
        "toolwire.key": record.key,
        "toolwire.client": record.client,
        "toolwire.client.format": record.client_format,
        "toolwire.route": record.route,
        "error.type": error,
    }
    return found | {name: value for name, value in named.items() if value}


def _upstream(
    record: RequestRecord, trace: int, inner: int, server: int, error: str
) -> Iterator[Signal]:
    """The request to the model, with what it measures."""
    attributes = _client(record)
    basic = basic_of(attributes)
    start = int((record.time + record.overhead + record.waited) * 1e9)
    end = max(int((record.time + record.duration) * 1e9), start)
    if error:
        attributes["error.type"] = error
        basic = {**basic, "error.type": error}
    yield Span(
        name=f"{attributes['gen_ai.operation.name']} {record.model}",
        kind="client",
        trace=trace,
        id=inner,
        parent=server,
        start=start,
        end=end,
        attributes=attributes,
        error=error,
    )
    yield histogram("gen_ai.client.operation.duration", (end - start) / 1e9, end, basic)
    yield from token_measures(record.usage, end, basic)
    yield from _paced(record, start, end, basic)


def _paced(record: RequestRecord, start: int, end: int, basic: Attributes) -> Iterator[Measure]:
    if record.first_event is None or not record.streamed:
        return
    first = record.time + record.first_event
    waited = max(first - start / 1e9, 0.0)
    yield histogram("gen_ai.client.operation.time_to_first_chunk", waited, end, basic)
    if record.events > 1:
        each = max(end / 1e9 - first, 0.0) / (record.events - 1)
        yield histogram("gen_ai.client.operation.time_per_output_chunk", each, end, basic)


def _client(record: RequestRecord) -> Attributes:
    found: Attributes = {
        "gen_ai.operation.name": operation_of(record.provider),
        "gen_ai.provider.name": provider_name(record.provider),
        "gen_ai.request.model": record.model,
        "gen_ai.request.stream": record.streamed,
        **usage_of(record.usage),
    }
    named: dict[str, str | tuple[str, ...] | float | None] = {
        "gen_ai.response.model": record.upstream_model,
        "gen_ai.response.id": record.upstream_id,
        "gen_ai.response.finish_reasons": (record.stop_reason,) if record.stop_reason else "",
        "gen_ai.conversation.id": record.conversation,
        "toolwire.deployment": record.deployment,
        "toolwire.cost": record.cost,
    }
    return found | {name: value for name, value in named.items() if value}
