import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from toolwire.errors import (
    BadInput,
    ConnectionFailed,
    ErrorKind,
    IncompleteStream,
    ProviderError,
    ToolwireError,
)
from toolwire.gateway.cooling import (
    FAULTS,
    LONGEST,
    LONGEST_DELAY,
    PROBE_SECONDS,
    WITHIN,
    Cause,
    Cooling,
    cause_of,
)

CAUSES: list[tuple[ToolwireError, Cause | None]] = [
    (ProviderError(ErrorKind.RATE_LIMIT, "slow", status=429), Cause.RATE_LIMIT),
    (ProviderError(ErrorKind.QUOTA, "spent", status=429), Cause.RATE_LIMIT),
    (ProviderError(ErrorKind.QUOTA, "pay", status=402), Cause.REFUSED_KEY),
    (ProviderError(ErrorKind.OVERLOADED, "busy", status=529), Cause.FAULT),
    (ProviderError(ErrorKind.SERVER, "broken", status=500), Cause.FAULT),
    (ProviderError(ErrorKind.TIMEOUT, "late", status=504), Cause.FAULT),
    (ConnectionFailed("refused"), Cause.FAULT),
    (ConnectionFailed("silent", timed_out=True), Cause.FAULT),
    (IncompleteStream("cut"), Cause.FAULT),
    (ProviderError(ErrorKind.AUTH, "bad key", status=401), Cause.REFUSED_KEY),
    (ProviderError(ErrorKind.PERMISSION, "not yours", status=403), Cause.REFUSED_KEY),
    (ProviderError(ErrorKind.BAD_REQUEST, "no", status=400), None),
    (ProviderError(ErrorKind.NOT_FOUND, "no", status=404), None),
    (ProviderError(ErrorKind.BAD_REQUEST, "large", status=413), None),
    (ProviderError(ErrorKind.BAD_REQUEST, "odd", status=422), None),
    (ProviderError(ErrorKind.CONTEXT_TOO_LONG, "long", status=400), None),
    (ProviderError(ErrorKind.CONTENT_FILTER, "filtered", status=400), None),
    (ProviderError(ErrorKind.MALFORMED_CALL, "unreadable"), None),
    (BadInput("not JSON"), None),
]


@pytest.mark.parametrize(("error", "cause"), CAUSES)
def test_only_errors_of_the_deployment_cool_it(error: ToolwireError, cause: Cause | None) -> None:
    assert cause_of(error) == cause


def test_a_rate_limit_cools_until_the_server_says_or_ten_seconds() -> None:
    assert Cooling().failed(Cause.RATE_LIMIT, 4.0, 100.0).until == 104.0
    assert Cooling().failed(Cause.RATE_LIMIT, None, 100.0).until == 110.0
    assert Cooling().failed(Cause.RATE_LIMIT, -3.0, 100.0).ready(100.0)
    longer = Cooling().failed(Cause.RATE_LIMIT, 50.0, 100.0)
    assert longer.failed(Cause.RATE_LIMIT, 1.0, 101.0).until == 150.0


def test_three_faults_in_a_minute_cool_for_thirty_seconds_then_doubling() -> None:
    state = Cooling()
    for at in (0.0, 10.0):
        state = state.failed(Cause.FAULT, None, at)
        assert state.ready(at)
    state = state.failed(Cause.FAULT, None, 20.0)
    lengths = [state.until - 20.0]
    now = state.until
    for _ in range(6):
        assert state.ready(now)
        state = state.sent(now).failed(Cause.FAULT, None, now)
        lengths.append(state.until - now)
        now = state.until
    assert lengths == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0]


def test_faults_more_than_a_minute_apart_do_not_cool() -> None:
    state = Cooling()
    for number in range(20):
        state = state.failed(Cause.FAULT, None, number * WITHIN / 2)
        assert state.ready(number * WITHIN / 2)


def test_after_a_cool_down_one_request_probes_and_the_others_wait_for_it() -> None:
    state = _cooled(0.0)
    assert state.ready(30.0)
    state = state.sent(30.0)
    assert not state.ready(31.0)
    assert state.ready(30.0 + PROBE_SECONDS)
    assert state.worked(32.0) == Cooling()
    assert state.failed(None, None, 32.0).ready(32.0)


def test_an_answer_to_an_older_request_does_not_end_a_cool_down() -> None:
    state = Cooling().failed(Cause.RATE_LIMIT, 20.0, 0.0)
    assert not state.worked(5.0).ready(5.0)


def test_a_refused_key_cools_for_ten_minutes() -> None:
    state = Cooling().failed(Cause.REFUSED_KEY, None, 0.0)
    assert (state.ready(599.0), state.ready(600.0), state.cause) == (False, True, Cause.REFUSED_KEY)


def _cooled(now: float) -> Cooling:
    state = Cooling()
    for _ in range(FAULTS):
        state = state.failed(Cause.FAULT, None, now)
    return state


class CoolDowns(RuleBasedStateMachine):
    """One deployment under any order of answers and errors, checked against a plain account."""

    def __init__(self) -> None:
        super().__init__()
        self.state = Cooling()
        self.now = 1000.0
        self.out = 0
        self.faults = 0
        """Faults since the last answer."""
        self.others = 0
        """Rate limits and refused keys since then."""

    @rule(seconds=st.floats(0, 700))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.state.ready(self.now))
    @rule()
    def send(self) -> None:
        before = self.state
        self.state = before.sent(self.now)
        self.out += 1
        assert not before.streak or not self.state.ready(self.now)

    @precondition(lambda self: self.out)
    @rule()
    def work(self) -> None:
        cooling = self.now < self.state.until
        self.state = self.state.worked(self.now)
        self.out -= 1
        if not cooling:
            self.faults = self.others = 0
            assert self.state == Cooling()

    @precondition(lambda self: self.out)
    @rule(cause=st.sampled_from([None, *Cause]), delay=st.none() | st.floats(0, 1e9))
    def fail(self, cause: Cause | None, delay: float | None) -> None:
        before = self.state
        self.state = before.failed(cause, delay, self.now)
        self.out -= 1
        self.faults += cause is Cause.FAULT
        self.others += cause not in (None, Cause.FAULT)
        if cause is None:
            assert self.state.until == before.until
        assert self.state.until >= before.until

    @invariant()
    def cools_only_for_a_reason_and_never_too_long(self) -> None:
        left = self.state.until - self.now
        if not self.others:
            assert left <= LONGEST
            assert self.state.streak == 0 or self.faults >= FAULTS
            assert self.faults or self.state.ready(self.now) or self.state.probed is not None
        assert left <= LONGEST_DELAY
        assert self.state.ready(max(self.now, self.state.until) + PROBE_SECONDS)


CoolDowns.TestCase.settings = settings(max_examples=60, stateful_step_count=30)
TestCoolDowns = CoolDowns.TestCase
