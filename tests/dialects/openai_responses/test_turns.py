"""Texts whose end differs from their deltas, and messages that stream in turns."""

from itertools import permutations

import pytest

from tests.dialects.openai_responses.exchange import (
    COMPLETED,
    Json,
    added,
    collected,
    decode,
    delta,
    done,
    encode,
    finished,
    kept,
    seal,
    sse_bytes,
)
from toolwire.codec import read_answer
from toolwire.events import Notice, RefusalDelta, StopReason, TextDelta, TextEnded
from toolwire.messages import Refusal, Text, ToolCall

STREAMED = "Docker has been installed successfully."
FINAL = "Docker was installed and tested in the container."
DIFFERS = Notice("text_differs", "the final text differs from the streamed one and is used")
CALL: Json = {"type": "function_call", "call_id": "c", "name": "f"}


def text(index: int, piece: str, part: int = 0) -> Json:
    return delta("output_text", index, piece, content_index=part)


def ended(index: int, kind: str, **members: object) -> Json:
    body = {"type": f"response.{kind}.done", "output_index": index, "content_index": 0}
    return body | members


def message(index: int, *texts: str, **members: object) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return done(index, type="message", role="assistant", content=content, **members)


def test_a_final_text_that_begins_otherwise_is_the_text():
    events = decode(text(0, STREAMED), message(0, FINAL, id="msg"), COMPLETED)
    assert events == [
        TextDelta(STREAMED),
        DIFFERS,
        TextEnded(seal(id="msg"), None, FINAL),
        finished(),
    ]
    assert collected(events).parts == (Text(FINAL, seal=seal(id="msg")),)


@pytest.mark.parametrize(
    "ends",
    [
        [ended(0, "content_part", part={"type": "output_text", "text": FINAL})],
        [message(0, FINAL)],
        [ended(0, "content_part", part={"type": "output_text", "text": FINAL}), message(0, FINAL)],
        [],
    ],
)
def test_any_end_has_the_last_word(ends: list[Json]):
    items = [message(0, FINAL)["item"]]
    last = COMPLETED | {"response": COMPLETED["response"] | {"output": items}}
    answer = read_answer("openai-responses", sse_bytes(text(0, STREAMED), *ends, last))
    assert (answer.message.text, answer.notices) == (FINAL, (DIFFERS,))


def test_the_last_word_counts_for_each_part_and_for_refusals():
    refused = {"type": "refusal", "refusal": "Never."}
    content = [{"type": "output_text", "text": "Yes.", "annotations": []}, refused]
    events = decode(
        text(0, "No."),
        ended(0, "content_part", part=content[0]),
        delta("refusal", 0, "I will not.", content_index=1),
        done(0, type="message", role="assistant", content=content),
        COMPLETED,
    )
    more = kept(**{"item.more": None})
    assert collected(events).parts == (Text("Yes.", kept=more), Refusal("Never."))
    assert events.count(DIFFERS) == 2


def test_the_last_word_of_a_broken_stream_counts_too():
    body = sse_bytes(
        text(0, STREAMED), ended(0, "content_part", part={"type": "output_text", "text": FINAL})
    )
    answer = read_answer("openai-responses", body)
    assert answer.error is not None
    assert answer.message.text == FINAL


@pytest.mark.parametrize("final", ["", "Docker has", STREAMED])
def test_a_shorter_final_text_takes_nothing_away(final: str):
    answer = read_answer(
        "openai-responses", sse_bytes(text(0, STREAMED), message(0, final), COMPLETED)
    )
    assert (answer.message.text, answer.notices) == (STREAMED, ())


def test_a_final_text_reaches_clients_of_the_same_format():
    frames = encode([TextDelta(STREAMED), DIFFERS, TextEnded(text=FINAL), finished()])
    assert [frame["text"] for frame in frames if frame["type"].endswith("text.done")] == [FINAL]
    assert frames[-1]["response"]["output"][0]["content"][0]["text"] == FINAL


