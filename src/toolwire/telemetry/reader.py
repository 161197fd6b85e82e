"""Reads agent events and records them where the settings say."""

import os
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolwire import __version__
from toolwire.agent.events import SessionEvent, TurnEnded
from toolwire.client.redact import Redactor, known_secrets
from toolwire.config.telemetry import TelemetrySettings
from toolwire.errors import BadInput
from toolwire.telemetry.export import Exporter
from toolwire.telemetry.gemini import GeminiRecords
from toolwire.telemetry.genai import Content, SessionTrace
from toolwire.telemetry.otlp_json import lines
from toolwire.telemetry.signals import Attributes, LogRecord, Signal, Span, Value

_CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES = {
    "SPAN_ONLY": "spans",
    "EVENT_ONLY": "events",
    "SPAN_AND_EVENT": "both",
    "NO_CONTENT": "none",
}
_FULL = 512
"""Signals that are held back for one write."""


class Telemetry:
    """A reader of events; `close` sends what is left."""

    def __init__(
        self,
        settings: TelemetrySettings,
        environ: Mapping[str, str],
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._settings = settings
        self._trouble = ""
        self._clock = clock
        content = _CAPTURES.get(environ.get(_CAPTURE, ""), settings.content)
        self._content = Content(
            spans=content in ("spans", "both"), events=content in ("events", "both")
        )
        self._resource: Attributes = {"service.name": "toolwire", "service.version": __version__}
        self._outer = _traceparent(environ.get("TRACEPARENT", ""))
        self._redact = Redactor(known_secrets())
        self._traces: dict[str, SessionTrace] = {}
        self._gemini: dict[str, GeminiRecords] = {}
        self._held: list[Signal] = []
        self._file = _opened(settings.outfile)
        off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
        self._exporter = (
            Exporter(
                self._resource, __version__, endpoint=settings.endpoint, protocol=settings.protocol
            )
            if settings.enabled and not off
            else None
        )

    async def __call__(self, received: SessionEvent) -> None:
        """Records an event."""
        now = self._clock()
        trace = self._traces.get(received.session)
        if trace is None:
            outer, parent = self._outer
            trace = self._traces[received.session] = SessionTrace(
                received.session,
                new_id=_new_id,
                content=self._content,
                trace=outer,
                parent=parent,
            )
        self._held += trace.feed(received, now)
        if self._settings.gemini_events:
            self._held += self._records(received.session).feed(received.event, now)
        if len(self._held) >= _FULL or isinstance(received.event, TurnEnded):
            self._flush()

    def close(self) -> str:
        """Ends what is open and sends the rest, for two seconds at most; returns what failed."""
        now = self._clock()
        for trace in self._traces.values():
            self._held += trace.close(now)
        self._flush()
        if self._file is not None:
            self._file.close()
        if self._exporter is not None and not self._exporter.close():
            return "telemetry was not sent within two seconds; check telemetry.endpoint"
        return self._trouble

    def _records(self, session: str) -> GeminiRecords:
        found = self._gemini.get(session)
        if found is None:
            found = self._gemini[session] = GeminiRecords(
                session, prompts=self._settings.prompts, content=self._content.events
            )
        return found

    def _flush(self) -> None:
        held = [self._without_secrets(signal) for signal in self._held]
        self._held.clear()
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

    def _without_secrets(self, signal: Signal) -> Signal:
        if not isinstance(signal, Span | LogRecord):
            return signal
        clean = {name: self._clean(value) for name, value in signal.attributes.items()}
        return msgspec.structs.replace(signal, attributes=clean)

    def _clean(self, value: Value) -> Value:
        return self._redact.text(value) if isinstance(value, str) else value


def _new_id(size: int) -> int:
    while True:
        if found := int.from_bytes(secrets.token_bytes(size)):
            return found


def _opened(name: str) -> BinaryIO | None:
    """The file for appending, readable by its user only; one may share it with others."""
    if not name:
        return None
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        return os.fdopen(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    except OSError as error:
        raise BadInput(f"telemetry.outfile: cannot write to {name}: {error.strerror}") from error


def _traceparent(text: str) -> tuple[int, int]:
    """The trace and span of `00-<trace>-<span>-<flags>`; zeros if it is none."""
    parts = text.strip().split("-")
    if len(parts) < 4 or len(parts[1]) != 32 or len(parts[2]) != 16:
        return 0, 0
    try:
        return int(parts[1], 16), int(parts[2], 16)
    except ValueError:
        return 0, 0
