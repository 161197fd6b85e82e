import asyncio
import heapq
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.batch.limits import LimitedTransport, RequestGate, SqliteLimits
from toolwire.client.http.exchange import Incoming, Outgoing


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@settings(max_examples=2)
@given(st.integers(20, 120), st.integers(0, 3))
def test_four_hosts_stay_within_a_rate_and_use_it(per_minute: int, seed: int):
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        hosts = [SqliteLimits(Path(folder), per_minute, clock=clock) for _ in range(4)]
        sent: list[float] = []
        # Each host sends as soon as it may, with eight sessions.
        due = [(clock.now + (n * (seed + 1)) % 7 / 7, n) for n in range(12)]
        heapq.heapify(due)
        while due[0][0] < 1000 + 150:
            clock.now, n = heapq.heappop(due)
            wait = hosts[n % 4].take("key", {"requests": 1.0})
            if not wait:
                sent.append(clock.now)
            heapq.heappush(due, (clock.now + (wait or 0.01), n))
        for host in hosts:
            host.close()
    for at in sent:
        assert sum(at <= other < at + 60 for other in sent) <= per_minute
    assert len(sent) >= 0.9 * per_minute * 2.5


def test_tokens_are_limited_beside_requests(tmp_path: Path):
    clock = Clock()
    limits = SqliteLimits(tmp_path, 600, 6000, clock=clock)
    assert limits.take("k", {"requests": 1, "tokens": 150}) == 0
    wait = limits.take("k", {"requests": 1, "tokens": 150})
    assert 0.5 < wait < 1.1
    assert limits.take("other", {"requests": 1, "tokens": 150}) == 0
    clock.now += wait
    assert limits.take("k", {"requests": 1, "tokens": 150}) == 0


def test_a_rate_of_the_vendor_is_learned_unless_the_user_set_one(tmp_path: Path):
    clock = Clock()
    limits = SqliteLimits(tmp_path, clock=clock)
    assert [limits.take("k", {"requests": 1}) for _ in range(9)] == [0.0] * 9
    limits.learn("k", "requests", 60)
    taken = [limits.take("k", {"requests": 1}) for _ in range(3)]
    assert taken[0] == 0.0
    assert taken[-1] > 0
    own = SqliteLimits(tmp_path / "..", 6000, clock=clock)
    own.learn("k", "requests", 1)
    assert own.take("k", {"requests": 1}) == 0.0


class Server:
    """Answers with these statuses in turn."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        del request

        async def nothing() -> AsyncIterator[bytes]:
            return
            yield b""

        status = self.statuses.pop(0) if self.statuses else 200
        headers = {"retry-after": "0.2"} if status == 429 else {}
        yield Incoming(status=status, headers=headers, chunks=nothing())


def test_a_refusal_makes_every_host_wait(tmp_path: Path):
    request = Outgoing(method="POST", url="http://127.0.0.1:1/v1", headers=(("x-api-key", "k"),))

    async def both() -> float:
        one = LimitedTransport(Server(429), SqliteLimits(tmp_path))
        other = LimitedTransport(Server(), SqliteLimits(tmp_path))
        async with one.open(request) as answer:
            assert answer.status == 429
        began = asyncio.get_running_loop().time()
        async with other.open(request) as answer:
            assert answer.status == 200
        return asyncio.get_running_loop().time() - began

    assert asyncio.run(both()) >= 0.15


def test_fewer_requests_run_at_once_after_a_refusal():
    async def halved() -> list[int]:
        gate = RequestGate()
        for _ in range(8):
            await gate.enter()
        found = [gate.most]
        gate.refused(100.0)
        found.append(gate.most)
        gate.refused(100.5)
        found.append(gate.most)
        gate.refused(102.0)
        found.append(gate.most)
        gate.passed(113.0)
        found.append(gate.most)
        return found

    assert asyncio.run(halved()) == [4096, 4, 4, 2, 3]
