import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolwire.wire.repair import LARGEST_REPAIR, Parsed, parse_arguments


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ('{"a": [1, 2.5, null, "x"]}', {"a": [1, 2.5, None, "x"]}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ('{"n": 12345678901234567890123}', {"n": 12345678901234567890123}),
    ],
)
def test_valid_arguments_are_exact(text: str, value: dict[str, Any]):
    parsed = parse_arguments(text)
    assert parsed == Parsed(value)
    assert parsed.exact


@pytest.mark.parametrize(
    ("text", "value", "changes"),
    [
        ('{"a": 1,}', {"a": 1}, ("removed a trailing comma (at character 8)",)),
        (
            "{'a': True, 'b': None}",
            {"a": True, "b": None},
            (
                "changed other quotes to double quotes (2 times, first at character 1)",
                "replaced Python's True, False or None (2 times, first at character 6)",
            ),
        ),
        (
            "{'it': 'it\\'s \"x\"'}",
            {"it": 'it\'s "x"'},
            ("changed other quotes to double quotes (2 times, first at character 1)",),
        ),
        (
            "{“a”: “b”}",
            {"a": "b"},
            ("changed other quotes to double quotes (2 times, first at character 1)",),
        ),
        ("{a: 1}", {"a": 1}, ("quoted a key (at character 1)",)),
        ('{"a": yes}', {"a": "yes"}, ("quoted a bare word (at character 6)",)),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, ("added a missing comma (at character 8)",)),
        ('{"a": "b" // c\n}', {"a": "b"}, ("removed a comment (at character 10)",)),
        (
            '{"a": NaN}',
            {"a": None},
            ("replaced NaN, which JSON has not, by null (at character 6)",),
        ),
        ('{"a": 0x1F}', {"a": 31}, ("rewrote a hexadecimal number (at character 6)",)),
        ('{"a": +1}', {"a": 1}, ("rewrote a number (at character 6)",)),
        (
            '{"a": "x\ny"}',
            {"a": "x\ny"},
            ("escaped line breaks or control characters in a string (at character 6)",),
        ),
        (
            '{"path": "C:\\Users\\dir"}',
            {"path": "C:\\Users\\dir"},
            ("kept a backslash that escapes nothing (2 times, first at character 9)",),
        ),
        (
            '{"a": "\\ud83d!"}',
            {"a": "\ufffd!"},
            ("replaced half of a surrogate pair (at character 6)",),
        ),
        (
            '{"a": "\ud83d"}',
            {"a": "\ufffd"},
            ("replaced half of a surrogate pair (at character 6)",),
        ),
        ('```json\n{"a":1}\n```', {"a": 1}, ("removed a code fence",)),
        ("```\n{a:1}\n```", {"a": 1}, ("removed a code fence", "quoted a key (at character 5)")),
        (
            'Sure: {"a":1} ok',
            {"a": 1},
            ("removed text before the object: 'Sure:'", "removed text after the object: 'ok'"),
        ),
        ('{"a": 1}}', {"a": 1}, ("removed text after the object: '}'",)),
        ('"{\\"a\\": 1}"', {"a": 1}, ("unwrapped a JSON string that held the object",)),
        ("null", {}, ("read null as no arguments",)),
    ],
)
def test_a_repair_says_what_it_changed_and_where(
    text: str, value: dict[str, Any], changes: tuple[str, ...]
):
    parsed = parse_arguments(text)
    assert (parsed.value, parsed.changes, parsed.truncated) == (value, changes, False)
    assert not parsed.exact


