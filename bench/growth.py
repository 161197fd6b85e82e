"""Growth: what a frame or a byte costs when the stream, or one call's arguments, gets longer."""

from collections.abc import Callable

from bench import ours, streams
from bench.measure import Run, Samples, interleaved, worst
from bench.report import Goal, Section, Table

_SHORT = 250
"""Four times as many are still within the limit of calls in one answer, for Gemini."""
_BYTE_SHORT = 100
_ARGUMENTS = 4000
_QUICK = ("chat-text", "responses-tools", "anthropic-tools", "gemini-text")

Cost = dict[str, Samples]


def measure(rounds: int, *, quick: bool = False) -> Section:
    """Longer streams, longer arguments, and both fed byte by byte."""
    factors = (1, 4, 10) if quick else (1, 4, 10, 100)
    byte_factors = (1, 4) if quick else (1, 4, 10)
    names = _QUICK if quick else streams.NAMES
    longer = _compare(names, factors, rounds, _stream)
    arguments = _compare(streams.WIRES, factors, rounds, _arguments)
    by_byte = _compare(names, byte_factors, rounds, _bytewise)
    return Section(
        "growth",
        (
            _table("Growth: longer streams, per frame", longer, factors, f"{_SHORT} events"),
            _table("Growth: longer arguments of one call, per KB", arguments, factors, "4 KB"),
            _table("Growth: fed byte by byte, per KB", by_byte, byte_factors, "100 events"),
        ),
        (
            _goal("4 × the stream", longer),
            _goal("4 × the arguments", arguments),
            _goal("4 × the stream, byte by byte", by_byte),
        ),
    )


def _compare(
    names: tuple[str, ...], factors: tuple[int, ...], rounds: int, run: Callable[[str, int], Run]
) -> Cost:
    # One stream at a time: the longest ones are too big to hold together.
    return {
        name: interleaved({str(factor): run(name, factor) for factor in factors}, rounds)
        for name in names
    }


def _stream(name: str, factor: int) -> Run:
    stream = streams.build(name, _SHORT * factor)
    return _reading(stream.wire, stream.blocks(), len(stream.frames))


def _arguments(wire: str, factor: int) -> Run:
    stream = streams.build_call(wire, _ARGUMENTS * factor)
    return _reading(wire, stream.blocks(), len(stream.body) / 1000)


def _bytewise(name: str, factor: int) -> Run:
    stream = streams.build(name, _BYTE_SHORT * factor)
    chunks = [bytes((byte,)) for byte in stream.body]
    return _reading(stream.wire, chunks, len(chunks) / 1000)


def _reading(wire: str, chunks: list[bytes], units: float) -> Run:
    return Run(lambda: ours.read(wire, chunks), units)


def _table(title: str, cost: Cost, factors: tuple[int, ...], short: str) -> Table:
    rows = tuple(
        (name, found["1"], *(found.ratio(str(factor), "1") for factor in factors[1:]))
        for name, found in cost.items()
    )
    columns = ("stream", f"µs at {short}", *(f"{factor} × longer" for factor in factors[1:]))
    return Table(title, columns, rows, "Cost per unit relative to the short one: linear is 1.0.")


def _goal(what: str, cost: Cost) -> Goal:
    totals = {name: 4 * found.ratio("4", "1") for name, found in cost.items()}
    where, value = worst(totals)
    return Goal(f"{what} costs", 4.4, value, where)
