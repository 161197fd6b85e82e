import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.events import (
    Finished,
    ModelEvent,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.gateway.memory import (
    Capture,
    Keys,
    Maker,
    StoredTurn,
    handle_of,
    handle_seal,
    seal_mark,
    tenant_key,
)
from toolwire.gateway.parts import Recalled
from toolwire.gateway.recall import Search
from toolwire.gateway.visible import runs_of, visible_answer
from toolwire.ids import new_id
from toolwire.messages import (
    CacheMark,
    Message,
    Origin,
    Part,
    Seal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import ModelRequest

CLAUDE = Maker(Origin("anthropic-messages", "anthropic", "claude"), "a")
GEMINI = Maker(Origin("gemini", "google", "gemini-3"), "g")
RESPONSES = Maker(Origin("openai-responses", "openai", "gpt"), "r")

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)
objects = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5), json_values
)


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=tuple(Text(p) if isinstance(p, str) else p for p in parts))


def assistant(*parts: Part) -> Message:
    return Message(role="assistant", parts=parts)


def call(call_id: str, arguments: str = "{}", **members: object) -> ToolCall:
    return ToolCall(id=call_id, name="read", arguments=arguments, **members)  # type: ignore[arg-type]


def result(call_id: str, text: str = "done") -> ToolResult:
    return ToolResult(call_id=call_id, parts=(Text(text),))


def signed(maker: Maker, data: str) -> Seal:
    return Seal(origin=maker.origin, data=json.dumps({"signature": data}, separators=(",", ":")))


class Shelf:
    """A memory in a dictionary."""

    def __init__(self) -> None:
        self.keys = Keys(tenant_key("ada"))
        self.turns: dict[bytes, StoredTurn] = {}

    def search(self, *messages: Message) -> Search:
        search = Search(self.keys, ModelRequest(model="m", messages=messages))
        for keys in (search.first_keys, search.second_keys):
            found = {key: self.turns[key] for key in keys() if key in self.turns}
            search.add(found)
        search.settle()
        return search

    def recall(self, target: Maker, *messages: Message) -> Recalled:
        return self.search(*messages).attach(target)

    def answer(
        self, maker: Maker, parts: tuple[Part, ...], *messages: Message, family: str = "openai-chat"
    ) -> list[ModelEvent]:
        """What the client gets of the answer to these messages."""
        search = self.search(*messages)
        capture = Capture(lambda: search.asked, family, maker.origin.dialect, new_id)
        sent = [one for event in events(parts) for one in capture.outgoing(event)]
        turn = capture.turn(maker)
        if turn is not None:
            self.turns.update(dict.fromkeys(self.keys.of(turn, family), turn))
        return sent


def events(parts: tuple[Part, ...]) -> list[ModelEvent]:
    found: list[ModelEvent] = []
    for part in parts:
        match part:
            case Text():
                found.append(TextDelta(part.text))
            case Thinking():
                found += (ThinkingDelta(part.text), ThinkingEnded(part.seal))
            case ToolCall():
                found.append(ToolCallStarted(part.id, part.name, made_id=part.made_id))
                found += (
                    ToolCallDelta(part.id, part.arguments),
                    ToolCallEnded(part.id, seal=part.seal),
                )
            case _:
                raise AssertionError(part)
    return [*found, Finished(reason=StopReason.END)]


THOUGHT = Thinking("hm", signed(CLAUDE, "c2lnbmVk"))
LONG_ID = "toolu_01ABCDEFGHJKMNPQ"
LATER_ID = "toolu_02ABCDEFGHJKMNPQ"


