"""The streams of tests/wire/anthropic and the events beside them."""

from pathlib import Path

import msgspec
import pytest

from tests.dialects.anthropic.exchange import collected, decode_bytes, encode_bytes, reading
from toolwire.dialects.anthropic import DIALECT
from toolwire.events import Finished, ModelEvent

SAMPLES = sorted((Path(__file__).parents[2] / "wire" / "anthropic").glob("*.sse"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_says_what_stands_beside_it(path: Path) -> None:
    wanted = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=list[ModelEvent])
    assert decode_bytes([path.read_bytes()]) == wanted


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_written_again_says_the_same_message(path: Path) -> None:
    events = decode_bytes([path.read_bytes()])
    assert collected(decode_bytes([encode_bytes(events)])) == collected(events)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_written_whole_says_the_same_message(path: Path) -> None:
    if path.stem == "cut_by_length":
        pytest.skip("half a call has no whole form")
    events = decode_bytes([path.read_bytes()])
    last = events[-1]
    assert isinstance(last, Finished)
    whole = DIALECT.encode_whole(collected(events), last, last.model, lambda: "x")
    again = list(DIALECT.decode_whole(whole, reading()))
    assert collected(again) == collected(events)
    end = again[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.usage) == (last.reason, last.usage)
