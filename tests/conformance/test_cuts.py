"""A stream cut at every place there is: nothing cut is ever taken for whole."""

from typing import Any

import pytest

from tests.conformance.driving import Case, driven, run
from toolwire import dialects, providers
from toolwire.collect import Collector
from toolwire.errors import IncompleteStream
from toolwire.simulator import Call, Fault, Question, Reply, Think, reply

ARGUMENTS = Call.of("read_file", path="a/rather/long/path.txt", lines=12)
STEP = 61


@pytest.mark.parametrize("dialect", dialects.NAMES)
@pytest.mark.parametrize("how", ["connection", "body"])
def test_an_answer_cut_at_any_byte_is_reported_as_cut(dialect: str, how: Any) -> None:
    cuts = iter(range(0, 100_000, STEP))

    def answer(question: Question) -> Reply:
        fault = Fault(cut_bytes=next(cuts), cut_how=how)
        return reply(Think("Hm."), "I look.", ARGUMENTS, "And done.", fault=fault)

    async def scenario() -> None:
        case = Case(providers.get("simulator").with_dialect(dialect), "simulated")
        tries = 0
        async with driven(case, answer) as d:
            while True:
                collector = Collector()
                try:
                    await d.hear(collector)
                except IncompleteStream:
                    assert collector.finished is None
                    for call in collector.message().calls:
                        assert not call.complete or call.arguments == ARGUMENTS.arguments
                    continue
                tries += 1
                assert collector.message().calls[0].arguments == ARGUMENTS.arguments
                assert collector.message().text == "I look.And done."
                if tries > 1:
                    break
            assert len(d.sim.requests) > 10
            assert d.sim.refusals == []

    run(scenario())
