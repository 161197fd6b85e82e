"""Records on their way to readers that see several at once."""

import asyncio
from collections.abc import Sequence

from toolwire.gateway.record import RecordBatches, RequestRecord


def test_readers_see_every_record_once_and_in_order() -> None:
    seen: list[Sequence[RequestRecord]] = []
    also: list[Sequence[RequestRecord]] = []
    all_seen = asyncio.Event()

    def count(records: Sequence[RequestRecord]) -> None:
        seen.append(records)
        if sum(map(len, seen)) >= 150:
            all_seen.set()

    async def work() -> None:
        together = RecordBatches(count, also.append)
        for number in range(150):
            together(RequestRecord(id=f"r{number}"))
        assert 0 < sum(map(len, seen)) < 150
        await asyncio.wait_for(all_seen.wait(), 30)
        together(RequestRecord(id="r150"))
        together.flush()
        together.flush()
        await asyncio.sleep(0.1)

    asyncio.run(work())
    assert [one.id for records in seen for one in records] == [f"r{n}" for n in range(151)]
    assert seen == also
    assert len(seen) < 10
