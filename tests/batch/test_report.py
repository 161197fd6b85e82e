import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.batch.report import (
    compared,
    mcnemar,
    pass_at,
    quantile,
    report,
    spread,
    wilson,
)
from toolwire.batch.results import Failure, Result, Seconds, State, TokenCount, latest


def one(id: str, state: State = State.PASSED, **more: object) -> Result:
    score = {State.PASSED: 1.0, State.FAILED: 0.0, State.LIMIT: 0.0}.get(state)
    return Result(id=id, state=state, score=score, **more)  # pyright: ignore[reportArgumentType]


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_wilson_interval_solves_its_quadratic(counts: tuple[int, int]):
    passed, n = counts
    found = wilson(passed, n)
    assert 0 <= found.low <= found.share <= found.high <= 1
    for p in (found.low, found.high):
        if 0 < p < 1:
            # Its ends are where the normal score test is at its critical value.
            assert abs(found.share - p) == pytest.approx(
                1.959963984540054 * math.sqrt(p * (1 - p) / n), rel=1e-6, abs=1e-9
            )


def test_the_wilson_interval_of_published_figures():
    found = wilson(81, 263)
    assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)
    assert (wilson(0, 10).low, wilson(10, 10).high) == (0.0, 1.0)


@given(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
)
def test_pass_at_k_is_the_share_of_samples_with_a_pass(given_: tuple[int, int, int]):
    n, passed, k = given_
    samples = list(combinations([1] * passed + [0] * (n - passed), k))
    assert pass_at(n, passed, k) == pytest.approx(sum(map(any, samples)) / len(samples))


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_is_the_two_sided_binomial_test(won: int, lost: int):
    n = won + lost
    weights = [math.comb(n, at) / 2**n for at in range(n + 1)]
    exact = sum(weight for weight in weights if weight <= weights[won] + 1e-12) if n else 1.0
    assert mcnemar(won, lost) == pytest.approx(min(1.0, exact))
    assert mcnemar(won, lost) == mcnemar(lost, won)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60))
def test_quantiles_split_the_values(values: list[float]):
    values.sort()
    middle, high = quantile(values, 0.5), quantile(values, 0.9)
    assert values[0] <= middle <= high <= values[-1]
    assert sum(value < middle for value in values) <= len(values) / 2
    assert quantile(values, 1.0) == values[-1]
    found = spread(values)
    assert found is not None
    assert found.total == pytest.approx(sum(values))
    assert found.n == len(values)


def test_the_report_of_a_batch():
    results = [
        one(
            "a",
            tags=("easy",),
            model="m/1",
            cost=1.0,
            requests=2,
            calls=3,
            seconds=Seconds(total=5),
        ),
        one(
            "b",
            State.FAILED,
            tags=("easy", "slow"),
            model="m/2",
            cost=2.0,
            usage=TokenCount(input=7),
        ),
        one("c", State.LIMIT, stop="turn_limit", model="m/1", requests=1),
        one("d", State.ERROR, error=Failure(type="clone", message="x", where="workspace")),
        one("e", State.FINISHED, unknown=2),
    ]
    found = report(results, {"toolwire": "1"})
    assert found.states == {"passed": 1, "failed": 1, "finished": 1, "limit": 1, "error": 1}
    assert found.passed == wilson(1, 3)
    assert {line.name: (line.passed.passed, line.passed.n) for line in found.by_tag} == {
        "easy": (1, 2),
        "slow": (0, 1),
    }
    assert {line.name: line.passed.n for line in found.by_model} == {"m/1": 2, "m/2": 1}
    assert (found.limits, found.errors) == ({"turn_limit": 1}, {"workspace: clone": 1})
    assert found.cost is not None
    assert (found.cost.total, found.unpriced, found.unknown_calls) == (3.0, 1, 2)
    assert [named.id for named in found.dearest] == ["b", "a"]
    assert found.pass_at == {}


def test_pass_at_k_is_the_mean_over_tasks():
    results = [
        one("a"),
        one("a", State.FAILED, attempt=2),
        one("b", attempt=1),
        one("b", attempt=2),
    ]
    assert report(results).pass_at == {1: 0.75, 2: 1.0}


def test_an_empty_batch_has_a_report():
    assert report([]).passed is None


STATES = st.sampled_from([State.PASSED, State.FAILED, State.ERROR])


@given(
    st.dictionaries(st.sampled_from("abcdefgh"), st.tuples(STATES, STATES)),
)
def test_a_comparison_counts_each_shared_task_once(states: dict[str, tuple[State, State]]):
    ours = [one(id, mine) for id, (mine, _) in states.items()]
    theirs = [one(id, other) for id, (_, other) in states.items()]
    found = compared(ours, theirs, "OTHER")
    graded = {id: pair for id, pair in states.items() if State.ERROR not in pair}
    assert found.shared == len(graded)
    assert found.both + found.neither + len(found.won) + len(found.lost) == found.shared
    assert set(found.won) == {id for id, pair in graded.items() if pair == ("passed", "failed")}
    assert set(found.lost) == {id for id, pair in graded.items() if pair == ("failed", "passed")}


def test_the_last_line_of_an_attempt_counts():
    first, again, other = one("a", State.ERROR), one("a"), one("a", attempt=2)
    assert latest([first, other, again]) == [again, other]
