import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gateway import ServedGateway
from tests.gateway.test_answering import post
from toolwire.errors import BadInput
from toolwire.gateway.compaction import compaction_item, with_summaries
from toolwire.messages import Message, Origin, ServerBlock, Text
from toolwire.request import ModelRequest
from toolwire.simulator import Fault, Reply, Say

SUMMARY = Reply(pieces=(Say("thinking… <state_snapshot>the plan is X</state_snapshot>"),))
HELLO = Reply(pieces=(Say("Hello"),))
CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
INPUT: list[dict[str, Any]] = [
    {"role": "user", "content": "Do it"},
    CALL,
    RESULT,
    {"role": "user", "content": "More"},
]
TOOLS = [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}]
UPSTREAMS = ("openai-chat", "openai-responses", "anthropic-messages", "gemini")


def body(**more: Any) -> dict[str, Any]:
    return {"model": "m", "input": INPUT, "tools": TOOLS, **more}


def read_on(served: ServedGateway, items: list[Any]) -> None:
    """The conversation goes on with the item in place of its beginning."""
    asked = [*items, {"role": "user", "content": "And now?"}]
    status, _, answer = post(served, "/v1/responses", body(input=asked))
    assert status == 200, answer
    sent = json.dumps(served.bodies[-1])
    assert "the plan is X" in sent
    assert "twc1." not in sent
    assert served.simulator.refusals == []


@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_conversation_is_compacted_by_its_own_address(upstream: str, tmp_path: Path):
    with ServedGateway(upstream, [SUMMARY, HELLO], home=tmp_path) as served:
        status, _, answer = post(served, "/v1/responses/compact", body())
        assert status == 200, answer
        found = json.loads(answer)
        assert found["object"] == "response.compaction"
        assert [one.get("role", one.get("type")) for one in found["output"]] == [
            "user",
            "user",
            "compaction",
        ]
        assert found["usage"]["output_tokens"] > 0
        read_on(served, found["output"])


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_trigger_is_answered_with_one_item(upstream: str, streamed: bool, tmp_path: Path):
    asked = body(input=[*INPUT, {"type": "compaction_trigger"}], stream=streamed)
    with ServedGateway(upstream, [SUMMARY, HELLO], home=tmp_path) as served:
        status, _, answer = post(served, "/v1/responses", asked)
        assert status == 200, answer
        if streamed:
            last = [line for line in answer.split(b"\n") if line.startswith(b"data: ")][-1]
            response = json.loads(last[6:])["response"]
        else:
            response = json.loads(answer)
        assert response["status"] == "completed"
        assert [item["type"] for item in response["output"]] == ["compaction"]
        assert "compaction_trigger" not in json.dumps(served.bodies)
        read_on(served, response["output"])


def test_a_compaction_that_fails_is_an_error(tmp_path: Path):
    refused = Reply(fault=Fault(status=400, message="no"))
    with ServedGateway("openai-chat", [refused, Reply(pieces=())], home=tmp_path) as served:
        assert post(served, "/v1/responses/compact", body())[0] == 400
        assert post(served, "/v1/responses/compact", body())[0] == 502


def _request(item: dict[str, Any]) -> ModelRequest:
    block = ServerBlock(origin=Origin("openai-responses"), kind="compaction", data=json.dumps(item))
    return ModelRequest(model="m", messages=(Message(role="assistant", parts=(block,)),))


def test_items_of_others_stay_as_they_are():
    request = _request({"type": "compaction", "encrypted_content": "gAAAA"})
    assert with_summaries(request) == request


def test_an_item_reads_as_a_message_of_the_user():
    [message] = with_summaries(_request(compaction_item("the plan ✓", "cmp_1"))).messages
    assert message.role == "user"
    assert isinstance(message.parts[0], Text)
    assert message.text.endswith("the plan ✓")


@pytest.mark.parametrize("content", ["twc1.", "twc1.!!!!", "twc1.AAAA"])
def test_a_changed_item_is_refused(content: str):
    with pytest.raises(BadInput, match="compaction item"):
        with_summaries(_request({"type": "compaction", "encrypted_content": content}))
