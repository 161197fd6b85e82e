"""Where signals go: the exporter, the file, or both, without secrets."""

import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolwire import __version__
from toolwire.client.redact import Redactor, known_secrets
from toolwire.config.telemetry import TelemetrySettings
from toolwire.errors import BadInput
from toolwire.telemetry.export import Exporter
from toolwire.telemetry.otlp_json import lines
from toolwire.telemetry.signals import Attributes, LogRecord, Signal, Span, Value


class SignalSink:
    """Sends signals where the settings say; `close` sends what is left."""

    def __init__(self, settings: TelemetrySettings, environ: Mapping[str, str]) -> None:
        self._trouble = ""
        self._resource: Attributes = {"service.name": "toolwire", "service.version": __version__}
        self._redact = Redactor(known_secrets())
        self._file = _opened(settings.outfile)
        off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        self._exporter = (
            Exporter(
                self._resource, __version__, endpoint=settings.endpoint, protocol=settings.protocol
            )
            if settings.enabled and not off
            else None
        )

    def send(self, signals: Iterable[Signal]) -> None:
        """Sends signals."""
        held = [self._without_secrets(signal) for signal in signals]
        if self._exporter is not None:
            self._exporter.send(held)
        if self._file is None:
            return
        try:
            self._file.write(b"".join(lines(held, self._resource, __version__)))
            self._file.flush()
        except OSError as error:
            self._trouble = f"telemetry.outfile cannot be written: {error.strerror}"
            self._file = None

    def close(self) -> str:
        """Sends the rest, for a short time; returns what failed."""
        if self._file is not None:
            self._file.close()
        if self._exporter is not None and not self._exporter.close():
            return "telemetry was not sent in time; check telemetry.endpoint"
        if self._exporter is not None and self._exporter.trouble:
            return f"telemetry was not taken: {self._exporter.trouble}; check telemetry.endpoint"
        return self._trouble

    def _without_secrets(self, signal: Signal) -> Signal:
        if not isinstance(signal, Span | LogRecord):
            return signal
        clean = {name: self._clean(value) for name, value in signal.attributes.items()}
        return msgspec.structs.replace(signal, attributes=clean)

    def _clean(self, value: Value) -> Value:
        return self._redact.text(value) if isinstance(value, str) else value


def new_trace_id(size: int) -> int:
    """A new id of that many bytes, never 0."""
    while True:
        if found := int.from_bytes(secrets.token_bytes(size)):
            return found


def read_traceparent(text: str) -> tuple[int, int]:
    """The trace and span of `00-<trace>-<span>-<flags>`; zeros if it is none."""
    parts = text.strip().split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or len(parts[2]) != 16:
        return 0, 0
    try:
        return int(parts[1], 16), int(parts[2], 16)
    except ValueError:
        return 0, 0


def _opened(name: str) -> BinaryIO | None:
    """The file for appending, readable by its user only; one may share it with others."""
    if not name:
        return None
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    except OSError as error:
        raise BadInput(f"telemetry.outfile: cannot write to {name}: {error.strerror}") from error
