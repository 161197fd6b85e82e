"""What stays in the history of odd Gemini streams, as gemini-cli's captures show it."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import captures
from tests.captures import ABSENT, PRESENT, Stage
from toolwire import providers
from toolwire.agent.approval import Policy
from toolwire.agent.events import TurnEnd, TurnEnded
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.turn import run_turn
from toolwire.app.workspace_facts import locations_of
from toolwire.client.http.transport import Incoming, Outgoing
from toolwire.client.model import connect
from toolwire.client.reask import with_reask
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.policy.engine import rule
from toolwire.policy.ruling import Terms
from toolwire.request import ModelRequest
from toolwire.tools.registry import builtins
from toolwire.tools.spec import ToolContext

DONE = [{"candidates": [{"content": {"parts": [{"text": "Done."}]}, "finishReason": "STOP"}]}]
Chunks = Any
"""A list of chunks, or a refusal: its status and its body."""


class Line:
    """A server that answers with one capture's streams, then is done; keeps what it was sent."""

    def __init__(self, *turns: Chunks) -> None:
        self._turns = [*turns]
        self.contents: list[Any] = []

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        self.contents.append(json.loads(request.body)["contents"])
        turn = self._turns.pop(0) if self._turns else DONE
        if isinstance(turn, dict):
            body = _stream([turn["body"]], "{}")
            yield Incoming(status=turn["status"], headers={}, chunks=body)
            return
        yield Incoming(
            status=200, headers={"content-type": "text/event-stream"}, chunks=_stream(turn)
        )


async def _stream(chunks: Chunks, form: str = "data: {}\n\n") -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield form.format(json.dumps(chunk)).encode()


async def _at_once(seconds: float) -> None:
    del seconds


async def _key(fresh: bool) -> tuple[tuple[str, str], ...]:
    del fresh
    return ()


def _policy(context: ToolContext) -> Policy:
    terms = Terms(locations=locations_of(context.workspace, {}), mode=Mode.YOLO, headless=True)
    return lambda call, effect, places, arguments: rule(
        call.name, effect, map(str, places), arguments, terms
    )


def worked(line: Line, stage: Stage) -> tuple[ModelRequest, TurnEnded]:
    """A turn on `go`: the conversation after it, and how it ended."""
    model = connect(
        providers.get("google"),
        "gemini-2.5-pro",
        transport=line,
        credential=_key,
        sleep=_at_once,
    )
    tools, context = builtins(), stage.context()
    request = ModelRequest(
        model="gemini-2.5-pro",
        messages=(Message(role="user", parts=(Text("go"),)),),
        tools=tuple(tool.spec for tool in tools),
    )
    scheduler = Scheduler(tools, context=context, policy=_policy(context))
    seen: list[tuple[Message, ...]] = []
    turn = run_turn(
        request,
        model=with_reask(model),
        scheduler=scheduler,
        changed=seen.append,
        sleep=_at_once,
    )
    ended = asyncio.run(turn)
    return msgspec.structs.replace(request, messages=seen[-1] if seen else request.messages), ended


def tail(line: Line, stage: Stage, number: int = 1) -> Any:
    """What a later request added to the first."""
    return captures.normal(stage.blank(line.contents[number][len(line.contents[0]) :]))


def chunk(*parts: Any, finish: str = "", **more: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **more}


def called(name: str, path: str, **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"absolute_path": path}, **more}}


@pytest.mark.skipif(not PRESENT, reason=ABSENT)
@pytest.mark.parametrize("version", ["0.5.5", "0.6.1"])
@pytest.mark.parametrize(
    "name", ["no_call_id", "parallel_reads", "thought_signature_parallel_first_only"]
)
def test_a_turn_sends_back_what_the_capture_sends_back(version: str, name: str, tmp_path: Path):
    capture = captures.load(version, name)
    stage = captures.build(capture, tmp_path)
    line = Line(*stage.fill(capture.turns))
    _, end = worked(line, stage)
    assert end.reason is TurnEnd.DONE
    assert tail(line, stage) == captures.normal(capture.expected)


