"""Hundreds of clients at once, and what the gateway loads to serve them."""

import asyncio

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
