"""Responses servers that bend the format: each stream is read for what it means."""

from typing import Any

import pytest

from tests.torture.summary import IS_A, IS_B, A, B, Json, Summary, called, read, sse

NAME = "openai-responses"


def event(kind: str, /, **members: Any) -> Json:
    return {"type": f"response.{kind}", **members}


def call(number: int, name: str = "f", arguments: Any = "", **members: Any) -> Json:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    return {"type": "function_call", **ids, "name": name, "arguments": arguments, **members}


def message(number: int, text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": content}


def added(item: Json, place: int | None = 0) -> Json:
    return event("output_item.added", item=item, **_at(place))


def done(item: Json, place: int | None = 0) -> Json:
    return event("output_item.done", item=item, **_at(place))


def argued(number: int, delta: Any, place: int | None = 0) -> Json:
    at = {"item_id": f"fc_{number}", **_at(place)}
    return event("function_call_arguments.delta", delta=delta, **at)


def says(number: int, delta: str, place: int | None = 0) -> Json:
    return event("output_text.delta", item_id=f"msg_{number}", delta=delta, **_at(place))


def completed(*output: Json) -> Json:
    return event("completed", response={"status": "completed", "output": list(output)})


def incomplete(reason: str | None, *output: Json) -> Json:
    details = {"reason": reason} if reason else None
    response = {"status": "incomplete", "incomplete_details": details, "output": list(output)}
    return event("incomplete", response=response)


def _at(place: int | None) -> Json:
    return {} if place is None else {"output_index": place}


BOTH_AT_0 = (
    added(call(0)),
    added(call(1, "g")),
    argued(0, '{"p":'),
    argued(1, '{"p":'),
    argued(1, '"b"}'),
    argued(0, '"a"}'),
)
BOTH = called(("call_0", "f", IS_A), ("call_1", "g", IS_B))


@pytest.mark.parametrize(
    "ends",
    [
        (completed(),),
        (done(call(0, "f", A)), done(call(1, "g", B)), completed()),
        (done(call(1, "g", B)), done(call(0, "f", A)), completed()),
        (completed(call(0, "f", A), call(1, "g", B)),),
    ],
)
def test_open_items_at_one_place_are_distinguished_by_their_ids(ends: tuple[Json, ...]) -> None:
    assert read(NAME, sse(*BOTH_AT_0, *ends))[0] == BOTH


def test_items_at_one_place_stay_apart_in_a_broken_stream() -> None:
    told, _ = read(NAME, sse(*BOTH_AT_0))
    assert [(*one[:2], one[3]) for one in told.calls] == [
        ("call_0", "f", "incomplete"),
        ("call_1", "g", "incomplete"),
    ]


@pytest.mark.parametrize(
    "frames",
    [
        (added(message(0, "")), says(0, "hi"), done(message(0, "hi"), None)),
        (added(message(0, ""), None), says(0, "hi", None), done(message(0, "hi"), None)),
        (event("output_text.delta", delta="hi"),),
        (says(0, "hi", 1),),
    ],
)
def test_words_are_reported_once_though_places_are_missing(frames: tuple[Json, ...]) -> None:
    told, _ = read(NAME, sse(*frames, completed(message(0, "hi"))))
    assert told == Summary("hi", stop="end")


def test_the_end_of_a_call_without_a_place_is_the_end_of_that_call() -> None:
    frames = (added(call(0)), argued(0, A), done(call(0, "f", A), None), completed())
    assert read(NAME, sse(*frames))[0] == called(("call_0", "f", IS_A))


def test_an_event_may_be_named_by_its_frame_only() -> None:
    body = (
        b'event: response.output_text.delta\ndata: {"output_index":0,"delta":"hi"}\n\n'
        b'event: response.completed\ndata: {"response":{"status":"completed","output":[]}}\n\n'
    )
    assert read(NAME, body)[0] == Summary("hi", stop="end")


@pytest.mark.parametrize("status", [{}, {"status": "in_progress"}, {"status": "incomplete"}])
def test_the_last_call_of_an_incomplete_response_is_incomplete(status: Json) -> None:
    cut = call(0, "f", '{"p":', **status)
    wanted = Summary("", (("call_0", "f", '{"p":', "incomplete"),), "length")
    frames = (added(call(0)), argued(0, '{"p":'), incomplete("max_output_tokens", cut))
    assert read(NAME, sse(*frames))[0] == wanted
    assert read(NAME, frames[-1]["response"], whole=True)[0] == wanted


def test_an_incomplete_response_that_gives_no_reason_was_cut() -> None:
    assert read(NAME, sse(says(0, "a"), incomplete(None)))[0] == Summary("a", stop="length")


def test_a_broken_stream_reports_what_the_server_had_finished() -> None:
    finished = event("function_call_arguments.done", output_index=0, arguments=A)
    told, _ = read(NAME, sse(added(call(0)), finished))
    wanted = (("call_0", "f", IS_A, "incomplete"),)
    assert told == Summary("", wanted, None, "incomplete_stream")
    text = event("output_text.done", output_index=0, content_index=0, text="hi")
    assert read(NAME, sse(text))[0] == Summary("hi", (), None, "incomplete_stream")
    assert read(NAME, sse(text, completed()))[0] == Summary("hi", stop="end")


def test_arguments_may_come_with_the_beginning_of_a_call() -> None:
    whole = added(call(0, "f", A))
    assert read(NAME, sse(whole, completed()))[0] == called(("call_0", "f", IS_A))
    assert read(NAME, sse(whole, argued(0, A), completed()))[0] == called(("call_0", "f", IS_A))


def test_arguments_may_be_an_object() -> None:
    finished = event("function_call_arguments.done", output_index=0, arguments=IS_A)
    for frame in (argued(0, IS_A), finished):
        body = sse(added(call(0)), frame, completed())
        assert read(NAME, body)[0] == called(("call_0", "f", IS_A))


def test_items_that_are_not_objects_are_passed_over() -> None:
    body = {"status": "completed", "output": [None, 5, message(0, "a")]}
    assert read(NAME, body, whole=True)[0] == Summary("a", stop="end")


def test_a_whole_response_that_repeats_its_input_is_read_where_a_stream_was_asked_for() -> None:
    body = {"object": "response", "status": "completed", "input": [], "text": {"format": {}}}
    assert read(NAME, {**body, "output": [message(0, "a")]})[0] == Summary("a", stop="end")
