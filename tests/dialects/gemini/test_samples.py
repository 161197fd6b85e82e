"""The streams of tests/wire/gemini and the events beside them."""

from pathlib import Path

import msgspec
import pytest

from tests.dialects.gemini.speaking import collected, decode_bytes, encode_bytes, reading
from toolwire.dialects.gemini import DIALECT
from toolwire.events import Finished, ModelEvent, Notice

SAMPLES = sorted((Path(__file__).parents[2] / "wire" / "gemini").glob("*.sse"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_says_what_stands_beside_it(path: Path) -> None:
    wanted = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=list[ModelEvent])
    assert decode_bytes([path.read_bytes()]) == wanted


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_written_again_says_the_same(path: Path) -> None:
    events = [e for e in decode_bytes([path.read_bytes()]) if not isinstance(e, Notice)]
    last = events[-1]
    assert isinstance(last, Finished)
    told = [*events[:-1], msgspec.structs.replace(last, model=last.model or "m")]
    assert decode_bytes([encode_bytes(events)]) == told


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_written_whole_says_the_same_message(path: Path) -> None:
    events = decode_bytes([path.read_bytes()])
    last = events[-1]
    assert isinstance(last, Finished)
    whole = DIALECT.encode_whole(collected(events), last, last.model, lambda: "x")
    read = list(DIALECT.decode_whole(whole, reading()))
    assert collected(read) == collected(events)
    assert read[-1] == last
