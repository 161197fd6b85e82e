"""`toolwire serve` beside other gateways: Anthropic's format in, a chat server behind.

Gateways run in turns before one prebuilt upstream; a load process asks on 32 connections. CPU is
that of the gateway's process tree per answered request.
"""

import itertools
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

import msgspec

from bench import gateway_codec
from bench.gateway_load import CHAT, Answered, Load
from bench.gateway_peers import (
    KEY,
    MODEL,
    PEERS,
    Gateway,
    Peer,
    cpu,
    ours_running,
    peer_running,
    rss,
)
from bench.measure import Samples
from bench.report import Cell, Goal, Section, Table

_SHAPES = {"whole": False, "50 events": True}
_LESS = {"LiteLLM": 60.0, "claude-code-router": 3.0}
_SIZES = (2_000, 100_000, 400_000, 1_600_000)
_STREAMS = 500
_DIRECT = "no gateway"


def measure(rounds: int, *, quick: bool = False) -> Section:
    """All tables of the gateway."""
    if not Path("/proc/self/stat").exists():
        note = "left out: CPU of other processes is read from /proc, which this system lacks"
        return Section("gateway", (Table("Gateway", ("",), (), note),))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place, ExitStack() as stack:
        folder = Path(place)
        upstream = stack.enter_context(_upstream())
        tables, goals = _beside_peers(rounds, quick, folder, upstream)
        for more in (_same_format, _many_streams, _sizes):
            table, found = more(quick, folder, upstream)
            tables += (table,)
            goals += found
        table, found = gateway_codec.measure(rounds)
    return Section("gateway", (*tables, table), (*goals, *found))


