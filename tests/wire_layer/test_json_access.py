import pytest

from toolwire.errors import BadInput
from toolwire.wire import json_access


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON: Input data was truncated"),
        (b"{", "the body is not JSON"),
        (b'"\xff"', "the body is not JSON"),
        (b'"\\ud800"', "the body is not JSON"),
        ('"\ud800"', "the body is not JSON"),
        (b"[" * 100_000, "the body is nested too deeply"),
    ],
)
def test_a_body_that_cannot_be_read_is_bad_input(body: bytes | str, message: str):
    with pytest.raises(BadInput, match=message):
        json_access.parse(body, "the body")


def test_json_comes_back_compact():
    assert json_access.dump(json_access.parse('{"a" : [1, 2.0, "é", null]}', "it")) == (
        '{"a":[1,2.0,"é",null]}'
    )


def test_null_counts_as_nothing():
    assert (json_access.seq(None, "x"), json_access.text(None, "x")) == ([], "")
    assert (
        json_access.number(None, "x"),
        json_access.integer(None, "x"),
        json_access.flag(None, "x"),
    ) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (json_access.obj, [], "a.b: expected an object, got a list"),
        (json_access.obj, None, "a.b: expected an object, got null"),
        (json_access.seq, {}, "a.b: expected a list, got an object"),
        (json_access.seq, "x", "a.b: expected a list, got a string"),
        (json_access.text, 1, "a.b: expected a string, got a number"),
        (json_access.number, True, "a.b: expected a number, got a boolean"),
        (json_access.integer, 1.5, "a.b: expected a whole number, got 1.5"),
        (json_access.flag, 1, "a.b: expected true or false, got a number"),
    ],
)
def test_another_type_is_named_with_its_place(read, value: object, message: str):
    with pytest.raises(BadInput) as caught:
        read(value, "a.b")
    assert str(caught.value) == message


def test_a_whole_number_may_be_written_as_a_float():
    assert json_access.integer(2.0, "x") == 2
