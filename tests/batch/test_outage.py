"""A provider that does not answer for a while: the task is not judged by it."""

from pathlib import Path

import pytest

from tests.batch.batches import Bench, answer, lines_of
from tests.fakes.simulated import Simulated
from toolwire.simulator import Question, Reply, refused, reply

pytestmark = pytest.mark.sweep

OUTAGE = 8
"""Requests that fail: all of the first try, and some of the second."""


class Outage:
    """Answers after the outage."""

    def __init__(self) -> None:
        self.requests = 0

    def __call__(self, question: Question) -> Reply:
        self.requests += 1
        if self.requests <= OUTAGE:
            return reply(fault=refused(503, retry_after="0.05"))
        return answer(question)


def test_requests_without_an_answer_use_no_turn(tmp_path: Path):
    outage = Outage()
    task = {"id": "t", "prompt": "RUN echo x", "limits": {"turns": 2}}
    with Simulated(outage) as sim:
        bench = Bench(tmp_path, sim)
        done = bench.run([task])
    assert done.code == 0, done.err
    line = lines_of(bench.out)["t"]
    assert (line["state"], line["stop"], line["tries"]) == ("finished", "done", 2)
    assert (line["requests"], line["calls"]) == (outage.requests, 1) == (OUTAGE + 2, 1)
