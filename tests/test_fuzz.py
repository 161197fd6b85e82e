"""Recorded streams, cut and damaged: typed errors, no hang, the same events however cut."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests import samples
from toolwire import dialects
from toolwire.collect import Collector
from toolwire.dialects import DecodeOptions
from toolwire.errors import MalformedStream, ToolwireError
from toolwire.events import UNMARKED_END, ModelEvent, Notice
from toolwire.messages import Origin
from toolwire.wire.sse import SseDecoder

DIALECTS = tuple(samples.FOLDERS)
NASTY = (
    b"null",
    b"[]",
    b"{}",
    b'""',
    b"-1",
    b"1e999",
    b"true",
    b'"\\ud800"',
    b"\xff\xfe",
    b"\x00",
    b"\n\n",
    b"\r",
    b"data: ",
    b"event: error\n",
    b"[" * 2000,
    b'{"a":' * 2000,
    b"99999999999999999999",
)


def outcome(dialect: str, chunks: list[bytes]) -> tuple[list[ModelEvent], str]:
    """The events and the error a stream ends with."""
    seen: list[ModelEvent] = []
    try:
        seen.extend(samples.events(dialect, chunks))
    except ToolwireError as error:
        return seen, type(error).__name__
    return seen, ""


def damaged(body: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(body) + 1)
    to = min(len(body), at + chance.randrange(1, 60))
    match chance.randrange(7):
        case 0:
            return body[:at]
        case 1:
            return body[:at] + body[to:]
        case 2:
            return body[:at] + body[at:to] * 2 + body[to:]
        case 3:
            return body[:at] + chance.choice(NASTY) + body[at:]
        case 4:
            return body[:at] + chance.choice(NASTY) + body[to:]
        case 5:
            return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]
        case _:
            return _value_replaced(body, chance)


def _value_replaced(body: bytes, chance: random.Random) -> bytes:
    """A JSON value of the stream becomes another kind of value."""
    colons = [
        i for i, byte in enumerate(body) if byte == 0x3A and body[i + 1 : i + 2] in b'"{[0123'
    ]
    if not colons:
        return body
    at = chance.choice(colons) + 1
    ends = [body.find(mark, at) for mark in (b",", b"}")]
    end = min((place for place in ends if place > 0), default=len(body))
    return body[:at] + chance.choice(NASTY[:8]) + body[end:]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_project_carries_samples_of_its_own(dialect: str) -> None:
    assert samples.own(dialect)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_damaged_streams_end_in_events_or_typed_errors(dialect: str) -> None:
    chance = random.Random(dialect)
    for body in samples.own(dialect) + samples.recorded(dialect, 60):
        for _ in range(40):
            broken = body
            for _ in range(chance.randrange(1, 4)):
                broken = damaged(broken, chance)
            seen, _ = outcome(dialect, samples.cut(broken, chance))
            collector = Collector()
            collector.add_all(seen)
            message = collector.message()
            ids = [call.id for call in message.calls]
            assert len(ids) == len(set(ids))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_events_do_not_depend_on_the_cuts(dialect: str) -> None:
    chance = random.Random(dialect)
    for body in samples.own(dialect) + samples.recorded(dialect, 60):
        whole = outcome(dialect, [body])
        for _ in range(4):
            assert outcome(dialect, samples.cut(body, chance)) == whole


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_fed_byte_by_byte_says_the_same(dialect: str) -> None:
    for body in samples.own(dialect):
        pieces = [body[i : i + 1] for i in range(len(body))]
        assert outcome(dialect, pieces) == outcome(dialect, [body])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_prefix_of_a_stream_is_incomplete_or_typed(dialect: str) -> None:
    for body in samples.own(dialect):
        full, _ = outcome(dialect, [body])
        for end in range(0, len(body), 7):
            seen, error = outcome(dialect, [body[:end]])
            collector = Collector()
            collector.add_all(seen)
            if not error and UNMARKED_END in [e.kind for e in seen if isinstance(e, Notice)]:
                # Cut between two frames, a Gemini stream is one that ended without its mark.
                whole = Collector()
                whole.add_all(full)
                assert whole.message().text.startswith(collector.message().text)
            elif not error:
                assert seen == full
            assert error or collector.finished is not None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_damaged_whole_bodies_and_requests_end_in_typed_errors(dialect: str) -> None:
    chance = random.Random(dialect)
    codec = dialects.get(dialect)
    for body in samples.own(dialect):
        for block in body.split(b"\n\n"):
            data = block.partition(b"data: ")[2].strip()
            for _ in range(10):
                broken = damaged(data, chance) if data else b"{"
                _quietly(lambda text=broken: list(_whole(dialect, text)))
                _quietly(lambda text=broken: codec.decode_request(text))
                codec.error(chance.choice([400, 429, 500]), {}, broken)


def _whole(dialect: str, body: bytes) -> list[ModelEvent]:
    reading = DecodeOptions(new_id=samples.counted_ids(), origin=Origin(dialect))
    return list(dialects.get(dialect).decode_whole(body, reading))


def _quietly(action: Callable[[], object]) -> None:
    with suppress(ToolwireError):
        action()


@pytest.mark.parametrize("start", [b"data: ", b'{"a":"'])
def test_a_frame_without_end_is_refused_before_it_fills_the_memory(start: bytes) -> None:
    decoder = SseDecoder(max_frame=1000)
    decoder.feed(start)
    pieces = [b"x" * 50] * 100
    with pytest.raises(MalformedStream):
        list(map(decoder.feed, pieces))
