"""Sends signals through the OpenTelemetry SDK, in its own threads."""

import logging
import re
import threading
from collections.abc import Iterable
from typing import Any

from toolwire.errors import BadInput
from toolwire.telemetry.signals import Attributes, LogRecord, Measure, Signal, Span

_OPTIONAL = re.compile(r"code: (404|405)\b")
_LONGEST = 1.5
"""Seconds that leaving may wait for what is not sent yet; with all of it, less than two."""


class _Failures(logging.Handler):
    """Takes the SDK's log, which is printed over what the user reads if no handler takes it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""
        logging.getLogger("opentelemetry").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Stores the first failure; a server need not take metrics and log records."""
        words = record.getMessage()
        if self.first or (_OPTIONAL.search(words) and "span" not in words.lower()):
            return
        self.first = words.partition("\n")[0][:300]


class Exporter:
    """Batches of the SDK, sent by OTLP; a server that does not answer costs the session nothing."""

    def __init__(self, resource: Attributes, version: str, *, endpoint: str, protocol: str) -> None:
        try:
            from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - optional
            from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - optional
                PeriodicExportingMetricReader,
            )
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - optional
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - optional
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

            spans, metrics, logs = _exporters(protocol, endpoint)
        except ImportError as error:
            extra = (
                "opentelemetry-exporter-otlp-proto-grpc" if protocol == "grpc" else "toolwire[otel]"
            )
            raise BadInput(
                f"telemetry needs OpenTelemetry's packages: pip install '{extra}', or set "
                "telemetry.outfile"
            ) from error
        self._resource = Resource.create(dict(resource))
        self._version = version
        # Its sampler is the one that OTEL_TRACES_SAMPLER names.
        self._sampler = TracerProvider(shutdown_on_exit=False).sampler
        self._spans = BatchSpanProcessor(spans)
        reader = PeriodicExportingMetricReader(metrics)
        self._metrics = MeterProvider((reader,), resource=self._resource, shutdown_on_exit=False)
        self._meter = self._metrics.get_meter("toolwire", version)
        self._instruments: dict[str, Any] = {}
        self._logs = _log_processor(logs)
        self._failures = _Failures()

    @property
    def trouble(self) -> str:
        """The first failure that the SDK reported; empty if there was none."""
        return self._failures.first

    def send(self, signals: Iterable[Signal]) -> None:
        """Hands the signals over to the SDK's threads."""
        for signal in signals:
            match signal:
                case Span():
                    self._span(signal)
                case LogRecord():
                    self._log(signal)
                case Measure():
                    self._measure(signal)

    def close(self) -> bool:
        """Sends the rest; False if that took too long."""
        # The SDK's own limits are longer than a user waits.
        ending = threading.Thread(target=self._end, daemon=True)
        ending.start()
        ending.join(_LONGEST)
        return not ending.is_alive()

    def _end(self) -> None:
        parts = (self._spans, self._logs, self._metrics)
        flushing = [
            threading.Thread(target=part.force_flush, args=(int(_LONGEST * 1000),), daemon=True)
            for part in parts
        ]
        for thread in flushing:
            thread.start()
        for thread in flushing:
            thread.join()

    def _span(self, span: Span) -> None:
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415 - optional
        from opentelemetry.sdk.util.instrumentation import (  # noqa: PLC0415 - optional
            InstrumentationScope,
        )
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - optional

        if not self._sampler.should_sample(None, span.trace, span.name).decision.is_sampled():
            return
        status = Status(StatusCode.ERROR, span.error) if span.error else Status()
        self._spans.on_end(
            ReadableSpan(
                name=span.name,
                context=_context(span.trace, span.id),
                parent=_context(span.trace, span.parent) if span.parent else None,
                resource=self._resource,
                attributes=dict(span.attributes),
                kind=SpanKind[span.kind.upper()],
                status=status,
                start_time=span.start,
                end_time=span.end,
                instrumentation_scope=InstrumentationScope("toolwire", self._version),
            )
        )

    def _log(self, record: LogRecord) -> None:
        from opentelemetry._logs import LogRecord as SdkRecord  # noqa: PLC0415 - optional
        from opentelemetry._logs import SeverityNumber  # noqa: PLC0415 - optional
        from opentelemetry.sdk._logs import ReadWriteLogRecord  # noqa: PLC0415 - optional
        from opentelemetry.sdk.util.instrumentation import (  # noqa: PLC0415 - optional
            InstrumentationScope,
        )
        from opentelemetry.trace import (  # noqa: PLC0415 - optional
            NonRecordingSpan,
            set_span_in_context,
        )

        self._logs.on_emit(
            ReadWriteLogRecord(
                SdkRecord(
                    timestamp=record.at,
                    observed_timestamp=record.at,
                    context=set_span_in_context(
                        NonRecordingSpan(_context(record.trace, record.span))
                    ),
                    severity_number=SeverityNumber.INFO,
                    body=record.body or record.name,
                    attributes=dict(record.attributes),
                    event_name=record.name,
                ),
                resource=self._resource,
                instrumentation_scope=InstrumentationScope("toolwire", self._version),
            )
        )

    def _measure(self, measure: Measure) -> None:
        instrument = self._instruments.get(measure.name)
        if instrument is None:
            meter: Any = self._meter
            make = meter.create_counter if measure.counter else meter.create_histogram
            instrument = self._instruments[measure.name] = make(measure.name, unit=measure.unit)
        attributes: Any = dict(measure.attributes)
        if measure.counter:
            instrument.add(measure.value, attributes)
        else:
            instrument.record(measure.value, attributes)


def _context(trace: int, span: int) -> Any:
    from opentelemetry.trace import SpanContext, TraceFlags  # noqa: PLC0415 - optional

    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _exporters(protocol: str, endpoint: str) -> tuple[Any, Any, Any]:
    """The exporters of spans, metrics and logs; an address has a path for each by HTTP."""
    from importlib import import_module  # noqa: PLC0415 - used with the SDK only

    way = "grpc" if protocol == "grpc" else "http"
    found: list[Any] = []
    for module, name, path in (
        ("trace_exporter", "OTLPSpanExporter", "traces"),
        ("metric_exporter", "OTLPMetricExporter", "metrics"),
        ("_log_exporter", "OTLPLogExporter", "logs"),
    ):
        exporter = getattr(import_module(f"opentelemetry.exporter.otlp.proto.{way}.{module}"), name)
        address = endpoint if way == "grpc" else f"{endpoint.rstrip('/')}/v1/{path}"
        found.append(exporter(endpoint=address) if endpoint else exporter())
    return found[0], found[1], found[2]


def _log_processor(exporter: Any) -> Any:
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor  # noqa: PLC0415 - optional

    return BatchLogRecordProcessor(exporter)
