import asyncio

import pytest

from tests.gateway.served import served
from tests.gateway.soak import answering, problems, soak


@pytest.mark.long
@pytest.mark.parametrize("upstream", ["chat", "anthropic"])
def test_memory_files_and_threads_stay_flat_under_broken_and_slow_streams(upstream: str):
    with served(upstream, answering) as gateway:
        report = asyncio.run(soak(gateway, seconds=60, at_once=32))
    assert report.whole > 100
    assert report.left > 0
    assert report.cut > 0
    assert problems(report) == []
