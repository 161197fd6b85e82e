"""`toolwire decode`: exit codes, and lines of many."""

import base64
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from toolwire.cli.decode import decode_command as command
from toolwire.dialects import NAMES

CHAT = "openai-chat"
HELLO = {"choices": [{"index": 0, "message": {"content": "hello"}, "finish_reason": "stop"}]}
FIRST_FRAMES = {
    "openai-chat": {"choices": [{"index": 0, "delta": {"role": "assistant"}}]},
    "openai-responses": {"type": "response.created", "response": {"status": "in_progress"}},
    "anthropic-messages": {"type": "message_start", "message": {"content": []}},
    "gemini": {"candidates": [{"content": {"role": "model"}}]},
    "code-assist": {"response": {"candidates": [{"content": {"role": "model"}}]}},
}


def decode(dialect: str, body: bytes, *options: str) -> Result:
    return CliRunner().invoke(command, [dialect, *options], input=body)


def lines(*given: Any) -> list[dict[str, Any]]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in given)
    done = CliRunner().invoke(command, ["--jsonl"], input=text.encode())
    assert done.exit_code == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("dialect", NAMES)
def test_a_stream_that_breaks_before_it_says_a_word_is_still_one(dialect: str) -> None:
    body = f"data: {json.dumps(FIRST_FRAMES[dialect])}\n\n".encode()
    done = decode(dialect, body)
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert (told["error"]["kind"], told["stop_reason"]) == ("incomplete_stream", None)


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("options", [[], ["--whole"]])
@pytest.mark.parametrize(
    "body",
    [b"", b"<html>502</html>", b"\x00\xff", b"5", b"[]", b'{"foo":1}', b'data: {"foo":1}\n\n'],
)
def test_a_body_of_no_such_kind_leaves_with_1(
    dialect: str, options: list[str], body: bytes
) -> None:
    done = decode(dialect, body, *options)
    assert (done.exit_code, done.stdout) == (1, "")


@pytest.mark.parametrize("dialect", NAMES)
def test_the_body_of_another_vendor_leaves_with_1(dialect: str) -> None:
    for other, frame in FIRST_FRAMES.items():
        if {dialect, other} <= {"gemini", "code-assist"} or dialect == other:
            continue
        body = f"data: {json.dumps(frame)}\n\n".encode()
        assert decode(dialect, body).exit_code == 1, other


def test_every_line_is_answered_in_order_whatever_its_id() -> None:
    body = json.dumps(HELLO)
    ids = [1, "a", None, 2.5, {"x": [1]}, [2], True]
    told = lines(*({"id": id_, "dialect": CHAT, "whole": True, "body": body} for id_ in ids))
    assert [line["id"] for line in told] == ids
    assert {line["text"] for line in told} == {"hello"}


def test_a_bad_line_is_reported_and_the_rest_go_on() -> None:
    good = {"id": "ok", "dialect": CHAT, "whole": True, "body": json.dumps(HELLO)}
    told = lines(
        good,
        "",
        "not json",
        "[1]",
        {"id": 1, "dialect": CHAT},
        {"id": 2, "body": "x"},
        {"id": 3, "dialect": "no-such", "body": "x"},
        {"id": 4, "dialect": CHAT, "body_b64": "%%%"},
        {"id": 5, "dialect": CHAT, "body": 7},
        good,
    )
    assert [(line["id"], "text" in line) for line in told] == [
        ("ok", True),
        (None, False),
        (None, False),
        (1, False),
        (2, False),
        (3, False),
        (4, False),
        (5, False),
        ("ok", True),
    ]
    assert all(set(line) == {"id", "error"} for line in told if "text" not in line)


def test_bytes_may_come_in_base64() -> None:
    frame = {"choices": [{"index": 0, "delta": {"content": "é"}, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(frame, ensure_ascii=False)}\r\n\r\n".encode()
    line = {"id": 1, "dialect": CHAT, "whole": False, "body_b64": base64.b64encode(body).decode()}
    assert lines(line)[0]["text"] == "é"


def test_half_a_surrogate_pair_in_arguments_is_read_as_the_unknown_character() -> None:
    function = {"name": "f", "arguments": '{"s":"a\\ud83d"}'}
    message = {"tool_calls": [{"id": "c", "function": function}]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    (told,) = lines({"id": 1, "dialect": CHAT, "whole": True, "body": json.dumps(body)})
    (call,) = told["tool_calls"]
    assert (call["arguments"], call["status"]) == ({"s": "a\ufffd"}, "complete")
