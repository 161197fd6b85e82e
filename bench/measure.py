"""CPU time of competing runs, taken in turns so that a busy machine slows all of them alike."""

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median

import msgspec

MINIMUM = 0.02
"""Seconds a sample should last: shorter runs are repeated until they fill it."""
_CHEAP = 0.2
_MORE_TURNS = 5
"""Runs shorter than so many seconds take turns so many times as often: their ratios settle."""


class Run(msgspec.Struct, frozen=True):
    """Something to time: `units` is what its cost is divided by (events, bytes, deltas)."""

    work: Callable[[], object]
    units: float = 1.0


class Samples:
    """What each competitor took, turn by turn."""

    def __init__(self) -> None:
        self._taken: dict[str, list[float]] = {}

    def add(self, name: str, figure: float) -> None:
        """One more turn."""
        self._taken.setdefault(name, []).append(figure)

    def __contains__(self, name: str) -> bool:
        return name in self._taken

    def __getitem__(self, name: str) -> float:
        """The median of its turns."""
        return median(self._taken[name])

    def ratio(self, over: str, under: str) -> float:
        """The median of the ratios within each turn: both then met the same machine.

        Slow peers take fewer turns; those that both took count.
        """
        pairs = zip(self._taken[over], self._taken[under], strict=False)
        return median(high / low for high, low in pairs)

    def difference(self, high: str, low: str) -> float:
        """The median of the differences within each turn."""
        pairs = zip(self._taken[high], self._taken[low], strict=False)
        return median(one - other for one, other in pairs)


def interleaved(runs: Mapping[str, Run], rounds: int, minimum: float = MINIMUM) -> Samples:
    """CPU (user and system) in µs per unit of each run; one uncounted round warms up."""
    gc.collect()
    # What the peers' imports left behind would else be walked in everyone's collections.
    gc.freeze()
    once = {name: _warm(run) for name, run in runs.items()}
    samples = Samples()
    for turn in range(rounds * _MORE_TURNS):
        for name, run in runs.items():
            if turn < rounds or once[name] < _CHEAP:
                repeats = max(1, round(minimum / once[name]))
                samples.add(name, _spent(run.work, repeats) / run.units * 1e6)
    gc.unfreeze()
    return samples


def _warm(run: Run) -> float:
    run.work()
    return max(_spent(run.work, 1), 1e-6)


def _spent(work: Callable[[], object], repeats: int) -> float:
    begun = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - begun) / repeats


def drain(items: Iterable[object]) -> None:
    """Take every item and drop it, as a consumer of a stream does."""
    for _ in items:
        pass


def trend(places: Sequence[float], figures: Sequence[float]) -> float:
    """The last figure ÷ the first on the straight line through all of them.

    Its slope is the median of the slopes between every two: one that the machine disturbed counts
    little, wherever it is, and growth from step to step counts in full.
    """
    points = list(zip(places, figures, strict=True))
    slope = median((y - b) / (x - a) for (a, b), (x, y) in combinations(points, 2))
    base = median(y - slope * x for x, y in points)
    return (base + slope * places[-1]) / (base + slope * places[0])


def worst(values: Mapping[str, float], *, low: bool = False) -> tuple[str, float]:
    """The name and value furthest from good: the highest, or the lowest where more is better."""
    pick = min if low else max
    name = pick(values, key=lambda key: values[key])
    return name, values[name]
