import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.wire.json_access import dump
from toolwire.wire.surrogates import PairJoiner, whole_characters, without_halves


def mended(*frames: bytes) -> list[str]:
    joiner = PairJoiner()
    return [json.loads(joiner.join(frame)) for frame in frames]


def test_two_halves_in_two_frames_are_one_character() -> None:
    assert mended(rb'"a\ud83d"', rb'"\ude00b"') == ["a", "😀b"]


def test_a_whole_pair_stays() -> None:
    assert mended(rb'"\ud83d\ude00"') == ["😀"]


def test_a_half_without_its_other_is_unknown() -> None:
    assert mended(rb'"a\ud83d"', rb'"b"', rb'"\ude00"') == ["a", "b", "\ufffd"]
    assert mended(rb'"\ud83dx"') == ["\ufffdx"]


def test_an_escaped_backslash_before_u_is_text() -> None:
    assert mended(rb'"\\ud83d"') == ["\\ud83d"]


def test_a_complete_text_keeps_its_pairs_and_marks_its_halves() -> None:
    text = rb'"\ud83d\ude00 a\ud83d" "\ude00b" "\\ud83d" "\uD83Dx"'
    assert whole_characters(text) == rb'"\ud83d\ude00 a\ufffd" "\ufffdb" "\\ud83d" "\ufffdx"'


@given(st.text(st.sampled_from('a\\"u😀é\ud83d\ude00'), max_size=12))
def test_repaired_text_is_always_whole(text: str) -> None:
    frame = json.dumps(text).encode()
    joiner = PairJoiner()
    found = json.loads(joiner.join(frame))
    found.encode()


@pytest.mark.parametrize("value", ["\ud83d", ["x\ude00"], {"k\ud83d": "v"}])
def test_values_with_halves_can_be_written(value: object) -> None:
    assert "\ufffd" in dump(value)
    assert without_halves(value) == json.loads(dump(value))
