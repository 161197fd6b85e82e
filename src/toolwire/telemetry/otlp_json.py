"""Signals as OTLP JSON, one line for each kind of a batch."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from toolwire.telemetry.signals import Attributes, LogRecord, Measure, Signal, Span, Value

_KINDS = {"internal": 1, "server": 2, "client": 3}
_DELTA = 1
_SCOPE = "toolwire"


def lines(signals: Iterable[Signal], resource: Attributes, version: str) -> Iterator[bytes]:
    """Up to three lines: spans, log records, measures."""
    found = list(signals)
    scope = {"name": _SCOPE, "version": version}
    about = {"attributes": attributes_of(resource)}
    for kind, members, one in (
        ("Spans", "spans", [_span(each) for each in found if isinstance(each, Span)]),
        ("Logs", "logRecords", [_log(each) for each in found if isinstance(each, LogRecord)]),
        ("Metrics", "metrics", [_metric(each) for each in found if isinstance(each, Measure)]),
    ):
        if one:
            inside = [{"scope": scope, members: one}]
            whole = {f"resource{kind}": [{"resource": about, f"scope{kind}": inside}]}
            yield msgspec.json.encode(whole) + b"\n"


def attributes_of(attributes: Mapping[str, Value]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them."""
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case tuple():
            return {"arrayValue": {"values": [{"stringValue": one} for one in value]}}
        case str():
            return {"stringValue": value}


def _span(span: Span) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": f"{span.trace:032x}",
        "spanId": f"{span.id:016x}",
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(span.start),
        "endTimeUnixNano": str(span.end),
        "attributes": attributes_of(span.attributes),
        "status": {"code": 2, "message": span.error} if span.error else {},
    }
    return {**found, "parentSpanId": f"{span.parent:016x}"} if span.parent else found


def _log(record: LogRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        "timeUnixNano": str(record.at),
        "severityNumber": 9,
        "eventName": record.name,
        "body": {"stringValue": record.body or record.name},
        "attributes": attributes_of(record.attributes),
    }
    if record.trace:
        found |= {"traceId": f"{record.trace:032x}", "spanId": f"{record.span:016x}"}
    return found


def _metric(measure: Measure) -> dict[str, Any]:
    point: dict[str, Any] = {
        "startTimeUnixNano": str(measure.at),
        "timeUnixNano": str(measure.at),
        "attributes": attributes_of(measure.attributes),
    }
    found: dict[str, Any] = {"name": measure.name, "unit": measure.unit}
    if measure.counter:
        point["asDouble"] = measure.value
        data = {"dataPoints": [point], "aggregationTemporality": _DELTA, "isMonotonic": True}
        return {**found, "sum": data}
    point |= {
        "count": "1",
        "sum": measure.value,
        "min": measure.value,
        "max": measure.value,
        "bucketCounts": ["1"],
        "explicitBounds": [],
    }
    return {**found, "histogram": {"dataPoints": [point], "aggregationTemporality": _DELTA}}
