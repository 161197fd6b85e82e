"""What the real gemini-cli sent, read and written again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus_harness import same_after_round_trip
from toolwire import dialects

CAPTURES = Path(__file__).resolve().parents[4] / "shared" / "reference" / "gemini-cli-wire"

pytestmark = pytest.mark.skipif(
    not CAPTURES.is_dir(), reason="the captures lie beside the project, not in it"
)


def bodies(value: Any) -> Iterator[tuple[str, Any]]:
    """The request bodies of a capture; the tail of a conversation is one too."""
    if isinstance(value, list):
        for item in value:
            yield from bodies(item)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("contents"), list):
        yield "gemini", value
    elif isinstance(value.get("request"), dict) and "contents" in value["request"]:
        yield "code-assist", value
    else:
        for key, inner in value.items():
            if key == "next_request_contents_tail" and inner:
                yield "gemini", {"contents": inner}
            elif key == "later_requests_contents_tails":
                yield from (("gemini", {"contents": tail}) for tail in inner)
            else:
                yield from bodies(inner)


@pytest.mark.parametrize("version", ["0.5.5", "0.6.1", "0.61.0"])
def test_each_request_of_gemini_cli_comes_back_as_it_was(version: str) -> None:
    wrong: dict[str, str] = {}
    count = 0
    for path in sorted((CAPTURES / version).glob("*.json")):
        for dialect, body in bodies(json.loads(path.read_text())):
            count += 1
            found = same_after_round_trip(dialect, body)
            if found:
                wrong[path.name] = found
    assert wrong == {}
    assert count > 100


@pytest.mark.parametrize("version", ["0.5.5", "0.6.1", "0.61.0"])
def test_each_answer_in_a_tail_is_paired_with_its_call(version: str) -> None:
    for path in sorted((CAPTURES / version).glob("*.json")):
        capture = json.loads(path.read_text())
        tail = capture.get("next_request_contents_tail") if isinstance(capture, dict) else None
        if not tail:
            continue
        request = dialects.get("gemini").decode_request(json.dumps({"contents": tail}).encode())
        calls = [call.id for message in request.messages for call in message.calls]
        results = [result.call_id for message in request.messages for result in message.results]
        assert set(results) <= set(calls), path.name
