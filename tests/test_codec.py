"""Every recorded request in every other format: accepted, balanced, nothing lost in silence."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests import acceptance, audit
from tests import corpus_harness as harness
from toolwire import dialects
from toolwire.messages import ToolResult, calls_without_result

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not harness.CORPUS.is_dir(), reason="the recorded corpus lies beside the project, not in it"
    ),
]
PAIRS = [
    (source, target) for source in dialects.NAMES for target in dialects.NAMES if source != target
]


def recorded(source: str) -> list[tuple[str, dict[str, Any]]]:
    """Ids and bodies; code assist's are Gemini's in its envelope."""
    of = "gemini" if source == "code-assist" else source
    found = [(r["id"], r["request"]) for r in harness.rows(of) if isinstance(r["request"], dict)]
    if source == "code-assist":
        return [(key, {"model": "gemini-2.5-pro", "request": body}) for key, body in found]
    return found


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_a_request_in_another_format_is_accepted_paired_and_honest(
    source: str, target: str, counted: Callable[[str], None]
) -> None:
    counts: Counter[str] = Counter()
    wrong: dict[str, list[str]] = {}
    codec = dialects.get(target)
    for key, body in recorded(source):
        request = audit.prepared(source, json.dumps(body).encode(), target)
        encoded = codec.encode_request(request)
        counts["requests"] += 1
        counts["losses"] += len(encoded.losses)
        found = audit.unreported(request, target, encoded)
        try:
            acceptance.check(target, json.loads(encoded.http.body))
        except acceptance.Rejected as error:
            found.append(str(error)[:600])
        back = codec.decode_request(encoded.http.body, request.model)
        if not request.previous_response_id:
            found += [f"unanswered: {call}" for call in calls_without_result(back.messages)]
            found += [f"orphan: {result}" for result in _orphans(back)]
        if found:
            wrong[key] = found
    counted(
        f"requests, {source} to {target}: {counts['requests'] - len(wrong)} of "
        f"{counts['requests']} accepted, paired and honest, {counts['losses']} losses told"
    )
    assert wrong == {}


def _orphans(request: Any) -> list[ToolResult]:
    calls = {call.id for message in request.messages for call in message.calls}
    results = [result for message in request.messages for result in message.results]
    return [result for result in results if result.call_id not in calls]
