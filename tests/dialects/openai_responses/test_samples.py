"""The streams of tests/wire/openai_responses and the events beside them."""

from pathlib import Path

import msgspec
import pytest

from tests.dialects.openai_responses.exchange import collected, decode_bytes, options
from toolwire.dialects.openai_responses import DIALECT
from toolwire.events import Finished, ModelEvent

SAMPLES = sorted((Path(__file__).parents[2] / "wire" / "openai_responses").glob("*.sse"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_decodes_to_the_events_beside_it(path: Path) -> None:
    expected = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=list[ModelEvent])
    assert decode_bytes([path.read_bytes()]) == expected


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_encoded_whole_decodes_to_the_same_message(path: Path) -> None:
    events = decode_bytes([path.read_bytes()])
    last = events[-1]
    assert isinstance(last, Finished)
    body = DIALECT.encode_whole(collected(events), last, last.model, lambda: "x")
    again = list(DIALECT.decode_whole(body, options()))
    assert collected(again) == collected(events)
    assert isinstance(again[-1], Finished)
    assert (again[-1].reason, again[-1].detail) == (last.reason, last.detail)
