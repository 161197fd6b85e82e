import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolwire.wire.partial import DEEPEST, EXACT, LAG, PartialJson


def views(*pieces: str) -> list[Any]:
    partial = PartialJson()
    seen = []
    for piece in pieces:
        partial.feed(piece)
        seen.append(json.loads(json.dumps(partial.value)))
    return seen


def is_prefix(early: Any, late: Any) -> bool:
    match early, late:
        case str(), str():
            return late.startswith(early)
        case list(), list():
            return len(early) <= len(late) and all(map(is_prefix, early, late))
        case dict(), dict():
            return list(early) == list(late)[: len(early)] and all(
                is_prefix(early[key], late[key]) for key in early
            )
        case _:
            return early == late and type(early) is type(late)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=12)
    | st.sampled_from(["😀", "\\u0041", "\\", '"', "\ud83d", "\ude00\ud83d", "\n\t\x00", "a" * 50]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=120)
@given(
    value=st.dictionaries(st.text(max_size=4), JSON, max_size=4),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
    cuts=st.lists(st.integers(0, 400), max_size=12) | st.none(),
)
def test_views_grow_to_the_value_wherever_the_text_is_cut(
    value: dict[str, Any], ascii_only: bool, indent: int | None, cuts: list[int] | None
):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    places = range(len(text)) if cuts is None else sorted(cut for cut in cuts if cut < len(text))
    partial = PartialJson()
    final = json.loads(text)
    start = 0
    for end in [*places, len(text)]:
        partial.feed(text[start:end])
        start = end
        assert partial.value is None or is_prefix(partial.value, final)
    assert (partial.value, partial.broken, partial.complete) == (final, False, True)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -2.5e3, true, null, "\\ud83d\\ude00\\n\t"], "a": {}}',
        "[" * DEEPEST + "]" * DEEPEST,
        "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1),
        "[%s]" % ("1" * EXACT),
        "[%s]" % ("1" * (EXACT + 1)),
        "[NaN]",
        "[-Infinity]",
        '{"a": 1} {}',
        '["\\x"]',
        "[01]",
        "}",
    ],
)
def test_a_text_no_one_looked_at_reads_as_if_someone_had(text: str):
    watched, unwatched = PartialJson(), PartialJson()
    for char in text:
        watched.feed(char)
        unwatched.feed(char)
        _ = watched.value
    assert (unwatched.complete, unwatched.broken) == (watched.complete, watched.broken)
    if watched.complete:
        assert unwatched.value == watched.value == json.loads(text, strict=False)


@settings(max_examples=120)
@given(st.lists(st.text(st.sampled_from('{}[]",:\\u0dD8e1-.tn \n'), max_size=6), max_size=12))
def test_no_text_makes_it_raise_and_what_is_json_is_never_called_broken(pieces: list[str]):
    partial = PartialJson()
    for piece in pieces:
        partial.feed(piece)
        _ = partial.value
        partial.exact()
    try:
        whole = json.loads("".join(pieces))
    except ValueError:
        return
    assert not partial.broken
    if isinstance(whole, dict | list | str):
        assert partial.value == whole


def test_strings_grow_and_keys_and_numbers_appear_whole():
    assert views('{"na', 'me": ', '"Bo', 'b", "n": 1', "2", ', "ok": tr', "ue}") == [
        {},
        {},
        {"name": "Bo"},
        {"name": "Bob"},
        {"name": "Bob"},
        {"name": "Bob", "n": 12},
        {"name": "Bob", "n": 12, "ok": True},
    ]


def test_an_escape_cut_anywhere_is_never_shown_half():
    assert views('{"a":"x\\', "n\\u00", 'e9\\ud83d"')[:2] == [{"a": "x"}, {"a": "x\n"}]
    assert views('{"a":"\\uD83D', "\\uDE", '00"}') == [{"a": ""}, {"a": ""}, {"a": "😀"}]


def test_a_lone_surrogate_is_read_as_json_reads_it():
    partial = PartialJson()
    for piece in ('{"a":"\\ud83d', 'x"}'):
        partial.feed(piece)
    assert partial.value == {"a": "\ud83dx"}


def test_an_escaped_backslash_before_u_is_not_an_escape():
    assert views('{"a":"\\\\ud83d', '"}') == [{"a": "\\ud83d"}, {"a": "\\ud83d"}]


@pytest.mark.parametrize(
    "text",
    [
        *("{,", "}", '{"a" 1', '{"a":1 2', "[1,,", '{"a":tru,', "{a", '"\\x', '"\\u00g', "[01,"),
        *("{}} x", "[" * (DEEPEST + 1), "[" + "1" * 5000 + ","),
    ],
)
def test_broken_text_is_said_to_be_broken_and_keeps_its_view(text: str):
    partial = PartialJson()
    for piece in ('{"done": "yes", "next": ', text, '"more"'):
        partial.feed(piece)
    assert partial.broken
    assert partial.value["done"] == "yes"
    assert not partial.complete


def test_raw_line_breaks_inside_strings_are_shown():
    assert views('{"a": "one\ntwo', '"}') == [{"a": "one\ntwo"}, {"a": "one\ntwo"}]


def test_a_long_open_string_lags_by_no_more_than_promised_and_exact_shows_all():
    partial = PartialJson()
    partial.feed('{"text": "')
    for length in range(1, 5 * EXACT):
        partial.feed("x")
        shown = len(partial.value["text"])
        assert shown == length if length <= EXACT else length - shown <= shown * LAG
    assert partial.exact() == {"text": "x" * (5 * EXACT - 1)}


def cost(kilobytes: int) -> float:
    """CPU per piece of 50 characters, with a look at the view after each."""
    pieces = ["line of code\\n and some more text, \\u00e9 and so on   "] * (kilobytes * 20)
    best = 1e9
    for _ in range(5):
        partial = PartialJson()
        partial.feed('{"content": "')
        start = time.process_time()
        for piece in pieces:
            partial.feed(piece)
            _ = partial.value
        best = min(best, time.process_time() - start)
    return best / len(pieces)


@pytest.mark.slow
def test_a_piece_costs_the_same_early_and_late():
    assert cost(400) < 2.5 * cost(10)
