"""Thousands of recorded exchanges: our reading equals the vendors' own SDKs."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import corpus_harness as harness

DEVIATIONS = Path(__file__).parents[1] / "docs" / "wire" / "deviations.md"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not harness.CORPUS.is_dir(), reason="the recorded corpus lies beside the project, not in it"
    ),
]


def listed_deviations() -> set[str]:
    """Ids in the first column of the table of deviations."""
    rows = [line for line in DEVIATIONS.read_text().splitlines() if line.startswith("| `")]
    return {line.split("`")[1] for line in rows}


@pytest.mark.parametrize("dialect", harness.WITH_CORPUS)
def test_every_recorded_response_reads_as_the_sdk_reads_it(
    dialect: str, counted: Callable[[str], None]
) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    different: dict[str, list[str]] = {}
    for row in harness.rows(dialect):
        if not harness.judged(row):
            said = harness.read(row)
            counts[row["vendor"], "typed error" if said["error"] else "read without a judge"] += 1
            continue
        found = harness.differences(row)
        counts[row["vendor"], "different" if found else "equal"] += 1
        if found:
            different[row["id"]] = found
    for vendor in sorted({vendor for vendor, _ in counts}):
        verdicts = [f"{number} {what}" for (who, what), number in counts.items() if who == vendor]
        counted(f"responses, {dialect}, {vendor}: {', '.join(sorted(verdicts))}")
    judged = sum(n for (_, what), n in counts.items() if what in ("equal", "different"))
    counted(f"responses, {dialect}: {judged - len(different)} of {judged} as the SDK reads them")
    unlisted = {key: value for key, value in different.items() if key not in listed_deviations()}
    assert unlisted == {}


@pytest.mark.parametrize("dialect", harness.WITH_CORPUS)
def test_every_recorded_request_comes_back_equal(
    dialect: str, counted: Callable[[str], None]
) -> None:
    different: dict[str, str] = {}
    number = 0
    for row in harness.rows(dialect):
        if isinstance(row["request"], dict):
            number += 1
            found = harness.same_after_round_trip(dialect, row["request"])
            if found is not None:
                different[row["id"]] = found
    counted(f"requests, {dialect}: {number - len(different)} of {number} come back equal")
    assert different == {}


def test_the_list_of_deviations_names_recorded_exchanges() -> None:
    known = {row["id"] for dialect in harness.WITH_CORPUS for row in harness.rows(dialect)}
    assert listed_deviations() <= known


def test_recorded_requests_of_code_assist_come_back_equal() -> None:
    for row in harness.rows("gemini"):
        if isinstance(row["request"], dict):
            body = {"model": "m", "project": "p", "request": row["request"]}
            assert harness.same_after_round_trip("code-assist", body) is None, json.dumps(body)
