"""The official conformance suite; skipped where it cannot be installed."""

import asyncio
import re

import pytest

from tests.mcp import conformance

pytestmark = pytest.mark.sweep


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


@pytest.mark.sweep
@pytest.mark.parametrize("revision", conformance.CLIENT_REVISIONS)
def test_the_client_passes_every_scenario_that_is_not_an_extension(revision: str):
    scenarios = asyncio.run(conformance.client_scenarios(revision))
    assert len(scenarios) >= {"2025-03-26": 2, "2025-06-18": 5, "2025-11-25": 19}.get(revision, 33)
    for scenario in scenarios:
        passed, report = asyncio.run(conformance.check_client(revision, scenario))
        assert passed, f"{scenario}:\n{report}"
