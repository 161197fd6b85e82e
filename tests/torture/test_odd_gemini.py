"""Gemini servers that bend the format, with and without Code Assist's envelope."""

from typing import Any

import pytest

from tests.torture.summary import IS_A, IS_B, Json, Summary, called, read, sse

USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 6}


def chunk(*parts: Json, finish: str | None = None, **members: Any) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **members}


def call(name: str | None = None, value: str | None = None, **members: Any) -> Json:
    """A call or a piece of one; `value` is more of the string `p`."""
    made: Json = {} if name is None else {"name": name}
    if value is not None:
        made["partialArgs"] = [{"jsonPath": "$.p", "stringValue": value, "willContinue": True}]
    return {"functionCall": {**made, **members}}


OPEN: Json = {"willContinue": True}
END = chunk(finish="STOP")


@pytest.fixture(params=["gemini", "code-assist"])
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


def told(dialect: str, *chunks: Json) -> tuple[Summary, Json]:
    enveloped = dialect == "code-assist"
    return read(dialect, sse(*({"response": one} if enveloped else one for one in chunks)))


@pytest.mark.parametrize(
    "pieces",
    [
        (call("f", **OPEN), call("f", "a", **OPEN), call("f", "", **OPEN), call("f")),
        (call("f", id="x", **OPEN), call("f", "a", id="x", **OPEN), call("f", "", id="x")),
        (call("f", id="x", **OPEN), call(None, "a", id="x", **OPEN), call(id="x")),
    ],
)
def test_a_growing_call_may_repeat_its_name_and_id(dialect: str, pieces: tuple[Json, ...]) -> None:
    calls = told(dialect, *map(chunk, pieces), END)[0].calls
    assert [one[1:] for one in calls] == [("f", IS_A, "complete")]


def test_growing_calls_may_interleave(dialect: str) -> None:
    chunks = (
        chunk(call("f", id="x", **OPEN), call("g", id="y", **OPEN)),
        chunk(call(None, "a", id="x"), call(None, "b", id="y")),
        END,
    )
    assert told(dialect, *chunks)[0] == called(("x", "f", IS_A), ("y", "g", IS_B))


def test_a_broken_stream_emits_the_pieces_of_an_unfinished_call(dialect: str) -> None:
    answer, _ = told(dialect, chunk(call("f", id="x", **OPEN)), chunk(call(None, "a", **OPEN)))
    assert answer == Summary("", (("x", "f", IS_A, "incomplete"),), None, "incomplete_stream")


def test_arguments_may_be_text(dialect: str) -> None:
    answer, _ = told(dialect, chunk(call("f", id="x", args='{"p":"a"}'), finish="STOP"))
    assert answer == called(("x", "f", IS_A))


def test_usage_is_never_overwritten_by_null(dialect: str) -> None:
    first = chunk({"text": "a"}, finish="STOP", usageMetadata=USAGE)
    _, said = told(dialect, first, chunk(usageMetadata=None))
    assert (said["usage"]["input"], said["usage"]["output"]) == (5, 6)


def test_the_first_candidate_is_the_one_with_index_0(dialect: str) -> None:
    other = {"index": 1, "content": {"parts": [{"text": "z"}]}}
    first = {"index": 0, "content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}
    assert told(dialect, {"candidates": [other, first]})[0] == Summary("a", stop="end")
