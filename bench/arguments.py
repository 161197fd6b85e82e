"""Growing arguments: what a live view of an unfinished call costs, and what none costs."""

import json
from collections.abc import Callable

import jiter
import msgspec

from bench import streams
from bench.measure import Run, Samples, interleaved
from bench.report import Goal, Section, Table
from toolwire.ids import new_id
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.partial import PartialJson

_SIZES = (10, 100)
_DELTA_CHARS = 50


def measure(rounds: int, *, quick: bool = False) -> Section:
    """A call of 10 KB and one of 100 KB, 50 characters at a time."""
    runs: dict[str, Run] = {}
    counts: dict[int, int] = {}
    for size in _SIZES:
        deltas = streams.growing_arguments(size * 1000, size * 1000 // _DELTA_CHARS)
        counts[size] = len(deltas)
        for name, work in _RUNS.items():
            runs[f"{name} {size}"] = Run(_over(work, deltas), len(deltas))
    cost = interleaved(runs, 2 if quick else rounds)
    rows = tuple(
        (
            name,
            cost[f"{name} 10"],
            cost[f"{name} 100"],
            cost.ratio(f"{name} 100", f"{name} 10"),
            cost[f"{name} 100"] * counts[100] / 1e3,
        )
        for name in _RUNS
    )
    columns = ("way", "µs per delta, 10 KB", "µs per delta, 100 KB", "100 ÷ 10", "100 KB in ms")
    note = f"Deltas of {_DELTA_CHARS} characters; a view is taken after every one."
    return Section("arguments", (Table("Growing arguments", columns, rows, note),), _goals(cost))


def _goals(cost: Samples) -> tuple[Goal, ...]:
    return (
        Goal(
            "live view: per delta at 100 KB ÷ at 10 KB",
            1.5,
            cost.ratio(f"{_VIEW} 100", f"{_VIEW} 10"),
        ),
        Goal(
            "live view: jiter at every delta ÷ ours, 100 KB",
            20,
            cost.ratio(f"{_JITER} 100", f"{_VIEW} 100"),
            at_least=True,
        ),
        Goal(
            "no view: ours ÷ parsing once with json, 100 KB",
            2,
            cost.ratio(f"{_UNSEEN} 100", f"{_ONCE} 100"),
        ),
    )


def _over(work: Callable[[list[str]], object], deltas: list[str]) -> Callable[[], object]:
    return lambda: work(deltas)


def _view(deltas: list[str]) -> None:
    view = PartialJson()
    shown: object = None
    for delta in deltas:
        view.feed(delta)
        shown = view.value
    assert view.complete, shown


def _unseen(deltas: list[str]) -> object:
    view = PartialJson()
    for delta in deltas:
        view.feed(delta)
    assert view.complete
    return view.value


def _jiter(deltas: list[str]) -> None:
    text = b""
    for delta in deltas:
        text += delta.encode()
        jiter.from_json(text, partial_mode="trailing-strings")


def _tracked(deltas: list[str]) -> object:
    tracker = ToolCallTracker(new_id)
    tracker.start(0, "write_file", "call_1")
    for delta in deltas:
        tracker.append(0, delta)
    tracker.end(0)
    return msgspec.json.decode("".join(deltas))


def _once(deltas: list[str]) -> object:
    parts: list[str] = []
    for delta in deltas:
        parts.append(delta)
    return json.loads("".join(parts))


def _once_msgspec(deltas: list[str]) -> object:
    parts: list[str] = []
    for delta in deltas:
        parts.append(delta)
    return msgspec.json.decode("".join(parts))


_VIEW = "live view (ours)"
_JITER = "live view: jiter at every delta"
_UNSEEN = "no view until the end (ours)"
_TRACKED = "an event for every delta, parsed once (ours)"
_ONCE = "no view: joined, parsed once with json"
_ONCE_MSGSPEC = "no view: joined, parsed once with msgspec"
_RUNS: dict[str, Callable[[list[str]], object]] = {
    _VIEW: _view,
    _JITER: _jiter,
    _UNSEEN: _unseen,
    _TRACKED: _tracked,
    _ONCE: _once,
    _ONCE_MSGSPEC: _once_msgspec,
}
