"""Anthropic servers that bend the format: each stream is read for what it means."""

from typing import Any

from tests.torture.summary import IS_A, IS_B, A, B, Json, Summary, called, read, sse

NAME = "anthropic-messages"
START = {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}
STOP = {"type": "message_stop"}


def begin(id: str, input: Any = None, name: str = "f", index: int = 0) -> Json:
    block = {"type": "tool_use", "id": id, "name": name, "input": input or {}}
    return {"type": "content_block_start", "index": index, "content_block": block}


def more(piece: Any, index: int = 0) -> Json:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def end(index: int = 0) -> Json:
    return {"type": "content_block_stop", "index": index}


def stopped(word: str = "tool_use") -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": word}, "usage": {}}


def test_input_may_come_as_an_object() -> None:
    body = sse(START, begin("t"), more(IS_A), end(), stopped(), STOP)
    assert read(NAME, body)[0] == called(("t", "f", IS_A))


def test_calls_at_one_index_whose_ends_are_missing_are_whole() -> None:
    body = sse(START, begin("t"), more(A), begin("u", name="g"), more(B), end(), stopped(), STOP)
    assert read(NAME, body)[0] == called(("t", "f", IS_A), ("u", "g", IS_B))


def test_a_block_that_begins_twice_is_one() -> None:
    body = sse(START, begin("t"), begin("t"), more(A), end(), stopped(), STOP)
    assert read(NAME, body)[0] == called(("t", "f", IS_A))


def test_a_call_whose_end_was_seen_is_whole_though_the_stream_broke() -> None:
    told, _ = read(NAME, sse(START, begin("t"), more(A), end()))
    assert told == Summary("", (("t", "f", IS_A, "complete"),), None, "incomplete_stream")


def test_a_call_that_may_have_been_cut_is_incomplete_when_the_stream_broke() -> None:
    told, _ = read(NAME, sse(START, begin("t"), more('{"p"'), end()))
    assert told == Summary("", (("t", "f", '{"p"', "incomplete"),), None, "incomplete_stream")
    told, _ = read(NAME, sse(START, begin("t"), end()))
    assert told == Summary("", (("t", "f", {}, "incomplete"),), None, "incomplete_stream")


def test_a_broken_stream_reports_the_input_that_came_with_the_start() -> None:
    told, _ = read(NAME, sse(START, begin("t", IS_A)))
    assert told == Summary("", (("t", "f", IS_A, "incomplete"),), None, "incomplete_stream")


def test_content_may_be_a_string_and_hold_things_that_are_not_blocks() -> None:
    body = {"type": "message", "stop_reason": "end_turn"}
    assert read(NAME, {**body, "content": "hi"}, whole=True)[0] == Summary("hi", stop="end")
    blocks = [None, 5, {"type": "text", "text": "hi"}]
    assert read(NAME, {**body, "content": blocks}, whole=True)[0] == Summary("hi", stop="end")
