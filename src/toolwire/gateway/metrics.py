"""Counters of the gateway in Prometheus' text format."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from toolwire.gateway.record import RequestRecord

if TYPE_CHECKING:
    from toolwire.gateway.parts import GatewayParts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_OVERHEAD = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1)
_OTHER = "other"
_MOST_SERIES = 2000
"""Label sets of one metric; further ones are counted together."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Labels: TypeAlias = tuple[tuple[str, str], ...]
_TOKENS: tuple[Labels, ...] = tuple(
    (("direction", direction), ("kind", kind))
    for direction, kind in (
        *(("input", "plain"), ("input", "cached"), ("input", "cache_write")),
        *(("output", "plain"), ("output", "reasoning")),
    )
)


class Sample(NamedTuple):
    """A value that is read when the metrics are."""

    name: str
    kind: str
    """`gauge` or `counter`."""
    value: float
    labels: Labels = ()


Source: TypeAlias = Callable[[], Iterable[Sample]]


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, values: Sequence[float]) -> None:
        counts, bounds = self._counts, self._bounds
        for value in values:
            counts[bisect_left(bounds, value)] += 1
        self._sum += sum(values)

    def lines(self, name: str) -> Iterable[str]:
        yield f"# TYPE {name} histogram"
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._sum!r}"
        yield f"{name}_count {total}"


class LabelNames:
    """Names that may be labels of metrics; made anew when the settings have changed."""

    def __init__(self, parts: Callable[[], GatewayParts]) -> None:
        self._parts = parts
        self._made_of: GatewayParts | None = None
        self._names: frozenset[str] = frozenset()

    def __call__(self) -> frozenset[str]:
        """The models and routes of the settings."""
        parts = self._parts()
        if parts is not self._made_of:
            self._made_of = parts
            names = (entry.model for entry in parts.listed)
            self._names = frozenset((*parts.settings.routes, *names))
        return self._names


