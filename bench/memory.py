"""In memory: bytes to events, against the floor and the vendors' own decoding."""

from collections.abc import Callable

from bench import floor, ours, sdks, streams
from bench.measure import Run, Samples, interleaved, worst
from bench.report import Goal, Section, Table

_COLUMNS = (
    "stream",
    "events",
    "floor µs",
    "ours µs",
    "ours ÷ floor",
    "floor, 1 per chunk",
    "ours, 1 per chunk",
    "ours ÷ floor, 1 per chunk",
    "SDK µs",
    "SDK ÷ ours",
)


def measure(rounds: int, *, quick: bool = False) -> Section:
    """All eight streams."""
    built = [
        streams.build(name, streams.EVENTS // 4 if quick else streams.EVENTS)
        for name in streams.NAMES
    ]
    runs: dict[str, Run] = {}
    for stream in built:
        count = len(stream.frames)
        for feeding, chunks in (("blocks", stream.blocks()), ("single", list(stream.frames))):
            runs[f"{stream.name} {feeding} floor"] = Run(_floor(stream.wire, chunks), count)
            runs[f"{stream.name} {feeding} ours"] = Run(_ours(stream.wire, chunks), count)
        runs[f"{stream.name} sdk"] = Run(sdks.reader(stream), count)
    cost = interleaved(runs, rounds)
    rows = tuple(_row(stream, cost) for stream in built)
    blocks = {str(row[0]): float(row[4] or 0) for row in rows}
    single = {str(row[0]): float(row[7] or 0) for row in rows}
    return Section(
        "memory",
        (Table("In memory: CPU µs per frame", _COLUMNS, rows, _NOTE),),
        (
            _goal("16 KB blocks", blocks),
            _goal("one frame per chunk", single),
        ),
    )


_NOTE = "Fed in 16 KB blocks, then one frame per chunk; SDK = the vendor's decoder, in blocks."


def _goal(how: str, ratios: dict[str, float]) -> Goal:
    where, value = worst(ratios)
    return Goal(f"memory, {how}: ours ÷ floor", 1.5, value, where)


def _row(stream: streams.Stream, cost: Samples) -> tuple[str | float | int, ...]:
    name = stream.name
    blocks_floor, blocks_ours = f"{name} blocks floor", f"{name} blocks ours"
    single_floor, single_ours = f"{name} single floor", f"{name} single ours"
    return (
        name,
        len(stream.frames),
        cost[blocks_floor],
        cost[blocks_ours],
        cost.ratio(blocks_ours, blocks_floor),
        cost[single_floor],
        cost[single_ours],
        cost.ratio(single_ours, single_floor),
        cost[f"{name} sdk"],
        cost.ratio(f"{name} sdk", blocks_ours),
    )


def _floor(wire: str, chunks: list[bytes]) -> Callable[[], object]:
    def run() -> None:
        feed = floor.feeder(wire)
        for chunk in chunks:
            for _ in feed(chunk):
                pass

    return run


def _ours(wire: str, chunks: list[bytes]) -> Callable[[], object]:
    return lambda: ours.read(wire, chunks)
