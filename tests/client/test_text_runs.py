"""Runs of text in an answer whose bytes pass are read as one event, and as the same text."""

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire import dialects
from toolwire.client.text_runs import TextRuns
from toolwire.collect import Collector
from toolwire.dialects import DecodeOptions
from toolwire.errors import ToolwireError
from toolwire.events import ModelEvent, TextDelta
from toolwire.ids import new_id
from toolwire.messages import Message, Origin
from toolwire.request import AnswerTap
from toolwire.wire.sse import Frame

words = st.lists(
    st.text(max_size=6)
    | st.sampled_from(
        ['"', "\\", '\\"', "\n", "\\n", 'a","x":"b', '"},"finish_reason":null', "😀"]
    ),
    max_size=12,
)


def chat(word: str, padding: str | None = None, **more: object) -> bytes:
    choice = {"index": 0, "delta": {"content": word}, "logprobs": None, "finish_reason": None}
    value = {"id": "c1", "model": "m", "choices": [{**choice, **more}], "usage": None}
    return dumped(value if padding is None else {**value, "obfuscation": padding})


def dumped(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def anthropic(word: str) -> bytes:
    delta = {"type": "text_delta", "text": word}
    return dumped({"type": "content_block_delta", "index": 0, "delta": delta})


def decoder(dialect: str) -> dialects.Decoder:
    origin = Origin(dialect, "maker", "m")
    return dialects.get(dialect).decoder(DecodeOptions(new_id=new_id, origin=origin))


def both(
    frames: Sequence[Frame], dialect: str = "openai-chat", size: int = 100
) -> tuple[list[ModelEvent], int]:
    """The events of a run and how many were joined, which say the same as those of each frame."""
    tap, joined, apart = AnswerTap(), list[ModelEvent](), list[ModelEvent]()
    plain = decoder(dialect)
    for frame in frames:
        apart += plain.feed(frame)
    runs = TextRuns(decoder(dialect).feed, tap)
    for at in range(0, len(frames), size):
        runs.decode(frames[at : at + size], joined)
    assert collected(joined) == collected(apart)
    assert len(joined) + tap.joined >= len(apart)
    return joined, tap.joined


def collected(events: Sequence[ModelEvent]) -> Message:
    collector = Collector()
    collector.add_all(events)
    return collector.message()


def test_words_after_the_first_are_one_event() -> None:
    frames = [Frame(chat(word, padding)) for word, padding in zip("abcde", "xyzxy", strict=True)]
    assert both(frames) == ([TextDelta("a"), TextDelta("bcde")], 3)


def test_frames_of_another_shape_are_decoded() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2}
    last = dumped({"id": "c1", "model": "m", "choices": [], "usage": usage})
    frames = [chat("a"), chat("b"), chat("c", finish_reason="stop"), chat("d"), last, b"[DONE]"]
    events, joined = both([Frame(data) for data in frames])
    assert events[:3] == [TextDelta("a"), TextDelta("b"), TextDelta("c")]
    assert joined == 0


def test_padding_with_a_further_member_is_decoded() -> None:
    more = chat("c", "p")[:-1] + b',"error":{"message":"broken"}}'
    frames = [Frame(chat("a", "p")), Frame(chat("b", "p")), Frame(more)]
    events = list[ModelEvent]()
    with pytest.raises(ToolwireError, match="broken"):
        TextRuns(decoder("openai-chat").feed, AnswerTap()).decode(frames, events)
    assert events == [TextDelta("a"), TextDelta("b")]


@given(words, st.sampled_from([chat, lambda word: chat(word, "pq"), lambda word: chat(word, '"')]))
def test_a_run_is_the_same_text(given_words: list[str], written: Callable[[str], bytes]) -> None:
    both([Frame(written(word)) for word in given_words])


@given(words)
def test_a_named_run_is_the_same_text(given_words: list[str]) -> None:
    start = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    frames = [Frame(anthropic(word), "content_block_delta") for word in given_words]
    both([Frame(dumped(start), "content_block_start"), *frames], "anthropic-messages")


@pytest.mark.parametrize("escaped", [rb"\ud83d", rb"\ude00", rb"\u00e9", rb"half \\", rb"\""])
def test_what_is_no_plain_text_is_left_to_the_decoder(escaped: bytes) -> None:
    frames = [chat("a"), chat("b"), chat("?").replace(b"?", escaped), chat("c"), chat("d")]
    for size in (1, 2, 3, 5):
        both([Frame(data) for data in frames], size=size)