@pytest.mark.parametrize(
    ("text", "value", "change"),
    [
        ('{"a": "hel', {"a": "hel"}, "closed an open string (at character 6)"),
        ('{"a": "hel\\', {"a": "hel"}, "closed an open string (at character 6)"),
        ('{"a": [1, 2', {"a": [1]}, "dropped an unfinished value (at character 10)"),
        ('{"a": [1, 2,', {"a": [1, 2]}, "closed an open bracket (2 times, first at character 12)"),
        ('{"a": 1, "b', {"a": 1}, "dropped an unfinished key (at character 9)"),
        ('{"a": 1, "b"', {"a": 1}, "dropped a member without a value (at character 12)"),
        ('{"a": 1, "b":', {"a": 1}, "dropped a member without a value (at character 13)"),
        ('{"a": tru', {}, "dropped an unfinished value (at character 6)"),
        ("{", {}, "closed an open bracket (at character 1)"),
    ],
)
def test_cut_text_is_called_cut_and_its_last_number_is_not_guessed(
    text: str, value: dict[str, Any], change: str
):
    parsed = parse_arguments(text)
    assert (parsed.value, parsed.truncated, parsed.exact) == (value, True, False)
    assert parsed.changes[0] == f"the text stops in the middle, after {len(text)} characters"
    assert change in parsed.changes


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('[{"a": 1}]', "arguments are a JSON array, not an object"),
        ("3", "arguments are a JSON number, not an object"),
        ("true", "arguments are a JSON boolean, not an object"),
        ('"hello"', "arguments are a JSON string, not an object"),
        ('{"a":1}{"b":2}', "several objects are glued together"),
        ('{"a":1}\n{a:2}', "several objects are glued together"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_an_object_has_no_value(text: str, error: str):
    assert parse_arguments(text) == Parsed(None, error=error)


@pytest.mark.parametrize("text", ['{"a": "say "hi" now"}', '{"a": "x\\x41" "y": [1 "z"}'])
def test_text_out_of_order_is_not_guessed_at(text: str):
    parsed = parse_arguments(text)
    assert parsed.value is None
    assert parsed.error.endswith("; the text is too disordered to repair")


def test_text_beyond_the_limit_is_not_repaired():
    parsed = parse_arguments('{"a": "' + "x" * LARGEST_REPAIR + '",}')
    assert parsed.value is None
    assert parsed.error.endswith(f"and only {LARGEST_REPAIR} are repaired")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 500_000,
        '{"a": "' + '\\"' * 200_000,
        "{'a': '" + 'x"' * 200_000,
        "{" + "/*" * 300_000,
        "{" + " " * 900_000 + "x",
        "{" + "a " * 20_000,
        "{" + '"a"' * 12_000,
        '{"a":"' + "\\" * 400_001,
        '{"a": "say "hi" now", ' * 2_000,
        '{"a":[{"b" 1,' * 3_500,
        '```{"a"' * 20_000,
        '{"' + "a'" * 20_000,
    ],
)
def test_hostile_text_is_answered_soon(text: str):
    start = time.process_time()
    parse_arguments(text)
    assert time.process_time() - start < 4


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=4), JSON, max_size=4)


@settings(max_examples=100)
@given(OBJECTS, st.booleans())
def test_json_text_is_always_exact(value: dict[str, Any], ascii_only: bool):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert parse_arguments(text) == Parsed(json.loads(text))


@settings(max_examples=120)
@given(OBJECTS, st.floats(0, 1))
def test_the_beginning_of_json_is_never_exact_and_always_called_cut(
    value: dict[str, Any], share: float
):
    text = json.dumps(value)
    cut = text[: int(share * len(text))]
    if not cut:
        return
    parsed = parse_arguments(cut)
    if cut == text:
        assert parsed.exact
    else:
        assert (parsed.truncated, parsed.exact, parsed.value is None) == (True, False, False)


@settings(max_examples=500)
@given(st.text(st.sampled_from("{}[]\",:\\u'ad8 1-.tTN`/*#\n“”\ud83d"), max_size=40) | st.text())
@example('{"a": 1e999}')
def test_no_text_makes_it_raise_and_values_can_be_sent_on(text: str):
    parsed = parse_arguments(text)
    assert (parsed.value is None) <= bool(parsed.error)
    if parsed.value is not None:
        msgspec.json.encode(parsed.value)
    if parsed.exact and text.strip():
        assert json.loads(text) == parsed.value
