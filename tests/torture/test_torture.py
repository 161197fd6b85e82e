import pytest

from tests.torture.rendering import RENDERERS
from tests.torture.scenarios import SCENARIOS, Scenario
from toolwire.cli.decode import described
from toolwire.codec import read_answer

CASES = [
    pytest.param(dialect, scenario, id=f"{dialect}: {scenario.name}")
    for dialect in RENDERERS
    for scenario in SCENARIOS
    if dialect not in scenario.not_in
]


@pytest.mark.parametrize(("dialect", "scenario"), CASES)
@pytest.mark.parametrize("cut", ["whole", "byte by byte"])
def test_every_call_comes_out_as_it_was_meant(dialect: str, scenario: Scenario, cut: str) -> None:
    body = b"".join(RENDERERS[dialect](scenario))
    if cut == "whole":
        answer = read_answer(dialect, body)
    else:
        answer = read_answer(dialect, iter([body[i : i + 1] for i in range(len(body))]))
    said = described(answer)
    calls = said["tool_calls"]
    got = [(call["name"], call["status"]) for call in calls]
    assert got == [(wanted.name, wanted.status) for wanted in scenario.wanted]
    for call, wanted in zip(calls, scenario.wanted, strict=True):
        if wanted.status != "incomplete":
            assert call["arguments"] == wanted.arguments
        if wanted.id is not None:
            assert call["id"] == wanted.id
    assert len({call["id"] for call in calls}) == len(calls)
    assert said["text"] == scenario.text
    ends = {"broken": None, "length": "length"}
    assert said["stop_reason"] == ends.get(scenario.end, "tool_calls")
    assert (said["error"] is None) == (scenario.end != "broken")
