"""The agent: what one headless turn costs, whether long sessions stay flat, how prefixes hold."""

import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bench.agent_session import Mark, Prefix, Report, Resumed
from bench.agent_turn import measure_turns
from bench.measure import trend
from bench.report import Goal, Section, Table
from toolwire import dialects

_LONG = "openai-chat"
_WINDOW = 32_000
"""Tokens of the long session's window: small enough to be filled and compressed many times."""
_reports = msgspec.json.Decoder(Report)


def measure(rounds: int, *, quick: bool = False) -> Section:
    """One turn in a process of its own, one long session, one session per wire format."""
    with tempfile.TemporaryDirectory(prefix="toolwire-bench-") as made:
        place = Path(made).resolve()
        parts = (
            _turns(place, rounds),
            _long(place, 60 if quick else 2_000),
            _prefixes(place, 40 if quick else 100),
        )
    tables = tuple(table for table, _ in parts)
    return Section("agent", tables, tuple(goal for _, goals in parts for goal in goals))


def _turns(place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    home = place / "turns"
    home.mkdir()
    return measure_turns(home, rounds)


def _long(place: Path, turns: int) -> tuple[Table, tuple[Goal, ...]]:
    reports = _session(place / "long", _LONG, turns, _WINDOW, turns // 10)
    marks = [report for report in reports if isinstance(report, Mark)]
    resumed = next(report for report in reports if isinstance(report, Resumed))
    rows = tuple((mark.turns, mark.cpu_ms, mark.rss_mb, mark.body_kb) for mark in marks)
    table = Table(
        f"One session of {turns} turns",
        ("turns", "CPU ms per turn", "RSS MB", "longest request KB"),
        rows,
        f"A tool call and an answer each turn, a window of {_WINDOW} tokens. Opened again in "
        f"{resumed.wall_ms:.0f} ms ({resumed.cpu_ms:.0f} ms CPU), {resumed.file_mb:.1f} MB.",
    )
    first, last = marks[0], marks[-1]
    where = f"turn {first.turns} to {last.turns}"
    # The first turns come before the window is full, and cost less.
    grown = trend([float(mark.turns) for mark in marks[1:]], [mark.cpu_ms for mark in marks[1:]])
    return table, (
        Goal("long session: memory grows", 1.1, last.rss_mb / first.rss_mb, where),
        Goal("long session: time per turn grows", 1.25, grown, f"turn {marks[1].turns} on"),
        Goal("long session: CPU to open it again", 1000, resumed.cpu_ms, unit="ms"),
    )


def _prefixes(place: Path, turns: int) -> tuple[Table, tuple[Goal, ...]]:
    found: dict[str, Prefix] = {}
    for name in dialects.NAMES:
        reports = _session(place / name, name, turns, 0, turns)
        found[name] = next(report for report in reports if isinstance(report, Prefix))
    rows = tuple(
        (name, one.requests, one.as_sent * 100, one.as_read * 100, one.changes)
        for name, one in found.items()
    )
    table = Table(
        f"Unchanged prefix over {turns} turns with tools",
        ("wire format", "requests", "% of bytes sent", "% as vendors cache", "changes"),
        rows,
        "Of the bytes of every request, what begins as the request before did; what is new counts "
        "against it. Vendors cache in the order tools, system prompt, messages.",
    )
    worst = min(found, key=lambda name: found[name].as_sent)
    share = found[worst].as_sent * 100
    return table, (
        Goal("prefix: bytes that stay the same", 95, share, worst, at_least=True, unit="%"),
    )


def _session(home: Path, dialect: str, turns: int, context: int, marks: int) -> list[Report]:
    home.mkdir()
    words = (dialect, str(turns), str(context), str(home), str(marks))
    done = subprocess.run(
        [sys.executable, "-m", "bench.agent_session", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the session over {dialect} failed: {done.stderr[-2000:]}")
    return [_reports.decode(line) for line in done.stdout.splitlines()]