@given(arguments=objects)
def test_visible_answers_ignore_spacing_order_ids_and_what_javascript_does_to_numbers(arguments):
    def through_javascript(value):
        if isinstance(value, bool) or value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float):
            number = float(value)
            return int(number) if number == int(number) and abs(number) < 1e21 else number
        if isinstance(value, list):
            return [through_javascript(one) for one in value]
        return {name: through_javascript(value[name]) for name in reversed(list(value))}

    raw = json.dumps(arguments)
    spaced = json.dumps(through_javascript(arguments), indent=3, ensure_ascii=False)
    one = assistant(THOUGHT, Text("so "), call("a", raw))
    other = assistant(Text("\nso"), call("b", spaced, made_id=True))
    assert visible_answer(one.parts) == visible_answer(other.parts)


@given(arguments=objects, others=objects)
def test_visible_answers_differ_with_their_arguments(arguments, others):
    def kind(value):
        # The equality of Python takes 1 for True, and 2**53 + 1 is 2**53 in JavaScript.
        if isinstance(value, dict):
            return {name: kind(one) for name, one in value.items()}
        if isinstance(value, list):
            return [kind(one) for one in value]
        return float(value) if type(value) is int else (type(value).__name__, value)

    same = kind(json.loads(json.dumps(arguments))) == kind(json.loads(json.dumps(others)))
    seen = [visible_answer((call("a", json.dumps(one)),)) for one in (arguments, others)]
    floats = json.loads(json.dumps([arguments, others]), parse_int=float)
    assert (seen[0] == seen[1]) == (same or _exact(floats[0]) == _exact(floats[1]))