def test_messages_in_turns_are_two_messages():
    events = decode(
        text(0, "one "),
        text(1, "three "),
        text(0, "two"),
        text(1, "four"),
        message(0, "one two", id="a"),
        message(1, "three four", id="b"),
        COMPLETED,
    )
    assert events == [
        TextDelta("one "),
        TextDelta("two"),
        TextEnded(seal(id="a")),
        TextDelta("three "),
        TextDelta("four"),
        TextEnded(seal(id="b")),
        finished(),
    ]


@pytest.mark.parametrize("order", sorted(set(permutations("aabbcc"))))
def test_three_messages_in_any_turns_are_whole(order: tuple[str, ...]):
    sent: list[Json] = []
    for number, letter in enumerate(order):
        again = letter in order[:number]
        sent.append(text("abc".index(letter), letter.upper() if again else letter))
    begun = sorted("abc", key=order.index)
    ends = [message("abc".index(letter), letter + letter.upper()) for letter in "abc"]
    for last in permutations(ends):
        found = collected(decode(*sent, *last, COMPLETED))
        assert found.parts == tuple(Text(letter + letter.upper()) for letter in begun)


def test_annotations_and_ends_of_parts_wait_too():
    source = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
    cited = {"type": "output_text", "text": "b", "annotations": [source]}
    events = decode(
        text(0, "a"),
        text(1, "b"),
        {
            "type": "response.output_text.annotation.added",
            "output_index": 1,
            "content_index": 0,
            "annotation": source,
        },
        ended(1, "output_text", text="b"),
        ended(1, "content_part", part=cited),
        done(1, type="message", role="assistant", content=[cited], id="second"),
        text(0, "A"),
        message(0, "aA", id="first"),
        COMPLETED,
    )
    one, two = collected(events).parts
    assert one == Text("aA", seal=seal(id="first"))
    assert isinstance(two, Text)
    assert (two.text, [found.url for found in two.citations], two.seal) == (
        "b",
        ["u"],
        seal(id="second"),
    )


def test_a_message_that_never_ends_lets_the_others_go_at_the_end():
    events = decode(text(0, "a"), text(1, "b"), text(0, "A"), COMPLETED)
    assert [part.text for part in collected(events).parts if isinstance(part, Text)] == ["aA", "b"]


def test_a_stream_that_breaks_gives_what_was_held_back():
    answer = read_answer("openai-responses", sse_bytes(text(0, "a"), text(1, "b"), text(0, "A")))
    assert answer.error is not None
    assert [part.text for part in answer.message.parts if isinstance(part, Text)] == ["aA", "b"]


def test_a_call_does_not_wait_for_a_message():
    events = decode(
        text(0, "a"),
        text(1, "b"),
        added(2, **CALL),
        done(2, **CALL, arguments="{}"),
        message(0, "a"),
        message(1, "b"),
        COMPLETED,
    )
    parts = collected(events).parts
    assert parts == (Text("a"), Text("b"), ToolCall(id="c", name="f", arguments="{}"))
    assert events[-1] == finished(StopReason.TOOL_CALLS)


def test_the_whole_list_at_the_end_adds_nothing_to_messages_in_turns():
    ends = [message(0, "aA", id="x"), message(1, "bB", id="y")]
    output = [end["item"] for end in ends]
    last = COMPLETED | {"response": COMPLETED["response"] | {"output": output}}
    turns = [text(0, "a"), text(1, "b"), text(0, "A"), text(1, "B")]
    wanted = (Text("aA", seal=seal(id="x")), Text("bB", seal=seal(id="y")))
    for some in ([], ends[:1], ends[1:], ends, ends[::-1]):
        assert collected(decode(*turns, *some, last)).parts == wanted


def test_a_refusal_waits_too():
    refused = {"type": "refusal", "refusal": "no"}
    events = decode(
        text(0, "a"),
        delta("refusal", 1, "no", content_index=0),
        text(0, "A"),
        message(0, "aA"),
        done(1, type="message", role="assistant", content=[refused]),
        COMPLETED,
    )
    assert [type(event) for event in events if not isinstance(event, TextEnded)][:3] == [
        TextDelta,
        TextDelta,
        RefusalDelta,
    ]
    assert events[-1] == finished(StopReason.REFUSAL)
