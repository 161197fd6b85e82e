import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.histories import SEAL, call, histories, model, result, user
from toolwire.compaction.tokens import Tally, of_message, of_part, of_text, of_tools
from toolwire.events import Usage
from toolwire.messages import Media, MediaKind, Text, Thinking
from toolwire.request import FreeformTool, ModelRequest, ServerTool, ToolSpec


def asked(*messages, **more) -> ModelRequest:
    return ModelRequest(model="m", messages=messages, **more)


def test_four_letters_are_a_token_and_a_rest_is_one():
    assert [of_text("a" * count) for count in (0, 1, 4, 5, 400)] == [0, 1, 1, 2, 100]


def test_other_scripts_weigh_by_their_bytes():
    assert of_text("日本語" * 12) == 30
    assert of_text("ab" + "ü" * 9) == 6


def test_half_a_character_can_be_weighed():
    assert of_text("\ud800") == 1


def test_an_image_weighs_the_same_however_many_bytes_it_has():
    small = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
    large = msgspec.structs.replace(small, base64="AAAA" * 100_000)
    assert of_part(small) == of_part(large)


def test_a_long_document_weighs_more_than_a_short_one():
    short = Media(kind=MediaKind.DOCUMENT, mime="application/pdf", base64="AAAA")
    long = msgspec.structs.replace(short, base64="AAAA" * 100_000)
    assert of_part(long) > 5 * of_part(short)


def test_a_seal_is_weighed_with_its_thinking():
    assert of_part(Thinking("hm", SEAL)) == of_part(Thinking("hm")) + of_text(SEAL.data)


def test_every_kind_of_tool_is_weighed():
    spec = ToolSpec(name="add", description="adds", parameters={"type": "object"})
    freeform = FreeformTool(name="patch", grammar="start: x")
    server = ServerTool(dialect="gemini", kind="googleSearch", data='{"googleSearch":{}}')
    assert of_tools((spec, freeform, server)) == sum(
        of_tools((one,)) for one in (spec, freeform, server)
    )
    assert of_tools((spec,)) > of_text("addadds")


def test_a_request_weighs_its_instructions_its_tools_and_its_messages():
    spec = ToolSpec(name="add", description="adds")
    request = asked(user("hi"), system=(Text("be brief"),), tools=(spec,))
    parts = of_part(Text("be brief")) + of_tools((spec,)) + of_message(user("hi"))
    assert Tally().size(request) == parts


def test_what_the_vendor_counted_stands_for_all_that_it_read():
    first = asked(user("hi"))
    tally = Tally()
    tally.counted(first, Usage(input=tally.estimate(first)))
    added = (model("hello"), user("and now?"))
    grown = asked(*first.messages, *added)
    assert tally.size(first) == of_message(first.messages[0])
    assert tally.size(grown) == sum(map(of_message, grown.messages))


def test_cached_tokens_count_as_read():
    request = asked(user("hi"))
    tally = Tally()
    tally.counted(request, Usage(input=10, cached=5, cache_write=2, cache_in_input=False))
    assert tally.size(request) == 17


def test_a_vendor_that_counts_nothing_leaves_the_estimate():
    request = asked(user("hi"))
    tally = Tally()
    tally.counted(request, Usage())
    assert tally.size(request) == of_message(user("hi"))


@pytest.mark.parametrize(("counted", "scale"), [(2.0, 2.0), (0.75, 0.75), (0.01, 0.5), (50.0, 3.0)])
def test_what_comes_later_is_scaled_as_the_vendor_counts_but_within_reason(counted, scale):
    first, added = asked(user("x" * 4_000)), user("y" * 4_000)
    tally = Tally()
    real = int(counted * tally.estimate(first))
    tally.counted(first, Usage(input=real))
    assert tally.size(asked(*first.messages, added)) == pytest.approx(
        real + scale * of_message(added), abs=2
    )


def test_a_count_of_another_conversation_is_forgotten_but_not_its_scale():
    first = asked(user("x" * 4_000), user("more"))
    tally = Tally()
    tally.counted(first, Usage(input=2 * tally.estimate(first)))
    other = asked(user("z" * 400))
    assert tally.size(other) == 2 * of_message(other.messages[0])


def test_new_tools_are_added_to_what_was_counted():
    first = asked(user("hi"))
    tally = Tally()
    size = tally.estimate(first)
    tally.counted(first, Usage(input=size))
    tools = (ToolSpec(name="add", description="adds"),)
    assert tally.size(msgspec.structs.replace(first, tools=tools)) == size + of_tools(tools)


def test_a_message_is_weighed_once():
    weighed: list[object] = []

    def counting(message):
        weighed.append(message)
        return of_message(message)

    tally, request = Tally(counting), asked()
    for number in range(50):
        added = (model(call(f"c{number}")), user(result(f"c{number}")))
        request = asked(*request.messages, *added)
        tally.size(request)
        tally.size(request)
    assert len(weighed) == 100


@settings(max_examples=60)
@given(said=histories(), cuts=st.lists(st.integers(0, 12), max_size=5))
def test_a_tally_that_has_seen_other_lengths_says_what_a_new_one_says(said, cuts):
    tally = Tally()
    for cut in cuts:
        tally.size(asked(*said[:cut]))
    assert tally.size(asked(*said)) == Tally().size(asked(*said)) == sum(map(of_message, said))
