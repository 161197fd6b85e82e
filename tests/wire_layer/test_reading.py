import pytest

from toolwire.errors import BadInput
from toolwire.wire import reading


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
        reading.parse(body, "the body")


def test_json_comes_back_compact():
    assert reading.dump(reading.parse('{"a" : [1, 2.0, "é", null]}', "it")) == (
        '{"a":[1,2.0,"é",null]}'
    )


def test_null_counts_as_nothing():
    assert (reading.seq(None, "x"), reading.text(None, "x")) == ([], "")
    assert (reading.number(None, "x"), reading.integer(None, "x"), reading.flag(None, "x")) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (reading.obj, [], "a.b: expected an object, got a list"),
        (reading.obj, None, "a.b: expected an object, got null"),
        (reading.seq, {}, "a.b: expected a list, got an object"),
        (reading.seq, "x", "a.b: expected a list, got a string"),
        (reading.text, 1, "a.b: expected a string, got a number"),
        (reading.number, True, "a.b: expected a number, got a boolean"),
        (reading.integer, 1.5, "a.b: expected a whole number, got 1.5"),
        (reading.flag, 1, "a.b: expected true or false, got a number"),
    ],
)
def test_another_type_is_named_with_its_place(read, value: object, message: str):
    with pytest.raises(BadInput) as caught:
        read(value, "a.b")
    assert str(caught.value) == message


def test_a_whole_number_may_be_written_as_a_float():
    assert reading.integer(2.0, "x") == 2
