import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHAT = (
    b'data: {"choices":[{"index":0,"delta":{"content":"Hi. "}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a",'
    b'"function":{"name":"read","arguments":"{\\"path\\":\\"a\\"}"}}]}}]}\n\n'
)
CHAT_END = (
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],'
    b'"usage":{"prompt_tokens":7,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}}}'
    b"\n\ndata: [DONE]\n\n"
)
READ_A = {
    "id": "call_a",
    "name": "read",
    "arguments": {"path": "a"},
    "raw": '{"path":"a"}',
    "status": "complete",
}


def run(*args: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = Path(sys.executable).with_name("toolwire")
    return subprocess.run([str(program), *args], input=stdin, capture_output=True, timeout=60)


def printed(*args: str, stdin: bytes = b"") -> Any:
    done = run(*args, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_version_and_help_say_what_this_is() -> None:
    assert run("--version").stdout.startswith(b"toolwire ")
    shown = run("--help").stdout.decode()
    assert all(word in shown for word in ("decode", "convert", "schema"))


def test_decode_prints_the_contract_object() -> None:
    said = printed("decode", "openai-chat", stdin=CHAT + CHAT_END)
    assert {key: said[key] for key in ("text", "reasoning", "tool_calls", "stop_reason")} == {
        "text": "Hi. ",
        "reasoning": "",
        "tool_calls": [READ_A],
        "stop_reason": "tool_calls",
    }
    assert said["usage"]["input"] == 7
    assert said["usage"]["cached"] == 2
    assert said["error"] is None


def test_decode_of_a_broken_stream_gives_what_was_read_and_an_error() -> None:
    said = printed("decode", "openai-chat", stdin=CHAT)
    assert said["text"] == "Hi. "
    assert said["tool_calls"] == [{**READ_A, "status": "incomplete"}]
    assert said["stop_reason"] is None
    assert said["error"]["kind"] == "incomplete_stream"


def test_decode_whole_reads_one_json_body() -> None:
    body = {"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]}
    said = printed("decode", "openai-chat", "--whole", stdin=json.dumps(body).encode())
    assert (said["text"], said["stop_reason"]) == ("ok", "end")


@pytest.mark.parametrize("stdin", [b"", b"hello", b"<html>502 Bad Gateway</html>"])
def test_decode_of_no_such_body_leaves_with_1_and_says_so(stdin: bytes) -> None:
    done = run("decode", "openai-chat", stdin=stdin)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"not a valid openai-chat response" in done.stderr


def test_an_unknown_dialect_is_wrong_usage_and_the_nearest_is_named() -> None:
    done = run("decode", "openai-chatt", stdin=b"{}")
    assert done.returncode == 2
    assert b'did you mean "openai-chat"?' in done.stderr


def test_decode_jsonl_answers_in_order_and_goes_on_after_bad_lines() -> None:
    import base64

    lines = [
        {"id": 1, "dialect": "openai-chat", "body": (CHAT + CHAT_END).decode()},
        {"id": 2, "dialect": "nope", "body": "x"},
        {"id": 3, "dialect": "openai-chat"},
        {
            "id": "four",
            "dialect": "openai-chat",
            "body_b64": base64.b64encode(CHAT + CHAT_END).decode(),
        },
    ]
    stdin = "\n".join([*map(json.dumps, lines), "not json", ""]).encode()
    answers = [
        json.loads(line) for line in run("decode", "--jsonl", stdin=stdin).stdout.splitlines()
    ]
    assert [answer["id"] for answer in answers] == [1, 2, 3, "four", None]
    assert answers[0]["tool_calls"] == answers[3]["tool_calls"] == [READ_A]
    assert all(answer["error"] for answer in (answers[1], answers[2], answers[4]))


def test_convert_translates_and_reports_what_is_lost() -> None:
    body = {
        "model": "gpt",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "seed": 7,
    }
    done = printed(
        "convert", "--from", "openai-chat", "--to", "anthropic-messages", "--model", "claude-x",
        stdin=json.dumps(body).encode(),
    )  # fmt: skip
    assert done["request"]["model"] == "claude-x"
    assert "Be brief." in json.dumps(done["request"]["system"])
    assert "seed" in [loss["path"] for loss in done["losses"]]


def test_convert_jsonl_takes_the_formats_from_each_line() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    lines = [
        {"id": 1, "from": "openai-chat", "to": "openai-chat", "request": request},
        {"id": 2, "from": "openai-chat", "to": "gemini", "request": request},
        {"id": 3, "from": "openai-chat", "to": "gemini", "request": []},
    ]
    stdin = "\n".join(map(json.dumps, lines)).encode()
    answers = [
        json.loads(line) for line in run("convert", "--jsonl", stdin=stdin).stdout.splitlines()
    ]
    assert answers[0]["request"] == request
    assert answers[1]["request"]["contents"] == [{"role": "user", "parts": [{"text": "Hi"}]}]
    assert set(answers[2]) == {"id", "error"}


def test_convert_of_a_body_that_is_not_a_request_fails_and_names_the_place() -> None:
    stdin = b'{"model":"m","messages":"hello"}'
    done = run("convert", "--from", "openai-chat", "--to", "gemini", stdin=stdin)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"messages" in done.stderr


def test_schema_fits_a_format_and_reports_what_was_weakened() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"], "const": "x"}}}
    done = printed("schema", "--to", "gemini", stdin=json.dumps(schema).encode())
    assert set(done) == {"schema", "losses"}
    assert "const" not in json.dumps(done["schema"])


def test_schema_jsonl_keeps_going() -> None:
    lines = [
        {"id": 1, "to": "anthropic-messages", "schema": {"type": "object", "properties": {}}},
        {"id": 2, "schema": {}},
    ]
    stdin = "\n".join(map(json.dumps, lines)).encode()
    answers = [
        json.loads(line) for line in run("schema", "--jsonl", stdin=stdin).stdout.splitlines()
    ]
    assert answers[0]["schema"]["type"] == "object"
    assert "error" in answers[1]


def test_a_strict_schema_is_said_to_be_one_only_where_it_is() -> None:
    closed = b'{"type":"object","properties":{},"additionalProperties":false}'
    said = printed("schema", "--to", "openai-chat", "--strict", stdin=closed)
    assert (said["strict"], said["losses"]) == (True, [])
    said = printed("schema", "--to", "openai-chat", "--strict", stdin=b'{"type":"object"}')
    assert (said["strict"], [loss["path"] for loss in said["losses"]]) == (False, ["$"])


def test_half_a_character_does_not_cost_a_line_its_id() -> None:
    line = rb'{"id":1,"from":"openai-chat","to":"gemini","request":{"model":"m","messages":'
    said = printed("convert", "--jsonl", stdin=line + rb'[{"role":"user","content":"\ud83d"}]}}')
    assert (said["id"], said["request"]["contents"][0]["parts"]) == (1, [{"text": "\ufffd"}])
