"""The streams of tests/wire/gemini and the events beside them."""

from pathlib import Path

import msgspec
import pytest

from tests.dialects.gemini.exchange import collected, decode_bytes, encode_bytes, options
from toolwire.dialects.gemini import DIALECT
from toolwire.events import Finished, ModelEvent, Notice

SAMPLES = sorted((Path(__file__).parents[2] / "wire" / "gemini").glob("*.sse"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_decodes_into_the_expected_events(path: Path) -> None:
    wanted = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=list[ModelEvent])
    assert decode_bytes([path.read_bytes()]) == wanted


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_written_again_decodes_alike(path: Path) -> None:
    events = [e for e in decode_bytes([path.read_bytes()]) if not isinstance(e, Notice)]
    last = events[-1]
    assert isinstance(last, Finished)
    expected = [*events[:-1], msgspec.structs.replace(last, model=last.model or "m")]
    assert decode_bytes([encode_bytes(events)]) == expected


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_written_whole_has_the_same_message(path: Path) -> None:
    events = decode_bytes([path.read_bytes()])
    last = events[-1]
    assert isinstance(last, Finished)
    whole = DIALECT.encode_whole(collected(events), last, last.model, lambda: "x")
    read = list(DIALECT.decode_whole(whole, options()))
    assert collected(read) == collected(events)
    assert read[-1] == last
