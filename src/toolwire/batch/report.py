"""Figures of a batch: shares with intervals, pass@k, medians, comparison of two batches. Pure."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from toolwire.batch.results import Result, State

_Z = 1.959963984540054
"""Of a 95 % interval."""
_MOST_LISTED = 10


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """So many of n, with a 95 % Wilson interval."""

    passed: int
    n: int
    share: float
    low: float
    high: float


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity over attempts."""

    total: float
    median: float
    p90: float
    n: int


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt in a list of extremes."""

    id: str
    model: str
    attempt: int
    value: float


class ModelLine(msgspec.Struct, frozen=True, kw_only=True):
    """A tag or a model, and its share."""

    name: str
    passed: Share


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two batches on the tasks that both graded."""

    other: str
    shared: int
    both: int
    neither: int
    won: tuple[str, ...]
    """Passed here, not there."""
    lost: tuple[str, ...]
    p: float
    """Exact McNemar test, two-sided."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a batch."""

    attempts: int
    states: Mapping[str, int]
    passed: Share | None = None
    """Over graded attempts; errors are not among them."""
    pass_at: Mapping[int, float] = {}
    """pass@k over tasks with at least k graded attempts."""
    by_tag: tuple[ModelLine, ...] = ()
    by_model: tuple[ModelLine, ...] = ()
    mean_score: float | None = None
    cost: Spread | None = None
    unpriced: int = 0
    """Attempts whose cost is not known."""
    tokens: Spread | None = None
    seconds: Spread | None = None
    calls: Spread | None = None
    requests: Spread | None = None
    limits: Mapping[str, int] = {}
    errors: Mapping[str, int] = {}
    unknown_calls: int = 0
    slowest: tuple[Named, ...] = ()
    dearest: tuple[Named, ...] = ()
    against: Comparison | None = None
    about: Mapping[str, str] = {}
    """Versions, models, seed."""


def wilson(passed: int, n: int) -> Share:
    """The share with its interval; an empty one is 0 between 0 and 1."""
    if n == 0:
        return Share(passed=0, n=0, share=0.0, low=0.0, high=1.0)
    share, z = passed / n, _Z
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == n else min(1.0, middle + half)
    return Share(passed=passed, n=n, share=share, low=low, high=high)


def pass_at(n: int, passed: int, k: int) -> float:
    """The chance that at least one of k attempts passes, estimated without bias from n."""
    if n - passed < k:
        return 1.0
    return 1.0 - math.comb(n - passed, k) / math.comb(n, k)


def mcnemar(won: int, lost: int) -> float:
    """Two-sided exact p-value of the discordant pairs."""
    n, least = won + lost, min(won, lost)
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, at) for at in range(least + 1)) / 2**n
    return min(1.0, 2 * tail)


def quantile(values: Sequence[float], share: float) -> float:
    """Interpolated between the two nearest of the sorted values."""
    at = (len(values) - 1) * share
    low, high = math.floor(at), math.ceil(at)
    return values[low] + (values[high] - values[low]) * (at - low)


def spread(values: Iterable[float]) -> Spread | None:
    """Total, median and 90th percentile; None without values."""
    found = sorted(values)
    if not found:
        return None
    return Spread(
        total=math.fsum(found), median=quantile(found, 0.5), p90=quantile(found, 0.9), n=len(found)
    )


def is_passed(result: Result) -> bool:
    """Whether a graded attempt counts as passed."""
    return result.state is State.PASSED


def report(results: Iterable[Result], about: Mapping[str, str] | None = None) -> Report:
    """The figures of the last result of each attempt."""
    all_ = list(results)
    ended = [one for one in all_ if one.state.is_final and one.state is not State.ERROR]
    graded = [one for one in ended if one.is_graded]
    scores = [one.score for one in graded if one.score is not None]
    costs = [one.cost for one in all_ if one.cost is not None]
    return Report(
        attempts=len(all_),
        states={state: count for state, count in _states(all_).items() if count},
        passed=wilson(sum(map(is_passed, graded)), len(graded)) if graded else None,
        pass_at=_pass_at(graded),
        by_tag=_grouped(graded, lambda one: one.tags),
        by_model=_grouped(graded, lambda one: (one.model,) if one.model else ()),
        mean_score=math.fsum(scores) / len(scores) if scores else None,
        cost=spread(costs),
        unpriced=sum(one.cost is None and one.requests > 0 for one in all_),
        tokens=spread(float(one.usage.input + one.usage.output) for one in ended),
        seconds=spread(one.seconds.total for one in ended),
        calls=spread(float(one.calls) for one in ended),
        requests=spread(float(one.requests) for one in ended),
        limits=dict(Counter(one.stop for one in ended if one.state is State.LIMIT).most_common()),
        errors=dict(
            Counter(
                f"{one.error.where}: {one.error.type}" for one in all_ if one.error is not None
            ).most_common()
        ),
        unknown_calls=sum(one.unknown for one in all_),
        slowest=_most(ended, lambda one: one.seconds.total),
        dearest=_most(ended, lambda one: one.cost or 0.0),
        about=about or {},
    )


def _states(results: Iterable[Result]) -> dict[str, int]:
    counted = Counter(one.state for one in results)
    return {str(state): counted[state] for state in State}


def _pass_at(graded: Iterable[Result]) -> dict[int, float]:
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for one in graded:
        count = counts[one.id, one.model]
        count[0] += 1
        count[1] += is_passed(one)
    most = max((n for n, _ in counts.values()), default=0)
    if most < 2:
        return {}
    found: dict[int, float] = {}
    for k in range(1, most + 1):
        each = [pass_at(n, passed, k) for n, passed in counts.values() if n >= k]
        found[k] = math.fsum(each) / len(each)
    return found


def _grouped(
    graded: Iterable[Result], names: Callable[[Result], Iterable[str]]
) -> tuple[ModelLine, ...]:
    groups: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in graded:
        for name in names(one):
            groups[name][0] += is_passed(one)
            groups[name][1] += 1
    return tuple(ModelLine(name=name, passed=wilson(*groups[name])) for name in sorted(groups))


def _most(results: Iterable[Result], value: Callable[[Result], float]) -> tuple[Named, ...]:
    ranked = sorted(results, key=lambda one: (-value(one), one.key))[:_MOST_LISTED]
    return tuple(
        Named(id=one.id, model=one.model, attempt=one.attempt, value=value(one))
        for one in ranked
        if value(one) > 0
    )


def compared(ours: Iterable[Result], theirs: Iterable[Result], other: str) -> Comparison:
    """Two batches by task: a task with several attempts passes if most of them do."""
    mine, others = _by_task(ours), _by_task(theirs)
    shared = [id for id in mine if id in others]
    won = tuple(id for id in shared if mine[id] and not others[id])
    lost = tuple(id for id in shared if others[id] and not mine[id])
    both = sum(mine[id] and others[id] for id in shared)
    return Comparison(
        other=other,
        shared=len(shared),
        both=both,
        neither=len(shared) - both - len(won) - len(lost),
        won=won,
        lost=lost,
        p=mcnemar(len(won), len(lost)),
    )


def _by_task(results: Iterable[Result]) -> dict[str, bool]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in results:
        if one.is_graded:
            counts[one.id][0] += is_passed(one)
            counts[one.id][1] += 1
    return {id: 2 * passed > n for id, (passed, n) in counts.items()}