class Metrics:
    """Counts every record; labels have only names that the settings contain."""

    def __init__(
        self,
        names: Callable[[], frozenset[str]] = frozenset[str],
        sources: Iterable[Source] = (),
    ) -> None:
        self.names = names
        """Models and routes of the settings; any others are `other`."""
        self._sources = [*sources]
        self._counters: dict[str, dict[Labels, float]] = defaultdict(dict)
        self._histograms = {
            "toolwire_request_seconds": _Histogram(_SECONDS),
            "toolwire_first_event_seconds": _Histogram(_SECONDS),
            "toolwire_overhead_seconds": _Histogram(_OVERHEAD),
        }

    def add_source(self, source: Source) -> None:
        """Adds values that are read with the metrics."""
        self._sources.append(source)

    def count(self, name: str, value: float = 1, /, **labels: str) -> None:
        """Adds to a counter."""
        self._add(name, tuple(labels.items()), value)

    def _add(self, name: str, key: Labels, value: float) -> None:
        series = self._counters[name]
        if key not in series and len(series) >= _MOST_SERIES:
            key = tuple((label, _OTHER) for label, _ in key)
        series[key] = series.get(key, 0) + value

    def __call__(self, record: RequestRecord) -> None:
        """Counts a finished request."""
        self.count_all((record,))

    def count_all(self, records: Sequence[RequestRecord]) -> None:
        """Counts finished requests."""
        known = self.names()
        groups: dict[tuple[str, str, str, str, int], int] = {}
        for record in records:
            model = record.model if f"{record.provider}/{record.model}" in known else ""
            model = model or (record.route if record.route in known else _OTHER)
            group = (record.client_format, record.upstream_format, record.provider, model)
            group = (*group, record.status)
            groups[group] = groups.get(group, 0) + 1
            if record.cost:
                # A key's name is set by the operator; a caller without one has none.
                key = record.key or _OTHER
                self.count("toolwire_cost_dollars_total", record.cost, key=key, model=model)
            if record.retries or record.losses or record.reattached:
                self._count_repairs(record)
            if record.error or record.fallback or record.disconnected:
                self._count_faults(record)
        for group, count in groups.items():
            self._add("toolwire_requests_total", _group_labels(*group), count)
        first = [one.first_event for one in records if one.first_event is not None]
        self._histograms["toolwire_request_seconds"].add([one.duration for one in records])
        self._histograms["toolwire_overhead_seconds"].add([one.overhead for one in records])
        self._histograms["toolwire_first_event_seconds"].add(first)
        self._count_tokens(records)

    def _count_repairs(self, record: RequestRecord) -> None:
        formats = (("client", record.client_format), ("upstream", record.upstream_format))
        if record.losses:
            self._add("toolwire_losses_total", formats, record.losses)
        if record.reattached:
            self._add("toolwire_reattached_total", formats, record.reattached)
        if record.retries:
            self.count("toolwire_retries_total", record.retries)

    def _count_faults(self, record: RequestRecord) -> None:
        if record.error and record.provider:
            named = {"provider": record.provider, "kind": record.error}
            self.count("toolwire_upstream_errors_total", **named)
        if record.fallback:
            self.count("toolwire_fallbacks_total")
        if record.disconnected:
            self.count("toolwire_disconnects_total", when=record.disconnected)

    def _count_tokens(self, records: Sequence[RequestRecord]) -> None:
        plain = cached = written = output = reasoning = 0
        for record in records:
            usage = record.usage
            from_cache, to_cache = usage.cached or 0, usage.cache_write or 0
            thought = usage.reasoning or 0
            cached += from_cache
            written += to_cache
            reasoning += thought
            # Some vendors count more cached tokens than tokens.
            plain += max(0, usage.total_input - from_cache - to_cache)
            output += max(0, usage.total_output - thought)
        amounts = (plain, cached, written, output, reasoning)
        for labels, amount in zip(_TOKENS, amounts, strict=True):
            if amount > 0:
                self._add("toolwire_tokens_total", labels, amount)

    def render(self) -> bytes:
        """Everything as text."""
        lines: list[str] = []
        for name, series in sorted(self._counters.items()):
            lines.append(f"# TYPE {name} counter")
            lines += [_line(name, labels, value) for labels, value in sorted(series.items())]
        for name, histogram in self._histograms.items():
            lines += histogram.lines(name)
        typed: set[str] = set()
        samples = [sample for source in self._sources for sample in source()]
        for sample in sorted(samples, key=lambda sample: sample.name):
            if sample.name not in typed:
                typed.add(sample.name)
                lines.append(f"# TYPE {sample.name} {sample.kind}")
            lines.append(_line(sample.name, sample.labels, sample.value))
        return ("\n".join(lines) + "\n").encode()


@lru_cache(maxsize=64)
def _group_labels(client: str, upstream: str, provider: str, model: str, status: int) -> Labels:
    formats = (("client", client), ("upstream", upstream))
    return (*formats, ("provider", provider), ("model", model), ("status", str(status)))


def _line(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels)
    shown = int(value) if value == int(value) else value
    return f"{name}{{{inner}}} {shown}" if inner else f"{name} {shown}"


def of_process() -> Iterable[Sample]:
    """Memory, CPU time and open files of this process."""
    times = os.times()
    yield Sample("process_cpu_seconds_total", "counter", round(times.user + times.system, 3))
    yield Sample("process_start_time_seconds", "gauge", _STARTED)
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        size = pages * os.sysconf("SC_PAGE_SIZE")
        yield Sample("process_resident_memory_bytes", "gauge", size)
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only counted
        yield Sample("process_open_fds", "gauge", files)


_STARTED = round(time.time(), 3)


def gauges(prefix: str, values: Mapping[str, float]) -> Iterable[Sample]:
    """Values by name; those that end in `_total` are counters."""
    for name, value in values.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        yield Sample(f"{prefix}{name}", kind, value)