def _exact(value):
    if isinstance(value, dict):
        return {name: _exact(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_exact(one) for one in value]
    return (type(value).__name__, value)


@given(pieces=st.lists(st.text(max_size=8), min_size=1, max_size=5))
def test_the_chain_does_not_depend_on_how_a_side_is_cut_into_messages(pieces):
    whole = [user(*pieces), assistant(*map(Text, pieces)), user("next")]
    cut = [*map(user, pieces), *(assistant(Text(piece)) for piece in pieces), user("next")]
    assert runs_of(whole)[-1].chain == runs_of(cut)[-1].chain


def test_instructions_do_not_count():
    system = Message(role="system", parts=(Text("x-anthropic-billing-header: 1"),))
    plain = [user("hi"), assistant(Text("hello")), user("go")]
    noted = [system, user("hi"), system, assistant(Text("hello")), user("go"), system]
    assert runs_of(plain)[-1].chain == runs_of(noted)[-1].chain


def test_results_count_by_the_position_of_their_call():
    asked = [user("go"), assistant(call("a"), call("b"))]
    other = [user("go"), assistant(call("x"), call("y"))]
    assert (
        runs_of([*asked, user(result("a", "1"), result("b", "2"))])[-1].chain
        == runs_of([*other, user(result("y", "2"), result("x", "1"))])[-1].chain
        != runs_of([*asked, user(result("a", "2"), result("b", "1"))])[-1].chain
    )


@pytest.mark.parametrize("family", ["anthropic-messages", "openai-responses", "gemini"])
def test_a_handle_comes_back_in_every_alphabet(family):
    seal = handle_seal(family, "twm_abc-?~.1")
    assert seal is not None
    returned = msgspec.structs.replace(seal, data=seal.data.replace("+", "-").replace("=", ""))
    assert [handle_of(seal), handle_of(returned)] == ["twm_abc-?~"] * 2


def test_a_signature_is_the_same_in_both_base64_alphabets():
    one, other = (
        Seal(origin=GEMINI.origin, data=json.dumps({"thoughtSignature": data}))
        for data in ("ab+/cd==", "ab-_cd")
    )
    assert seal_mark(one) == seal_mark(other)


def test_what_a_chat_client_drops_is_put_back():
    shelf = Shelf()
    parts = (THOUGHT, Text("so"), call(LONG_ID, '{"a": 9007199254740993}'))
    shelf.answer(CLAUDE, parts, user("go"))
    sent = (
        user("go"),
        assistant(Text("so"), call(LONG_ID, '{"a":9007199254740992}')),
        user(result(LONG_ID)),
    )
    recalled = shelf.recall(CLAUDE, *sent)
    assert recalled.request.messages == (sent[0], assistant(*parts), sent[2])
    assert recalled.reattached == 1
    assert recalled.losses == ()


def test_a_request_that_nothing_is_missing_in_stays_the_same_object():
    shelf = Shelf()
    parts = (THOUGHT, call(LONG_ID))
    shelf.answer(CLAUDE, parts, user("go"), family="anthropic-messages")
    search = shelf.search(user("go"), assistant(*parts), user(result(LONG_ID)))
    recalled = search.attach(CLAUDE)
    assert recalled.request is search.request
    assert recalled.reattached == 0


def test_cache_marks_of_the_client_stay():
    shelf = Shelf()
    shelf.answer(CLAUDE, (THOUGHT, Text("so"), call(LONG_ID)), user("go"))
    mark = CacheMark("1h")
    sent = assistant(Text("so"), call(LONG_ID, cache=mark))
    recalled = shelf.recall(CLAUDE, user("go"), sent, user(result(LONG_ID)))
    assert recalled.request.messages[1].parts == (THOUGHT, Text("so"), call(LONG_ID, cache=mark))


def test_a_gemini_turn_without_ids_is_found_by_its_conversation():
    shelf = Shelf()
    parts = (
        call("call_made1", '{"n": 1}', made_id=True, seal=signed(GEMINI, "Zw==")),
        call("call_made2", '{"n": 2}', made_id=True),
    )
    shelf.answer(GEMINI, parts, user("go"), family="gemini")
    skip = Seal(origin=Origin("gemini"), data='{"thoughtSignature":"skip"}')
    sent = (
        user("go"),
        assistant(call("read_17_1", '{"n":1.0}', seal=skip), call("read_17_2", '{"n":2.0}')),
        user(result("read_17_2", "two"), result("read_17_1", "one")),
    )
    recalled = shelf.recall(GEMINI, *sent)
    assert recalled.request.messages == (
        sent[0],
        assistant(*parts),
        user(result("call_made2", "two"), result("call_made1", "one")),
    )


def test_a_repeated_id_reaches_the_client_as_a_new_one_and_the_upstream_as_its_own():
    shelf = Shelf()
    shelf.answer(CLAUDE, (THOUGHT, call("call_0", '{"n":1}')), user("go"))
    first = [user("go"), assistant(call("call_0", '{"n":1}')), user(result("call_0", "1"))]
    second = Thinking("again", signed(CLAUDE, "YWdhaW4="))
    sent = shelf.answer(CLAUDE, (second, call("call_0", '{"n":2}')), *first)
    ids = {event.id for event in sent if isinstance(event, ToolCallStarted | ToolCallEnded)}
    assert len(ids) == 1
    assert "call_0" not in ids
    (new,) = ids
    recalled = shelf.recall(CLAUDE, *first, assistant(call(new, '{"n":2}')), user(result(new, "2")))
    assert recalled.request.messages[1] == assistant(THOUGHT, call("call_0", '{"n":1}'))
    assert recalled.request.messages[3] == assistant(second, call("call_0", '{"n":2}'))
    assert recalled.request.messages[4] == user(result("call_0", "2"))


def test_equal_turns_of_two_conversations_keep_their_own_seals():
    shelf = Shelf()
    for name in ("one", "two"):
        thought = Thinking(name, signed(CLAUDE, name))
        shelf.answer(CLAUDE, (thought, call("call_0")), user(name))
    for name in ("one", "two"):
        sent = (user(name), assistant(call("call_0")), user(result("call_0")))
        recalled = shelf.recall(CLAUDE, *sent)
        assert recalled.request.messages[1].thinking == name


def test_a_turn_of_another_conversation_is_not_used():
    shelf = Shelf()
    shelf.answer(CLAUDE, (THOUGHT, call("call_0")), user("one"))
    sent = (user("three"), assistant(call("call_0")), user(result("call_0")))
    recalled = shelf.recall(CLAUDE, *sent)
    assert recalled.request.messages == sent


def test_another_tenant_finds_nothing():
    shelf = Shelf()
    shelf.answer(CLAUDE, (THOUGHT, call(LONG_ID)), user("go"))
    shelf.keys = Keys(tenant_key("bob"))
    sent = (user("go"), assistant(call(LONG_ID)), user(result(LONG_ID)))
    assert shelf.recall(CLAUDE, *sent).request.messages == sent


def test_a_changed_turn_keeps_the_words_of_the_client():
    shelf = Shelf()
    shelf.answer(CLAUDE, (THOUGHT, Text("so"), call(LONG_ID)), user("go"))
    sent = (user("go"), assistant(Text("no"), call(LONG_ID)), user(result(LONG_ID)))
    recalled = shelf.recall(CLAUDE, *sent)
    assert recalled.request.messages == sent
    assert recalled.reattached == 0
    assert [loss.why for loss in recalled.losses] == ["the client changed this turn"]


def test_an_unchanged_call_of_a_changed_turn_keeps_its_own_seal():
    shelf = Shelf()
    seal = signed(GEMINI, "Zw==")
    shelf.answer(GEMINI, (call(LONG_ID, '{"n": 1}', seal=seal), call(LATER_ID)), user("go"))
    sent = (user("go"), assistant(call(LONG_ID, '{"n":1}')), user(result(LONG_ID)))
    recalled = shelf.recall(GEMINI, *sent)
    assert recalled.request.messages[1] == assistant(call(LONG_ID, '{"n": 1}', seal=seal))
    assert recalled.reattached == 1


def test_merged_turns_are_split():
    shelf = Shelf()
    again = Thinking("again", signed(CLAUDE, "YWdhaW4="))
    one, two = (THOUGHT, Text("a"), call(LONG_ID)), (again, Text("b"), call(LATER_ID))
    shelf.answer(CLAUDE, one, user("go"))
    shelf.answer(CLAUDE, two, user("go"), assistant(*one[1:]), user(result(LONG_ID)))
    results = user(result(LONG_ID), result(LATER_ID))
    for merged in (
        assistant(*one[1:], *two[1:]),
        assistant(Text("a\n\nb"), call(LONG_ID), call(LATER_ID)),
    ):
        recalled = shelf.recall(CLAUDE, user("go"), merged, results)
        assert recalled.request.messages == (
            user("go"),
            assistant(*one),
            assistant(*two),
            results,
        )


def test_a_turn_in_pieces_is_joined():
    shelf = Shelf()
    parts = (THOUGHT, Text("so"), call(LONG_ID), call(LATER_ID, '{"n": 1}'))
    shelf.answer(RESPONSES, parts, user("go"))
    for pieces in (
        (assistant(Text("so")), assistant(call(LONG_ID), call(LATER_ID, '{"n": 1}'))),
        (
            assistant(Text("so"), call(LONG_ID)),
            user(result(LONG_ID)),
            assistant(call(LATER_ID, '{"n": 1}')),
        ),
        (
            assistant(Text("so"), call(LATER_ID, '{"n": 1}')),
            user(result(LATER_ID)),
            assistant(call(LONG_ID)),
        ),
    ):
        recalled = shelf.recall(RESPONSES, user("go"), *pieces)
        assert recalled.request.messages[1] == assistant(*parts)
        assert sum(message.role == "assistant" for message in recalled.request.messages) == 1


def test_turns_in_another_order_keep_their_seals():
    shelf = Shelf()
    again = Thinking("again", signed(CLAUDE, "YWdhaW4="))
    shelf.answer(CLAUDE, (THOUGHT, call(LONG_ID)), user("go"))
    first = (user("go"), assistant(call(LONG_ID)), user(result(LONG_ID)))
    shelf.answer(CLAUDE, (again, call(LATER_ID)), *first)
    sent = (
        user("go"),
        assistant(call(LATER_ID)),
        user(result(LATER_ID)),
        assistant(call(LONG_ID)),
        user(result(LONG_ID)),
    )
    thoughts = [m.thinking for m in shelf.recall(CLAUDE, *sent).request.messages]
    assert thoughts == ["", "again", "", "hm", ""]


def test_a_turn_survives_changes_before_it():
    shelf = Shelf()
    seal = signed(GEMINI, "Zw==")
    made = call("call_made", seal=seal, made_id=True)
    begin = [user("go"), assistant(Text("what?")), user("read it")]
    shelf.answer(GEMINI, (made,), *begin, family="gemini")
    positional = call("call_1", made_id=True)
    for changed in (begin[2:], [user("GO"), *begin[1:]], [*begin[:2], user("read THAT")]):
        sent = (*changed, assistant(positional), user(result("call_1")))
        recalled = shelf.recall(GEMINI, *sent)
        assert recalled.request.messages[-2:] == (assistant(made), user(result("call_made")))


def test_seals_do_not_go_to_another_deployment():
    shelf = Shelf()
    shelf.answer(RESPONSES, (THOUGHT, call(LONG_ID, '{"n": 1}')), user("go"))
    sent = (user("go"), assistant(call(LONG_ID, '{"n":1}')), user(result(LONG_ID)))
    other = msgspec.structs.replace(RESPONSES, deployment="second")
    recalled = shelf.recall(other, *sent)
    assert recalled.request.messages[1] == assistant(Thinking("hm"), call(LONG_ID, '{"n": 1}'))
    assert [loss.why for loss in recalled.losses] == ['only the deployment "r" reads them']
    assert shelf.search(*sent).newest == RESPONSES


def test_a_native_seal_of_another_server_of_the_format_is_dropped():
    shelf = Shelf()
    bedrock = Maker(Origin("anthropic-messages", "bedrock", "claude"))
    seal = signed(bedrock, "YmVkcm9jaw==")
    shelf.answer(
        bedrock, (Thinking("hm", seal), Text("so")), user("go"), family="anthropic-messages"
    )
    unnamed = Seal(origin=Origin("anthropic-messages"), data=seal.data)
    edited = assistant(Thinking("hm", unnamed), Text("no"))
    sent = (user("go"), edited, user("on"))
    assert shelf.recall(CLAUDE, *sent).request.messages[1] == assistant(Thinking("hm"), Text("no"))
    assert shelf.recall(bedrock, *sent).request.messages[1] == edited
    unknown = Seal(origin=Origin("anthropic-messages"), data='{"signature":"bmV3"}')
    own = (user("go"), assistant(Thinking("hm", unknown), Text("no")), user("on"))
    assert shelf.recall(CLAUDE, *own).request.messages == own


def test_a_handle_stands_for_the_thinking_and_never_reaches_an_upstream():
    shelf = Shelf()
    parts = (
        Thinking("hm", Seal(origin=GEMINI.origin, data='{"thoughtSignature":"Zw=="}')),
        Text("so"),
    )
    sent = shelf.answer(GEMINI, parts, user("go"), family="anthropic-messages")
    (seal,) = (event.seal for event in sent if isinstance(event, ThinkingEnded))
    assert handle_of(seal)
    echoed = assistant(Thinking("hm", seal), Text("so"))
    recalled = shelf.recall(GEMINI, user("NOW"), echoed, user("on"))
    assert recalled.request.messages[1] == assistant(*parts)
    shelf.turns.clear()
    forgotten = shelf.recall(GEMINI, user("go"), echoed, user("on"))
    assert forgotten.request.messages[1] == assistant(Thinking("hm"), Text("so"))
    assert [loss.what for loss in forgotten.losses] == ["dropped a handle"]


def test_plain_text_is_not_stored():
    shelf = Shelf()
    shelf.answer(CLAUDE, (Text("so"),), user("go"))
    assert shelf.turns == {}