@contextmanager
def _upstream() -> Generator[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.upstream"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.communicate()


def _flag(upstream: str, pace: str = "fifty") -> tuple[str, str]:
    return "--upstream", f"openai-chat={upstream}/v1,model=bench-chat-text-{pace}"


def load(settings: Load) -> Answered:
    """Puts a load on a gateway from a process of its own."""
    words = [sys.executable, "-m", "bench.gateway_load", msgspec.json.encode(settings).decode()]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return msgspec.json.decode(done.stdout, type=Answered)


class _Figures:
    def __init__(self) -> None:
        self.cpu = {shape: Samples() for shape in _SHAPES}
        self.alone = {shape: Samples() for shape in _SHAPES}
        self.first = Samples()
        self.memory: dict[str, float] = {}
        self.idle: dict[str, float] = {}
        self.left_out: list[str] = []

    def add(self, gateway: Gateway, seconds: float) -> None:
        for shape, stream in _SHAPES.items():
            before = cpu(gateway.pid)
            found = load(Load(origin=gateway.origin, stream=stream, seconds=seconds, key=KEY))
            if found.whole != found.requests:
                raise RuntimeError(
                    f"{gateway.name}: {found.whole} of {found.requests} answers were whole"
                )
            spent = cpu(gateway.pid) - before
            self.cpu[shape].add(gateway.name, spent / found.requests * 1e6)
            self.add_alone(gateway.name, gateway.origin, shape)
        self.memory[gateway.name] = max(self.memory.get(gateway.name, 0.0), rss(gateway.pid))

    def add_alone(self, name: str, origin: str, shape: str, path: str = "/v1/messages") -> None:
        stream = _SHAPES[shape]
        one = Load(origin=origin, path=path, stream=stream, connections=1, times=100, key=KEY)
        found = load(one)
        self.alone[shape].add(name, found.p50)
        if stream:
            self.first.add(name, found.first)


def _beside_peers(
    rounds: int, quick: bool, folder: Path, upstream: str
) -> tuple[tuple[Table, ...], tuple[Goal, ...]]:
    figures = _Figures()
    with ExitStack() as stack:
        begun = stack.enter_context(ours_running(folder / "ours", *_flag(upstream)))
        _first_answer(begun)
        started = cpu(begun.pid)
        gateways = [(begun, 2.0 if quick else 4.0)]
        figures.idle[begun.name] = rss(begun.pid)
        for peer in PEERS:
            found = _try(peer, stack, folder, upstream, figures)
            if found is not None:
                figures.idle[found.name] = rss(found.pid)
                gateways.append((found, 6.0 if quick else 20.0))
        for turn in range(1 if quick else rounds):
            for shape in _SHAPES:
                figures.add_alone(_DIRECT, upstream, shape, "/v1/chat/completions")
            for gateway, seconds in gateways if turn % 2 else gateways[::-1]:
                figures.add(gateway, seconds)
    return (_table(figures),), _goals(figures, started)


def _first_answer(gateway: Gateway) -> None:
    load(Load(origin=gateway.origin, stream=False, connections=1, key=KEY))


def _try(
    peer: Peer, stack: ExitStack, folder: Path, upstream: str, figures: _Figures
) -> Gateway | None:
    if peer.missing:
        figures.left_out.append(f"{peer.name}: {peer.missing}")
        return None
    try:
        return stack.enter_context(peer_running(peer, folder / peer.name, upstream))
    except (RuntimeError, OSError) as error:
        figures.left_out.append(f"{peer.name}: {str(error)[-300:]}")
        return None


def _table(figures: _Figures) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in figures.memory:
        ratios: list[Cell] = [
            figures.cpu[shape].ratio(name, "toolwire") if name != "toolwire" else None
            for shape in _SHAPES
        ]
        rows.append(
            (
                name,
                *(figures.cpu[shape][name] for shape in _SHAPES),
                *ratios,
                *(figures.alone[shape][name] - figures.alone[shape][_DIRECT] for shape in _SHAPES),
                figures.first[name] - figures.first[_DIRECT],
                figures.idle[name],
                figures.memory[name],
            )
        )
    columns = (
        "gateway",
        "whole, µs",
        "50 events, µs",
        "whole, × ours",
        "50 events, × ours",
        "added p50 whole, ms",
        "added p50 stream, ms",
        "added first byte, ms",
        "idle MB",
        "MB after",
    )
    note = "CPU per request at 32 connections; 2 KB body; added time with one connection."
    if figures.left_out:
        note += " Left out: " + "; ".join(figures.left_out)
    return Table("Gateways, Anthropic in → chat", columns, tuple(rows), note)


def _goals(figures: _Figures, started: float) -> tuple[Goal, ...]:
    goals: list[Goal] = []
    for name, limit in _LESS.items():
        for shape in _SHAPES:
            if name in figures.cpu[shape]:
                ratio = figures.cpu[shape].ratio(name, "toolwire")
                goals.append(Goal(f"{name} ÷ ours, {shape}", limit, ratio, at_least=True))
    alone, direct = figures.alone["whole"]["toolwire"], figures.alone["whole"][_DIRECT]
    goals.append(Goal("added p50, whole", 1.0, alone - direct, unit="ms"))
    waited = figures.first["toolwire"] - figures.first[_DIRECT]
    goals.append(Goal("added time to the first byte", 1.0, waited, unit="ms"))
    goals.append(Goal("idle memory", 40.0, figures.idle["toolwire"], unit="MB"))
    goals.append(Goal("CPU from start to the first answer", 400.0, started * 1e3, unit="ms"))
    return tuple(goals)


_MAKER = """
[providers.maker]
extends = "openai"
dialect = "openai-chat"
base_url = "{upstream}/v1"
key_env = "PATH"
faithful = {faithful}
"""


def _same_format(quick: bool, folder: Path, upstream: str) -> tuple[Table, tuple[Goal, ...]]:
    """Chat in and chat out: bytes that pass, and the same stream decoded and encoded."""
    cost = {shape: Samples() for shape in _SHAPES}
    with ExitStack() as stack:
        gateways = {
            name: stack.enter_context(
                ours_running(
                    folder / name,
                    *("--model", f"maker/{MODEL}"),
                    settings=_MAKER.format(upstream=upstream, faithful=faithful),
                )
            )
            for name, faithful in (("passed", "true"), ("translated", "false"))
        }
        for gateway in gateways.values():
            load(Load(origin=gateway.origin, path=CHAT, stream=True, connections=1, key=KEY))
        for _ in range(1 if quick else 5):
            for shape, stream in _SHAPES.items():
                for name, gateway in gateways.items():
                    before = cpu(gateway.pid)
                    found = load(
                        Load(origin=gateway.origin, path=CHAT, stream=stream, seconds=2.0, key=KEY)
                    )
                    if found.whole != found.requests:
                        raise RuntimeError(f"{name}: {found.whole} of {found.requests} whole")
                    spent = cpu(gateway.pid) - before
                    cost[shape].add(name, spent / found.requests * 1e6)
    rows = tuple((name, *(cost[shape][name] for shape in _SHAPES)) for name in gateways)
    ratio = cost["50 events"].ratio("passed", "translated")
    goal = Goal("passed ÷ translated, 50 events", 0.5, ratio)
    columns = ("chat in, chat out", "whole, µs", "50 events, µs")
    return Table("The same format on both sides", columns, rows), (goal,)


def _many_streams(quick: bool, folder: Path, upstream: str) -> tuple[Table, tuple[Goal, ...]]:
    """500 paced streams at once: is every event there, and how much memory do they take?"""
    times = 1 if quick else 4
    with ours_running(folder / "streams", *_flag(upstream, "slow")) as gateway:
        alone = load(Load(origin=gateway.origin, stream=True, connections=1, key=KEY))
        before, spent = rss(gateway.pid), cpu(gateway.pid)
        settings = Load(
            origin=gateway.origin, stream=True, connections=_STREAMS, times=times, key=KEY
        )
        found, peak = _watched(lambda: load(settings), lambda: rss(gateway.pid))
        spent = cpu(gateway.pid) - spent
    expected = alone.deltas * _STREAMS * times
    row: tuple[Cell, ...] = (
        f"{_STREAMS} × {times}",
        found.whole,
        found.deltas,
        expected,
        before,
        peak,
        (peak - before) * 1e3 / _STREAMS,
        spent / max(found.requests, 1) * 1e3,
    )
    columns = (
        "streams",
        "whole",
        "events",
        "expected",
        "MB before",
        "MB peak",
        "KB a stream",
        "CPU ms a stream",
    )
    lost = expected - found.deltas + (_STREAMS * times - found.whole)
    goals = (
        Goal("500 streams at once", 80.0, peak, unit="MB"),
        Goal("memory of an open stream", 120.0, (peak - before) * 1e3 / _STREAMS, unit="KB"),
        Goal("lost events and streams", 0.0, float(lost), unit="lost"),
    )
    note = "One event per segment, 50 ms apart."
    return Table("Many streams at once", columns, (row,), note), goals


def _watched(work: Callable[[], Answered], look: Callable[[], float]) -> tuple[Answered, float]:
    ended = threading.Event()
    peak = look()

    def watch() -> None:
        nonlocal peak
        while not ended.wait(0.1):
            peak = max(peak, look())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        return work(), peak
    finally:
        ended.set()
        thread.join()


def _sizes(quick: bool, folder: Path, upstream: str) -> tuple[Table, tuple[Goal, ...]]:
    """CPU by the size of the body."""
    costs: dict[int, list[float]] = {size: [] for size in _SIZES}
    with ours_running(folder / "sizes", *_flag(upstream)) as gateway:
        for _ in range(1 if quick else 5):
            for size in _SIZES:
                # The system counts CPU in steps of 10 ms: some tenths of a second of each size.
                times = max(100, min(400, 160_000_000 // size))
                settings = Load(
                    origin=gateway.origin,
                    stream=False,
                    connections=1,
                    times=times,
                    size=size,
                    key=KEY,
                )
                before = cpu(gateway.pid)
                found = load(settings)
                if found.whole != times:
                    raise RuntimeError(f"{size} characters: {found.whole} of {times} answers")
                costs[size].append((cpu(gateway.pid) - before) / times * 1e6)
    cost = {size: median(taken) for size, taken in costs.items()}
    rows = tuple((f"{size // 1000} KB", cost[size], cost[size] / size * 1e3) for size in _SIZES)
    columns = ("user message", "CPU µs a request", "µs a KB")
    # What a further KB costs: the fixed cost of a request is not part of it.
    slopes = [
        (cost[large] - cost[small]) / (large - small)
        for small, large in itertools.pairwise(_SIZES[1:])
    ]
    goals = (
        Goal("a further KB from 400 KB to 1.6 MB ÷ from 100 to 400 KB", 1.5, slopes[1] / slopes[0]),
    )
    return Table("Growth with the body", columns, rows), goals
