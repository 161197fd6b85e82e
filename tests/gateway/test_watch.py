"""Numbers of changes, which pages of the console name when they come back."""

from typing import Any

from toolwire.gateway.record import RequestRecord
from toolwire.gateway.watch import Watch, Watched
from toolwire.http_server.exchange import Asked
from toolwire.wire.http1 import read_head

ASKED = Asked.of(read_head(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\n\r\n"), b"")
NOT_CANCELLED: Any = None


class Clock:
    """A clock that the test sets."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def begun(watch: Watch, name: str) -> Watched:
    return watch.begin(RequestRecord(id=name), ASKED, b"", NOT_CANCELLED, "off")


def test_a_change_has_the_time_at_which_it_happened() -> None:
    clock = Clock()
    watch = Watch(clock)
    watched = begun(watch, "req_1")
    clock.now += 3_600
    watch.ended(RequestRecord(id="req_1"))
    assert watched.n == watch.n == 4_600_000_000


def test_changes_of_one_moment_have_numbers_of_their_own() -> None:
    watch = Watch(Clock())
    first, second = begun(watch, "req_1"), begun(watch, "req_2")
    watch.ended(RequestRecord(id="req_1"))
    assert (second.n, first.n) == (1_000_000_002, 1_000_000_003)
    assert watch.since(1_000_000_002) == ([first], False)
