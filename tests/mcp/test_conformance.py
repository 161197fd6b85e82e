"""The official conformance suite; skipped where it cannot be installed."""

import asyncio
import re

import pytest

from tests.mcp import conformance


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    try:
        conformance.suite()
    except conformance.NoSuite as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_the_server_passes_every_scored_scenario(revision: str):
    code, report = asyncio.run(conformance.check_server(revision))
    summary = conformance.summary(report)
    scored = summary.partition("Not scored")[0]
    failed = re.findall(r"✗ (?!tasks-)(\S+)", scored)
    assert (code, failed) == (0, []), summary
    assert len(re.findall(r"✓ ", scored)) >= 30
