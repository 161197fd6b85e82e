"""Hundreds of clients at once, and what the gateway loads to serve them."""

import asyncio
import sys
from pathlib import Path

import pytest

from bench.gateway_load import Load, put_on
from tests.gateway.served import served
from tests.gateway.soak import answering

STREAMS = 300
"""More than other machines may have open at once."""


def test_hundreds_of_streams_of_one_machine_at_once_all_arrive_whole():
    with served("chat", answering) as gateway:
        alone = asyncio.run(put_on(Load(origin=gateway.origin, stream=True, connections=1)))
        found = asyncio.run(put_on(Load(origin=gateway.origin, stream=True, connections=STREAMS)))
    assert alone.deltas > 10
    assert (found.requests, found.whole) == (STREAMS, STREAMS)
    assert found.deltas == alone.deltas * STREAMS


def page_faults(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are read from /proc")
def test_memory_of_a_large_body_is_used_again_for_the_next():
    large = 1_000_000
    with served("chat", answering) as gateway:
        ask = Load(origin=gateway.origin, stream=False, connections=1, times=10, size=large)
        asyncio.run(put_on(ask))
        before = page_faults(gateway.process.pid)
        found = asyncio.run(put_on(ask))
        taken = page_faults(gateway.process.pid) - before
    assert found.whole == 10
    # All of a body's copies, fetched anew each time, would be about 700 for each request.
    assert taken < 10 * 200