@pytest.mark.skipif(not PRESENT, reason=ABSENT)
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("empty_stream_retry", "ok now"),
        ("no_finish_reason_retry", "whole"),
        ("http_429_then_ok", ""),
        ("http_503_then_ok", ""),
    ],
)
def test_a_failed_stream_leaves_nothing_in_the_history(name: str, answer: str, tmp_path: Path):
    capture = captures.load("0.6.1", name)
    stage = captures.build(capture, tmp_path)
    line = Line(*capture.turns)
    request, end = worked(line, stage)
    assert end.reason is TurnEnd.DONE
    assert len(line.contents) == len(capture.data["main_request_times"]) == 2
    assert line.contents[0] == line.contents[1]
    assert [message.role for message in request.messages] == ["user", "assistant"]
    assert request.messages[1].text == (answer or capture.data["stdout"].strip())


@pytest.mark.skipif(not PRESENT, reason=ABSENT)
def test_an_answer_blocked_again_and_again_ends_the_turn_and_says_so(tmp_path: Path):
    capture = captures.load("0.6.1", "finish_safety")
    stage = captures.build(capture, tmp_path)
    line = Line(*capture.turns * 3)
    _, end = worked(line, stage)
    assert end.reason is TurnEnd.CONTENT_FILTER
    assert line.contents == [line.contents[0]] * 3


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    for folder in (stage.workspace, stage.home):
        folder.mkdir(parents=True)
    (stage.workspace / "a.txt").write_text("AAA\n")
    return stage


def read_a(stage: Stage, **more: Any) -> dict[str, Any]:
    return called("read_file", str(stage.workspace / "a.txt"), **more)


ANSWER = {
    "role": "user",
    "parts": [
        {"functionResponse": {"id": "p1", "name": "read_file", "response": {"output": "AAA\n"}}}
    ],
}


def said_back(stage: Stage, *chunks: Any) -> list[Any]:
    """The model's parts as the next request sends them; the answer behind them is checked."""
    line = Line([*chunks])
    worked(line, stage)
    content, answer = tail(line, stage)
    assert answer == ANSWER
    assert content["role"] == "model"
    return content["parts"]


CALL = {
    "functionCall": {
        "name": "read_file",
        "args": {"absolute_path": "${WORKSPACE}/a.txt"},
        "id": "p1",
    }
}


def test_thoughts_are_not_sent_back_and_a_call_in_their_chunk_is_not_lost(stage: Stage):
    thought = {"text": "**Look** I read it.", "thought": True}
    parts = said_back(stage, chunk(thought, read_a(stage, id="p1"), finish="STOP"))
    assert parts == [CALL]


def test_a_seal_comes_back_with_its_call(stage: Stage):
    sealed = {**read_a(stage, id="p1"), "thoughtSignature": "c2ln"}
    parts = said_back(stage, chunk({"text": "hm", "thought": True}), chunk(sealed, finish="STOP"))
    assert parts == [{**CALL, "thoughtSignature": "c2ln"}]


def test_pieces_of_a_text_come_back_as_one(stage: Stage):
    parts = said_back(
        stage,
        chunk({"text": "I re"}),
        chunk({"text": "ad"}, {"text": " it."}),
        chunk(read_a(stage, id="p1"), finish="STOP"),
    )
    assert parts == [{"text": "I read it."}, CALL]


@pytest.mark.parametrize("nothing", [{"text": ""}, {}])
def test_empty_parts_never_come_back(nothing: dict[str, str], stage: Stage):
    parts = said_back(
        stage,
        chunk(nothing),
        chunk(read_a(stage, id="p1")),
        chunk(nothing, finish="STOP"),
    )
    assert parts == [CALL]


def test_chunks_without_content_never_come_back(stage: Stage):
    parts = said_back(
        stage,
        {"usageMetadata": {"promptTokenCount": 1}},
        {"candidates": [{"index": 0}]},
        chunk(read_a(stage, id="p1")),
        {"candidates": [{"index": 0, "finishReason": "STOP"}]},
    )
    assert parts == [CALL]


def test_the_servers_own_copy_of_the_history_is_not_taken_into_ours(stage: Stage):
    copy = [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [CALL]}]
    parts = said_back(
        stage,
        chunk(read_a(stage, id="p1"), automaticFunctionCallingHistory=copy),
        chunk({"text": ""}, finish="STOP", automaticFunctionCallingHistory=copy),
    )
    assert parts == [CALL]
