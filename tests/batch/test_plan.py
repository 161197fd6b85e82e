"""The plan, driven by an executor that fails at random, against rules counted from outside."""

from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.batch.plan import Ending, Exhausted, Pause, Plan, Rules, Trial
from toolwire.batch.results import State

FATES = st.sampled_from(["passed", "failed", "error", "lasting", "lost"])


def trials(count: int) -> list[Trial]:
    return [Trial(n=n, id=f"t{n}") for n in range(1, count + 1)]


@settings(max_examples=100)
@given(
    st.integers(1, 5),
    st.integers(0, 12),
    st.lists(FATES, max_size=80),
    st.lists(st.integers(0, 9), max_size=80),
)
def test_every_trial_ends_once_and_errors_are_tried_four_times(
    slots: int, count: int, fates: list[str], picks: list[int]
):
    plan = Plan(Rules(slots=slots, same_errors=99))
    source = trials(count)
    finals: list[int] = []
    starts: dict[int, list[float]] = {}
    now = 0.0
    for step in range(1000):
        if wants := plan.wants:
            plan.offer(source[:wants])
            del source[:wants]
            plan.more = bool(source)
        found = plan.next(now)
        if isinstance(found, Trial):
            starts.setdefault(found.n, []).append(now)
            assert len(plan.running) <= slots
            continue
        if isinstance(found, Exhausted):
            assert found.why == "done"
            break
        if not plan.running:
            assert found.until is not None
            assert found.until > now
            now = found.until
            continue
        now += 0.5
        n = sorted(plan.running)[picks[step % len(picks)] % len(plan.running) if picks else 0]
        fate = fates.pop() if fates else "passed"
        if fate == "lost":
            after = plan.lost(n, "h", now)
        else:
            state = State.ERROR if fate == "lasting" else State(fate)
            after = plan.ended(n, Ending(state=state, host="h", lasting=fate == "lasting"), now)
        if after.final:
            finals.append(n)
    else:
        raise AssertionError("the plan never ends")
    assert sorted(finals) == list(range(1, count + 1))
    assert all(1 <= len(times) <= 4 for times in starts.values())


def test_trials_start_in_order_and_at_most_as_many_as_slots():
    plan = Plan(Rules(slots=2))
    assert plan.wants == 4
    plan.offer(trials(4))
    assert [getattr(plan.next(0.0), "n", None) for _ in range(3)] == [1, 2, None]
    assert plan.next(0.0) == Pause()


def test_an_error_waits_longer_each_time_and_avoids_its_host():
    plan = Plan(Rules(slots=1, first_wait=2.0, same_errors=99))
    plan.offer(trials(1))
    plan.more = False
    now, waits = 0.0, []
    while isinstance(found := plan.next(now), Trial):
        assert found.avoid == ("h" if waits else "")
        plan.ended(1, Ending(state=State.ERROR, host="h"), now)
        wait = plan.next(now)
        if isinstance(wait, Pause):
            assert wait.until is not None
            waits.append(wait.until - now)
            now = wait.until
    assert waits == [2.0, 4.0, 8.0]
    assert found == Exhausted("done")


@given(st.integers(1, 8), st.floats(0.5, 20), st.integers(1, 60))
def test_a_budget_is_not_exceeded_where_trials_cost_the_same(slots: int, budget: float, count: int):
    plan = Plan(Rules(slots=slots, budget=budget))
    plan.offer(trials(count))
    plan.more = False
    started = 0
    while True:
        found = plan.next(0.0)
        if isinstance(found, Exhausted):
            break
        if isinstance(found, Trial):
            started += 1
            continue
        plan.ended(min(plan.running), Ending(state=State.PASSED, cost=1.0), 0.0)
    # The first one starts in any case: what it costs is not known before.
    assert started == min(count, max(1, int(budget)))
    assert found.why == ("done" if started == count else "budget")


def test_three_errors_of_a_kind_take_a_host_out():
    plan = Plan(Rules(slots=9))
    plan.meets("a")
    plan.meets("b")
    plan.offer(trials(9))
    for _ in range(9):
        plan.next(0.0)
    bad = Ending(state=State.ERROR, host="a", where="workspace", type="clone")
    other = Ending(state=State.ERROR, host="a", where="workspace", type="disk")
    assert [plan.ended(n, bad, 0.0).out for n in (1, 2)] == ["", ""]
    plan.ended(3, other, 0.0)
    plan.ended(4, bad, 0.0)
    plan.ended(5, Ending(state=State.PASSED, host="a"), 0.0)
    assert [plan.ended(n, bad, 0.0).out for n in (6, 7, 8)] == ["", "", "a"]
    assert plan.hosts_out == {"a": "workspace: clone"}


def test_the_last_host_goes_only_for_errors_of_the_machine():
    for where, out in (("workspace", ""), ("sandbox", "a")):
        plan = Plan(Rules(slots=3))
        plan.meets("a")
        plan.offer(trials(3))
        for _ in range(3):
            plan.next(0.0)
        bad = Ending(state=State.ERROR, host="a", where=where, type="x")
        assert [plan.ended(n, bad, 0.0).out for n in (1, 2, 3)] == ["", "", out]
        assert isinstance(plan.next(0.0), Exhausted) == bool(out)


def test_a_host_that_was_lost_is_not_one_that_is_left():
    plan = Plan(Rules(slots=3))
    plan.meets("a")
    plan.meets("b")
    plan.leaves("b")
    plan.offer(trials(3))
    for _ in range(3):
        plan.next(0.0)
    bad = Ending(state=State.ERROR, host="a", where="host", type="x")
    assert [plan.ended(n, bad, 0.0).out for n in (1, 2, 3)] == ["", "", "a"]
    assert plan.next(0.0) == Exhausted("hosts")


def test_nothing_starts_after_a_stop():
    plan = Plan(Rules(slots=3))
    plan.offer(trials(3))
    plan.next(0.0)
    plan.stop()
    assert plan.next(0.0) == Exhausted("stopped")
    assert plan.ended(1, Ending(state=State.STOPPED), 0.0).final is False
