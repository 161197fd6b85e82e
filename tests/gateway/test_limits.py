import asyncio

from hypothesis import given
from hypothesis import strategies as st

from toolwire.gateway.limits import LocalRates, Rates, RateState

STEPS = st.lists(
    st.tuples(st.floats(0, 30), st.integers(0, 3000), st.integers(-500, 500)), max_size=60
)


@given(rpm=st.integers(1, 50), tpm=st.integers(1, 2000), steps=STEPS)
def test_no_minute_gets_more_than_a_full_bucket_and_what_flows_in(
    rpm: int, tpm: int, steps: list[tuple[float, int, int]]
) -> None:
    rates = Rates(rpm, tpm)
    now = 0.0
    state = RateState.full(rates, now)
    granted: list[tuple[float, int]] = []
    for pause, tokens, _ in steps:
        now += pause
        before = state
        state, wait = state.take(rates, tokens, now)
        if wait:
            assert state.take(rates, tokens, now + wait + 1e-6)[1] == 0.0
            assert before.take(rates, tokens, now)[1] == wait
        else:
            granted.append((now, tokens))
    for start, _ in granted:
        inside = [tokens for at, tokens in granted if start <= at < start + 60]
        assert len(inside) <= 2 * rpm + 1
        # A request larger than a minute's amount is allowed once the bucket is full.
        assert sum(inside) <= 2 * tpm + max(inside)


def test_a_refusal_takes_nothing_and_names_the_wait() -> None:
    now = [0.0]
    rates = Rates(2, 100)
    limiter = LocalRates(lambda: now[0])

    async def take(tokens: int) -> float:
        return await limiter.take("k", rates, tokens)

    async def run() -> None:
        assert await take(60) == 0.0
        assert await take(60) == 12.0
        assert await take(40) == 0.0
        assert await take(0) == 30.0
        limiter.correct("k", rates, -50)
        now[0] = 30.0
        assert await take(90) == 0.0

    asyncio.run(run())


def test_keys_do_not_share_their_rates() -> None:
    limiter = LocalRates(lambda: 0.0)

    async def run() -> list[float]:
        return [await limiter.take(key, Rates(1, 0), 5) for key in ("a", "b", "a", "b")]

    assert asyncio.run(run()) == [0.0, 0.0, 60.0, 60.0]
