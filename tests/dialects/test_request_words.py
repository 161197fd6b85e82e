"""A list or an object where a word belongs in a client's request is a typed error."""

import json
import subprocess
import sys
from typing import Any

import pytest

from toolwire import dialects
from toolwire.errors import BadInput

Json = dict[str, Any]
USER = {"role": "user", "content": "Hi"}
ODD = [["high"], {"a": 1}, [], {}, 7, True]


def called(**members: object) -> Json:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, **members}
    return {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}


def result(**members: object) -> Json:
    return {"messages": [{"role": "tool", "content": "x", **members}]}


CHAT: dict[str, Any] = {
    "model": lambda odd: {"model": odd},
    "reasoning_effort": lambda odd: {"reasoning_effort": odd},
    "reasoning.effort": lambda odd: {"reasoning": {"effort": odd}},
    "tool_choice.type": lambda odd: {"tool_choice": {"type": odd, "function": {"name": "f"}}},
    "response_format.type": lambda odd: {"response_format": {"type": odd}},
    "tools[0].type": lambda odd: {"tools": [{"type": odd, "function": {"name": "f"}}]},
    "messages[0].role": lambda odd: {"messages": [{"role": odd, "content": "Hi"}]},
    "messages[0].content[0].type": lambda odd: {
        "messages": [{"role": "user", "content": [{"type": odd, "text": "Hi"}]}]
    },
    "messages[0].tool_calls[0].type": lambda odd: called(type=odd),
    "messages[0].tool_calls[0].id": lambda odd: called(id=odd),
    "messages[0].tool_calls[0].function.name": lambda odd: called(function={"name": odd}),
    "messages[0].tool_call_id": lambda odd: result(tool_call_id=odd),
    "messages[0].name": lambda odd: result(name=odd),
}
RESPONSES: dict[str, Any] = {
    "model": lambda odd: {"model": odd},
    "reasoning.effort": lambda odd: {"reasoning": {"effort": odd}},
    "reasoning.summary": lambda odd: {"reasoning": {"summary": odd}},
    "tool_choice.type": lambda odd: {"tool_choice": {"type": odd, "name": "f"}},
    "text.format.type": lambda odd: {"text": {"format": {"type": odd}}},
    "tools[0].type": lambda odd: {"tools": [{"type": odd, "name": "f"}]},
    "input[0].type": lambda odd: {"input": [{"type": odd, **USER}]},
    "input[0].role": lambda odd: {"input": [{"type": "message", "role": odd, "content": "Hi"}]},
    "input[0].content[0].type": lambda odd: {
        "input": [{"role": "user", "content": [{"type": odd, "text": "Hi"}]}]
    },
    "input[0].call_id": lambda odd: {"input": [{"type": "function_call_output", "call_id": odd}]},
    "input[0].name": lambda odd: {"input": [{"type": "function_call", "name": odd}]},
}
CASES = [
    *(("openai-chat", path) for path in CHAT),
    *(("openai-responses", path) for path in RESPONSES),
]


def body(dialect: str, path: str, odd: object) -> Json:
    if dialect == "openai-chat":
        return {"model": "m", "messages": [USER], **CHAT[path](odd)}
    return {"model": "m", "input": "Hi", **RESPONSES[path](odd)}


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
@pytest.mark.parametrize(("dialect", "path"), CASES)
def test_what_is_not_a_word_is_named_by_its_path(dialect: str, path: str, odd: object) -> None:
    with pytest.raises(BadInput) as caught:
        dialects.get(dialect).decode_request(json.dumps(body(dialect, path, odd)).encode())
    assert str(caught.value).startswith(f"{path}: expected a string")


@pytest.mark.parametrize(("dialect", "path"), CASES)
def test_null_is_an_absent_word(dialect: str, path: str) -> None:
    if path != "messages[0].role":
        dialects.get(dialect).decode_request(json.dumps(body(dialect, path, None)).encode())


def test_a_batch_goes_on_after_such_a_request() -> None:
    lines: list[str] = []
    for number, (dialect, path) in enumerate(CASES):
        for id_, odd in ((f"{number} odd", ["x"]), (f"{number} good", None)):
            request = body(dialect, path, odd) if odd else body(dialect, "model", "m")
            line = {"id": id_, "from": dialect, "to": "gemini", "request": request}
            lines.append(json.dumps(line))
    run = subprocess.run(
        [sys.executable, "-m", "toolwire", "convert", "--jsonl"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [json.loads(line)["id"] for line in lines]
    for answer in answers:
        assert ("error" in answer) == answer["id"].endswith("odd")
        assert ("request" in answer) == answer["id"].endswith("good")


@pytest.mark.parametrize("depth", [100, 400, 900, 3000])
@pytest.mark.parametrize(("dialect", "path"), CASES)
def test_deep_values_are_read_or_refused(dialect: str, path: str, depth: int) -> None:
    deep = "[" * depth + "]" * depth
    text = json.dumps(body(dialect, path, "DEEP")).replace('"DEEP"', deep)
    with pytest.raises(BadInput):
        dialects.get(dialect).decode_request(text.encode())
