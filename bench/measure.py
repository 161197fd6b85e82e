"""CPU time of competing runs, taken in turns so that a busy machine slows all of them alike."""

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

import msgspec

MINIMUM = 0.02
"""Seconds a sample should last: shorter runs are repeated until they fill it."""


class Run(msgspec.Struct, frozen=True):
    """Something to time: `units` is what its cost is divided by (events, bytes, deltas)."""

    work: Callable[[], object]
    units: float = 1.0


def interleaved(runs: Mapping[str, Run], rounds: int, minimum: float = MINIMUM) -> dict[str, float]:
    """Median CPU (user and system) in µs per unit of each run; one uncounted round warms up."""
    gc.collect()
    # What the peers' imports left behind would else be walked in everyone's collections.
    gc.freeze()
    repeats = {name: _repeats(run, minimum) for name, run in runs.items()}
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            spent = _spent(run.work, repeats[name])
            samples[name].append(spent / run.units * 1e6)
    gc.unfreeze()
    return {name: median(taken) for name, taken in samples.items()}


def _repeats(run: Run, minimum: float) -> int:
    run.work()
    once = _spent(run.work, 1)
    return max(1, round(minimum / max(once, 1e-6)))


def _spent(work: Callable[[], object], repeats: int) -> float:
    begun = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - begun) / repeats


def drain(items: Iterable[object]) -> None:
    """Take every item and drop it, as a consumer of a stream does."""
    for _ in items:
        pass


def worst(values: Mapping[str, float], *, low: bool = False) -> tuple[str, float]:
    """The name and value furthest from good: the highest, or the lowest where more is better."""
    pick = min if low else max
    name = pick(values, key=lambda key: values[key])
    return name, values[name]


def medians(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The median of each name's samples."""
    return {name: median(taken) for name, taken in samples.items() if taken}
