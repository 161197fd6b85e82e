"""Chat servers that bend the format: each stream is read for what it means."""

from typing import Any

import pytest

from tests.torture.summary import IS_A, IS_B, A, B, Json, Summary, called, read, sse

NAME = "openai-chat"


def chunk(finish: Any = None, /, **delta: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(index: Any = None, id: Any = None, name: Any = None, arguments: Any = None) -> Json:
    given = {"index": index, "id": id}
    function = {"name": name, "arguments": arguments}
    return {
        **{key: value for key, value in given.items() if value is not None},
        "function": {key: value for key, value in function.items() if value is not None},
    }


def calling(*pieces: Json, finish: str = "tool_calls") -> bytes:
    return sse(*(chunk(tool_calls=[one]) for one in pieces), chunk(finish), "[DONE]")


def test_names_in_pieces_may_interleave() -> None:
    body = calling(
        piece(0, "x", "get_"),
        piece(1, "y", "put_"),
        piece(0, None, "a"),
        piece(1, None, "b"),
        piece(0, None, None, A),
        piece(1, None, None, B),
    )
    assert read(NAME, body)[0] == called(("x", "get_a", IS_A), ("y", "put_b", IS_B))


def test_a_finish_reason_with_every_piece_ends_no_call_early() -> None:
    body = sse(
        chunk("tool_calls", tool_calls=[piece(0, "x", "f", "")]),
        chunk("tool_calls", tool_calls=[piece(0, None, None, A)]),
        "[DONE]",
    )
    assert read(NAME, body)[0] == called(("x", "f", IS_A))


def test_two_names_in_one_list_are_two_calls_though_nothing_else_distinguishes_them() -> None:
    both = [piece(None, None, "f", ""), piece(None, None, "g", "")]
    body = sse(chunk("tool_calls", tool_calls=both), "[DONE]")
    assert read(NAME, body)[0] == called(("made", "f", {}), ("made", "g", {}))


@pytest.mark.parametrize("finish", ["content_filter", "error"])
def test_a_call_cut_by_anything_but_the_model_is_incomplete(finish: str) -> None:
    told, _ = read(NAME, calling(piece(0, "x", "f", '{"p"'), finish=finish))
    assert told == Summary("", (("x", "f", '{"p"', "incomplete"),), finish)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (piece(None, "", "f", ""), piece(None, "", "g", "")),
        (piece(None, None, "f", ""), piece(None, None, "f", "")),
        (piece(None, None, "f", "{bad"), piece(None, None, "f", A)),
        (piece(0, "x", "f", ""), piece(0, "x", "g", A)),
    ],
)
def test_each_entry_of_a_whole_message_is_a_call(first: Json, second: Json) -> None:
    message = {"tool_calls": [first, second]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    for whole in (True, False):
        told, _ = read(NAME, body, whole=whole)
        assert [call[1] for call in told.calls] == [
            first["function"]["name"],
            second["function"]["name"],
        ]
        assert told.calls[1][2] == (IS_A if second["function"]["arguments"] else {})


@pytest.mark.parametrize(
    ("odd", "wanted"),
    [
        (piece(0, 7, "f", A), ("7", "f", IS_A, "complete")),
        (piece("0", "x", "f", A), ("x", "f", IS_A, "complete")),
        (piece(0, "x", "f", 5), ("x", "f", "5", "invalid")),
        (piece(0, "x", "f", True), ("x", "f", "true", "invalid")),
    ],
)
def test_members_of_another_type_are_understood(odd: Json, wanted: tuple[Any, ...]) -> None:
    assert read(NAME, calling(odd))[0].calls == (wanted,)


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": [{"index": 0, "delta": None, "message": None}]},
        chunk(refusal=False, annotations={}, audio=[], reasoning_content=[]),
        chunk(tool_calls=[None]),
        {**chunk(), "usage": [], "id": 5, "model": 6},
    ],
)
def test_members_that_say_nothing_readable_are_passed_over(odd: Json) -> None:
    assert read(NAME, sse(odd, chunk("stop", content="a")))[0] == Summary("a", stop="end")


def test_one_call_may_stand_where_a_list_should() -> None:
    body = sse(chunk(tool_calls=piece(0, "x", "f", A)), chunk("tool_calls"))
    assert read(NAME, body)[0] == called(("x", "f", IS_A))


def test_frames_need_no_blank_line_between_them() -> None:
    body = sse(chunk(content="a"), chunk("stop", content="b"), "[DONE]").replace(b"\n\n", b"\n")
    assert read(NAME, body)[0] == Summary("ab", stop="end")


def test_usage_is_read_beside_the_finish_reason_and_never_overwritten_by_nothing() -> None:
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 9, "completion_tokens": 1, "cached_tokens": 4}
    last = {"choices": [], "usage": {}}
    _, said = read(NAME, sse({"choices": [{**choice, "usage": usage}]}, last))
    counts = {"input": 9, "output": 1, "cached": 4, "reasoning": None, "cache_write": None}
    assert said["usage"] == counts


def test_the_first_choice_is_the_one_with_index_0() -> None:
    choices = [
        {"index": 1, "message": {"content": "b"}, "finish_reason": "stop"},
        {"index": 0, "message": {"content": "a"}, "finish_reason": "length"},
    ]
    assert read(NAME, {"choices": choices}, whole=True)[0] == Summary("a", stop="length")


def test_a_body_that_was_not_streamed_may_bring_an_empty_delta() -> None:
    choice = {"delta": {"content": ""}, "message": {"content": "a"}, "finish_reason": "stop"}
    assert read(NAME, {"choices": [{"index": 0, **choice}]})[0] == Summary("a", stop="end")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "no", "type": "invalid_request_error", "code": None}, "bad_request"),
        (
            {"message": "no", "type": "invalid_request_error", "code": "model_not_found"},
            "not_found",
        ),
        ({"message": "long", "type": "too_many_prompt_tokens", "code": 400}, "context_too_long"),
    ],
)
def test_an_error_without_a_status_reports_its_kind_by_its_code(error: Json, kind: str) -> None:
    assert read(NAME, {"error": error}, whole=True)[0].error == kind


@pytest.mark.parametrize("error", ["boom", {"message": "boom"}])
def test_groq_reports_errors_in_its_own_member(error: Any) -> None:
    told, said = read(NAME, sse(chunk(content="a"), {**chunk(), "x_groq": {"error": error}}))
    assert (told.text, said["error"]["message"]) == ("a", "boom")
