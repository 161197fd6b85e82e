"""Reads agent events and records them where the settings say."""

import time
from collections.abc import Callable, Mapping

from toolwire.agent.events import SessionEvent, TurnEnded
from toolwire.config.telemetry import TelemetrySettings
from toolwire.mcp.peer import CallTrace, call_trace
from toolwire.telemetry.gemini import GeminiRecords
from toolwire.telemetry.genai import Content, SessionTrace
from toolwire.telemetry.signals import Signal
from toolwire.telemetry.sink import SignalSink, new_trace_id, read_traceparent

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
        self._clock = clock
        content = _CAPTURES.get(environ.get(_CAPTURE, ""), settings.content)
        self._content = Content(
            spans=content in ("spans", "both"), events=content in ("events", "both")
        )
        self._outer = read_traceparent(environ.get("TRACEPARENT", ""))
        self._traces: dict[str, SessionTrace] = {}
        self._gemini: dict[str, GeminiRecords] = {}
        self._held: list[Signal] = []
        self._sink = SignalSink(settings, environ)

    async def __call__(self, received: SessionEvent) -> None:
        """Records an event."""
        now = self._clock()
        trace = self._traces.get(received.session)
        if trace is None:
            outer, parent = self._outer
            trace = self._traces[received.session] = SessionTrace(
                received.session,
                new_id=new_trace_id,
                content=self._content,
                trace=outer,
                parent=parent,
            )
        self._held += trace.feed(received, now)
        context = trace.call_context(received.event)
        if context is not None:
            # The event comes in the task of the call, which then makes its requests.
            call_trace.set(CallTrace(*context))
        if self._settings.gemini_events:
            self._held += self._records(received.session).feed(received.event, now)
        if len(self._held) >= _FULL or isinstance(received.event, TurnEnded):
            self._flush()

    def close(self) -> str:
        """Ends what is open and sends the rest, for a short time; returns what failed."""
        now = self._clock()
        for trace in self._traces.values():
            self._held += trace.close(now)
        self._flush()
        return self._sink.close()

    def _records(self, session: str) -> GeminiRecords:
        found = self._gemini.get(session)
        if found is None:
            found = self._gemini[session] = GeminiRecords(
                session, prompts=self._settings.prompts, content=self._content.events
            )
        return found

    def _flush(self) -> None:
        self._sink.send(self._held)
        self._held.clear()
