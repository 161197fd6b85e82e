"""SIGKILL while answers stream: what a client saw end is in the memory after a restart."""

import asyncio
import contextlib
import json
import signal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.fakes.simulated import LONGEST, Place, Simulated
from tests.gateway.served import serving
from toolwire.simulator import Call, Fault, Question, Reply, Think

CONVERSATIONS = 200
_KILLED_AFTER = 60
"""Answers that have ended when the gateway is killed."""


def thought(question: Question) -> Reply:
    """A signed thought and a call; half of the answers take long."""
    slow = question.number % 2 and question.number < CONVERSATIONS
    fault = Fault(wait_each=0.2 if slow else 0.002)
    pieces = (Think(f"thought {question.number}"), Call.of("read", path=f"{question.number}.txt"))
    return Reply(pieces=pieces, delta=4, fault=fault)


def body(messages: list[dict[str, Any]]) -> bytes:
    tool = {"name": "read", "parameters": {"type": "object", "properties": {}}}
    tools = [{"type": "function", "function": tool}]
    return json.dumps({"model": "m", "stream": True, "messages": messages, "tools": tools}).encode()


async def asked(origin: str, messages: list[dict[str, Any]]) -> tuple[int, dict[str, Any] | None]:
    """The status, and the answer if its end mark arrived."""
    address = urlsplit(origin)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    data = body(messages)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {address.netloc}\r\nconnection: close\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    try:
        answer = (await asyncio.wait_for(reader.read(), LONGEST)).decode()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    status = int(answer.split(" ", 2)[1]) if answer else 0
    if "data: [DONE]" not in answer:
        return status, None
    call: dict[str, Any] = {"name": "", "arguments": ""}
    call_id = ""
    for line in answer.splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:])["choices"]:
                for delta in choice["delta"].get("tool_calls", ()):
                    call_id = delta.get("id", call_id)
                    for name, value in delta.get("function", {}).items():
                        call[name] += value
    entry = {"id": call_id, "type": "function", "function": call}
    return status, {"role": "assistant", "content": None, "tool_calls": [entry]}


async def begun(origin: str, kill: Any) -> list[list[dict[str, Any]]]:
    """Holds all conversations; those whose answer ended before the gateway was killed."""
    ended: list[list[dict[str, Any]]] = []

    async def one(number: int) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": f"go {number}"}]
        try:
            _, answer = await asked(origin, messages)
        except OSError:
            return
        if answer is not None:
            result = {"role": "tool", "content": "x"}
            result["tool_call_id"] = answer["tool_calls"][0]["id"]
            ended.append([*messages, answer, result])
            if len(ended) == _KILLED_AFTER:
                kill()

    async with asyncio.TaskGroup() as group:
        for number in range(CONVERSATIONS):
            group.create_task(one(number))
    return ended


@pytest.mark.slow
def test_no_seal_of_an_answer_that_ended_is_lost_by_sigkill(tmp_path: Path):
    place = Place(tmp_path)
    with Simulated(thought) as upstream:
        words = ("--upstream", upstream.upstream("anthropic-messages", model="claude-sonnet-4-5"))
        with serving(place, words) as (origin, process, _):
            ended = asyncio.run(begun(origin, lambda: process.send_signal(signal.SIGKILL)))
            assert process.wait(LONGEST) == -signal.SIGKILL
        assert _KILLED_AFTER <= len(ended) < CONVERSATIONS
        with serving(place, words) as (origin, _, printed):

            async def continued() -> list[int]:
                return [(await asked(origin, messages))[0] for messages in ended]

            statuses = asyncio.run(continued())
        # The simulator refuses a call without the signed thinking that it was sent with.
        assert statuses == [200] * len(ended), printed
        assert upstream.refusals == []
