"""The streams of tests/wire/openai_chat and the events beside them."""

import contextlib
import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.dialects.openai_chat.exchange import collected, decode_bytes, encode_bytes, options
from toolwire.dialects.openai_chat import DIALECT
from toolwire.errors import ToolwireError
from toolwire.events import Finished, ModelEvent

SAMPLES = sorted((Path(__file__).parents[2] / "wire" / "openai_chat").glob("*.sse"))
BODIES = [path.read_bytes() for path in SAMPLES]
# Whole and streamed answers to clients tell thinking in the one member most of them read.
PLAIN = [path for path in SAMPLES if "thinking" not in path.stem and "reasoning" not in path.stem]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_says_what_stands_beside_it(path: Path) -> None:
    wanted = msgspec.json.decode(path.with_suffix(".json").read_bytes(), type=list[ModelEvent])
    assert decode_bytes([path.read_bytes()]) == wanted


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_a_sample_written_again_says_the_same_message(path: Path) -> None:
    events = decode_bytes([path.read_bytes()])
    assert collected(decode_bytes([encode_bytes(events)])) == collected(events)


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_a_sample_written_whole_says_the_same_message(path: Path) -> None:
    events = decode_bytes([path.read_bytes()])
    last = events[-1]
    assert isinstance(last, Finished)
    whole = DIALECT.encode_whole(collected(events), last, last.model, lambda: "call_x")
    again = list(DIALECT.decode_whole(whole, options()))
    assert collected(again) == collected(events)
    end = again[-1]
    assert isinstance(end, Finished)
    assert (end.reason, end.usage, end.model) == (last.reason, last.usage, last.model)


@given(body=st.sampled_from(BODIES), cuts=st.lists(st.integers(0, 4000), max_size=30))
def test_events_do_not_depend_on_chunking(body: bytes, cuts: list[int]) -> None:
    places = sorted({min(cut, len(body)) for cut in cuts} | {0, len(body)})
    chunks = [body[start:end] for start, end in itertools.pairwise(places)]
    assert decode_bytes(chunks) == decode_bytes([body])


@given(
    body=st.sampled_from(BODIES),
    at=st.integers(0, 4000),
    length=st.integers(0, 40),
    instead=st.binary(max_size=12)
    | st.sampled_from([b"null", b"[]", b"{}", b"1e999", b'"\\ud800"']),
)
def test_damaged_bytes_end_in_events_or_our_own_errors(
    body: bytes, at: int, length: int, instead: bytes
) -> None:
    broken = body[:at] + instead + body[at + length :]
    with contextlib.suppress(ToolwireError):
        decode_bytes([broken])
