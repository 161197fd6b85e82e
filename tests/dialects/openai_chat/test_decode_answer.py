import pytest

from tests.dialects.openai_chat.exchange import (
    NAME,
    ORIGIN,
    STOP,
    call,
    decode,
    delta,
    done,
    kept,
    seal,
    thought,
)
from toolwire.dialects.quirks import Quirks
from toolwire.events import (
    CitationAdded,
    MediaAdded,
    Notice,
    RefusalDelta,
    ServerBlockAdded,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import CallKind, Citation, Media, MediaKind, ServerBlock

CALLED = done(StopReason.TOOL_CALLS)


def test_nulls_and_empty_members_say_nothing():
    first = delta(role="assistant", content=None, refusal=None, tool_calls=None, reasoning="")
    assert decode(first, delta(tool_calls=[]), delta(content=""), STOP) == [done()]


def test_a_choice_without_delta_and_an_empty_list_of_choices_say_nothing():
    bare = {"choices": [{"index": 0, "finish_reason": None}]}
    assert decode({"choices": []}, bare, {"choices": None}, STOP) == [done()]


def test_a_cumulative_message_beside_the_delta_is_not_read_twice():
    choice = {"index": 0, "delta": {"content": "b"}, "message": {"content": "ab"}}
    events = decode(delta(content="a"), {"choices": [choice]}, STOP)
    assert events == [TextDelta("a"), TextDelta("b"), done()]


def test_a_server_that_does_not_stream_is_understood():
    choice = {"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}
    assert decode({"object": "chat.completion", "choices": [choice]}) == [TextDelta("ab"), done()]


def test_only_the_first_choice_is_read_and_the_others_are_reported_once():
    other = {"choices": [{"index": 1, "delta": {"content": "x"}, "finish_reason": "stop"}]}
    notice = Notice("other_choices", "the answer has several choices; only the first is read")
    events = decode(delta(content="a"), other, other, STOP)
    assert events == [TextDelta("a"), notice, done()]


def test_arguments_may_be_an_object_or_null():
    start = delta(tool_calls=[call(id="a", name="f", arguments=None)])
    events = decode(start, delta(tool_calls=[call(arguments={"n": 1})]), delta("tool_calls"))
    assert events == [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", '{"n":1}'),
        ToolCallEnded("a"),
        CALLED,
    ]


def test_numbers_in_an_arguments_object_keep_their_spelling():
    text = (
        '{"choices":[{"index":0,"finish_reason":"stop","delta":{"tool_calls":[{"id":"a",'
        '"function":{"name":"f","arguments":{"n":1.50,"big":12345678901234567890123}}}]}}]}'
    )
    assert decode(text)[1] == ToolCallDelta("a", '{"n":1.50,"big":12345678901234567890123}')


def test_a_call_without_index_is_whole():
    whole = {"id": "x", "function": {"name": "f", "arguments": "{}"}}
    events = decode(delta("tool_calls", tool_calls=[whole]))
    assert events == [
        ToolCallStarted("x", "f"),
        ToolCallDelta("x", "{}"),
        ToolCallEnded("x"),
        CALLED,
    ]


def test_a_call_without_id_gets_one():
    events = decode(delta(tool_calls=[call(id="", name="f", arguments="")]), STOP)
    assert events == [
        ToolCallStarted("made_1", "f", made_id=True),
        ToolCallEnded("made_1"),
        CALLED,
    ]


def test_the_older_function_call_is_a_call():
    events = decode(
        delta(function_call={"name": "f", "arguments": ""}),
        delta(function_call={"arguments": '{"a"'}),
        delta(function_call={"arguments": ":1}"}),
        delta("function_call"),
    )
    assert events == [
        ToolCallStarted("made_1", "f", made_id=True),
        ToolCallDelta("made_1", '{"a":1}'),
        ToolCallEnded("made_1"),
        CALLED,
    ]


def test_a_custom_call_is_freeform():
    head = {"index": 0, "id": "c", "type": "custom", "custom": {"name": "sql", "input": ""}}
    more = {"index": 0, "custom": {"input": "SELECT 1"}}
    events = decode(delta(tool_calls=[head]), delta(tool_calls=[more]), delta("tool_calls"))
    assert events == [
        ToolCallStarted("c", "sql", CallKind.FREEFORM),
        ToolCallDelta("c", "SELECT 1"),
        ToolCallEnded("c"),
        CALLED,
    ]


def test_empty_custom_and_function_entries_of_one_call_do_not_disturb():
    empty = {"name": "", "input": ""}
    both = call(id="a", name="f", arguments="{}", custom=empty, type="function")
    nothing = delta(tool_calls=[{"custom": empty, "function": {"name": "", "arguments": ""}}])
    events = decode(delta(tool_calls=[both]), nothing, STOP)
    assert events == [
        ToolCallStarted("a", "f"),
        ToolCallDelta("a", "{}"),
        ToolCallEnded("a"),
        CALLED,
    ]


def test_a_length_stop_leaves_the_last_call_incomplete():
    events = decode(delta(tool_calls=[call(id="a", name="f", arguments='{"a"')]), delta("length"))
    assert events[-2:] == [ToolCallEnded("a", complete=False), done(StopReason.LENGTH)]


def test_a_signature_on_a_call_is_sealed_to_its_end():
    extra = {"google": {"thought_signature": "sig"}}
    signed = call(id="a", name="f", arguments="{}", extra_content=extra)
    plain = call(1, id="b", name="f", arguments="{}")
    events = decode(delta(tool_calls=[signed, plain]), STOP)
    assert events[-3:] == [
        ToolCallEnded("a", seal=seal(extra_content=extra)),
        ToolCallEnded("b"),
        CALLED,
    ]


def test_a_signature_on_the_message_is_sealed_to_its_text():
    extra = {"google": {"thought_signature": "sig"}}
    events = decode(delta(content="a"), delta(content="b", extra_content=extra), STOP)
    ended = TextEnded(seal(extra_content=extra))
    assert events == [TextDelta("a"), TextDelta("b"), ended, done()]


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
def test_reasoning_is_sealed_with_its_member(member: str):
    events = decode(delta(**{member: "a"}), delta(**{member: "b"}), delta(content="c"), STOP)
    assert events == [
        ThinkingDelta("a"),
        ThinkingDelta("b"),
        thought(**{member: "ab"}),
        TextDelta("c"),
        done(),
    ]


def test_the_same_reasoning_in_two_members_is_emitted_once():
    details = [{"type": "reasoning.text", "text": "a", "index": 0}]
    events = decode(delta(reasoning="a", reasoning_content="a", reasoning_details=details), STOP)
    sealed = thought(reasoning="a", reasoning_content="a", reasoning_details=details)
    assert events == [ThinkingDelta("a"), sealed, done()]


def test_pieces_of_reasoning_details_become_one_item_each():
    def piece(**members: object):
        return delta(reasoning_details=[{"index": 0, **members}])

    events = decode(
        piece(type="reasoning.summary", summary="a"),
        piece(type="reasoning.summary", summary="b", id="rs_1"),
        piece(type="reasoning.encrypted", data="old"),
        piece(type="reasoning.encrypted", data="new", id="rs_1"),
        STOP,
    )
    items = [
        {"index": 0, "type": "reasoning.summary", "summary": "ab", "id": "rs_1"},
        {"index": 0, "type": "reasoning.encrypted", "data": "new", "id": "rs_1"},
    ]
    assert events == [
        ThinkingDelta("a"),
        ThinkingDelta("b"),
        thought(reasoning_details=items),
        done(),
    ]


def test_encrypted_details_between_text_and_call_keep_their_place():
    encrypted = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    called = delta(reasoning_details=[encrypted], tool_calls=[call(id="a", name="f")])
    events = decode(delta(content="t"), called, STOP)
    assert events == [
        TextDelta("t"),
        thought(reasoning_details=[encrypted]),
        ToolCallStarted("a", "f"),
        ToolCallEnded("a"),
        CALLED,
    ]


def test_text_in_think_tags_is_left_alone_by_default():
    events = decode(delta(content="<think>a</think>b"), STOP)
    assert events == [TextDelta("<think>a</think>b"), done()]


def test_text_in_think_tags_is_thinking_where_the_server_is_known_for_it():
    pieces = [delta(content=piece) for piece in ("<th", "ink>a", "</thi", "nk>b <", " c")]
    events = decode(*pieces, STOP, quirks=Quirks(think_tag="think"))
    assert events == [
        ThinkingDelta("a"),
        TextDelta("b "),
        TextDelta("< c"),
        done(),
    ]


def test_what_looked_like_a_tag_comes_out_at_the_end():
    events = decode(delta(content="1 <thin"), STOP, quirks=Quirks(think_tag="think"))
    assert events == [TextDelta("1 "), TextDelta("<thin"), done()]


def test_a_refusal_is_the_reason_of_the_end():
    events = decode(delta(refusal="I "), delta(refusal="won't"), STOP)
    assert events == [RefusalDelta("I "), RefusalDelta("won't"), done(StopReason.REFUSAL)]


def test_sources_are_cited():
    source = {"url": "https://a.b", "title": "T", "start_index": 1, "end_index": 2}
    note = {"type": "url_citation", "url_citation": source}
    events = decode(delta(content="t"), delta(annotations=[note]), STOP)
    data = (
        '{"type": "url_citation", "url_citation": {"url": "https://a.b", "title": "T", '
        '"start_index": 1, "end_index": 2}}'
    )
    citation = Citation(dialect=NAME, data=data, url="https://a.b", title="T", start=1, end=2)
    assert events == [TextDelta("t"), CitationAdded(citation), done()]


def test_spoken_pieces_become_one_sound():
    events = decode(
        delta(audio={"id": "audio_1", "transcript": "He"}),
        delta(audio={"data": "AQ==", "transcript": "llo"}),
        delta(audio={"data": "Ag=="}),
        delta(audio={"expires_at": 9}),
        STOP,
    )
    media = Media(
        kind=MediaKind.AUDIO,
        base64="AQI=",
        file_id="audio_1",
        kept=kept(transcript="Hello", expires_at=9),
    )
    assert events == [MediaAdded(media), done()]


def test_a_made_image_is_media():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    events = decode(delta(images=[image]), STOP)
    media = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA", kept=kept())
    assert events == [MediaAdded(media), done()]


def test_an_unknown_content_part_is_kept_whole():
    events = decode(delta(content=[{"type": "reference", "reference_ids": [1]}, 7]), STOP)
    data = '{"type": "reference", "reference_ids": [1]}'
    assert events == [
        ServerBlockAdded(ServerBlock(origin=ORIGIN, kind="reference", data=data)),
        ServerBlockAdded(ServerBlock(origin=ORIGIN, kind="part", data="7")),
        done(),
    ]


def test_a_character_cut_between_two_frames_is_joined():
    def half(text: str) -> str:
        return '{"choices":[{"index":0,"delta":{"content":"' + text + '"}}]}'

    events = decode(half("a\\ud83d"), half("\\ude00b"), STOP)
    assert events == [TextDelta("a"), TextDelta("😀b"), done()]


def test_how_much_of_the_prompt_was_read_is_reported():
    progress = '{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}],'
    progress += '"prompt_progress":{"total":700,"cache":0,"processed":128,"time_ms":9}}'
    events = decode(progress, delta(content="a"), STOP)
    assert events == [Notice("reading", "128 of 700 tokens read"), TextDelta("a"), done()]


def test_a_progress_of_another_shape_is_not_read():
    odd = '{"choices":[{"index":0,"delta":{"content":"a"}}],"prompt_progress":"half"}'
    assert decode(odd, STOP) == [TextDelta("a"), done()]
