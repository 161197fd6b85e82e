import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.histories import (
    SEAL,
    SURROUNDINGS,
    call,
    histories,
    model,
    result,
    unpaired,
    user,
    words,
)
from toolwire.compaction.plan import (
    ACKNOWLEDGED,
    Plan,
    cuts,
    front_of,
    is_prompt,
    plan,
    prompts_before,
    snapshot,
)
from toolwire.messages import Message, Text, Thinking


def forced(*messages: Message, keep: float = 0.3) -> Plan | None:
    return plan((*SURROUNDINGS, *messages), size=1, window=1, threshold=0, keep=keep)


def turn(question: str, answer: str = "x" * 400) -> tuple[Message, Message]:
    return user(question), model(answer)


def test_below_the_threshold_nothing_is_planned():
    said = (*SURROUNDINGS, *turn("one"), *turn("two"), user("three"))
    assert plan(said, size=699, window=1_000) is None
    assert plan(said, size=700, window=1_000) is not None


def test_the_cut_goes_forward_to_the_users_next_words():
    said = (*turn("one"), *turn("two"), *turn("three"), user("four"))
    assert forced(*said) == Plan(front=SURROUNDINGS, old=said[:6], tail=said[6:])
    assert forced(*said, keep=0.5) == Plan(front=SURROUNDINGS, old=said[:4], tail=said[4:])


def test_a_conversation_of_one_prompt_cannot_be_cut():
    assert forced(user("only this")) is None


def test_the_result_of_a_call_is_never_parted_from_it():
    said = (
        *turn("one"),
        user("two"),
        model(call("a"), call("b")),
        user(result("a", "y" * 4_000), result("b")),
        model("done"),
        user("three"),
    )
    assert forced(*said) == Plan(front=SURROUNDINGS, old=said[:6], tail=said[6:])


def test_words_between_a_call_and_its_late_result_are_no_place_to_cut():
    said = (user("one"), model(call("a")), user("wait"), user(result("a")), model("done"))
    assert cuts(said, 0) == [0, 1, 4]


def test_the_same_id_in_two_replies_is_two_calls():
    said = (
        user("one"),
        model(call("call_0")),
        user(result("call_0")),
        model(call("call_0")),
        user(result("call_0")),
        model("done"),
    )
    assert cuts(said, 0) == [0, 1, 3, 5]


def test_a_call_that_was_never_answered_does_not_forbid_every_cut():
    said = (user("one"), model(call("a")), user("two"), model("done"), user("three"))
    assert cuts(said, 0) == [0, 1, 2, 3, 4]


def test_a_long_turn_is_cut_between_its_steps_and_keeps_its_prompt():
    loop = [
        message
        for number in range(10)
        for message in (model(call(f"c{number}")), user(result(f"c{number}", "z" * 400)))
    ]
    said = (user("fix everything"), *loop)
    assert forced(*said) == Plan(
        front=SURROUNDINGS, old=said[:15], prompts=said[:1], tail=said[15:]
    )


def test_all_that_the_user_said_in_the_turn_is_kept_with_its_prompt():
    said = (
        *turn("before"),
        user("fix it"),
        model(call("a")),
        user(result("a")),
        user("and hurry"),
        model(call("b")),
        user(result("b")),
    )
    assert prompts_before(said, 0, len(said)) == (said[2], said[5])
    assert prompts_before(said, 0, 2) == (said[0],)


def test_a_step_that_leans_on_sealed_thinking_is_no_place_to_cut():
    said = (
        user("fix it"),
        model(Thinking("hm", SEAL), call("a")),
        user(result("a")),
        model(call("b")),
        user(result("b")),
        model(Thinking("so", SEAL), call("c")),
        user(result("c")),
        user("next"),
        model("done"),
    )
    assert cuts(said, 0) == [0, 1, 5, 7, 8]


def test_an_answer_that_goes_on_in_a_second_message_is_not_parted():
    assert cuts((user("go"), model("one"), model("two"), user("more")), 0) == [0, 1, 3]


def test_instructions_in_the_list_stay_in_front():
    system = Message(role="system", parts=(Text("be brief"),))
    assert front_of((system, *SURROUNDINGS, user("hi")), 2) == 3
    assert front_of((user("hi"), model(call("a")), user(result("a"))), 2) == 1


def test_the_summary_stands_between_the_surroundings_and_the_tail():
    said = (*turn("one"), user("two"))
    planned = forced(*said)
    assert planned is not None
    assert planned.joined("<state_snapshot>x</state_snapshot>") == (
        *SURROUNDINGS,
        user("<state_snapshot>x</state_snapshot>"),
        model(ACKNOWLEDGED),
        user("two"),
    )


def test_the_model_does_not_thank_twice_where_its_own_step_follows():
    planned = Plan(front=(), old=(), tail=(model(call("a")), user(result("a"))))
    assert planned.joined("so far") == (user("so far"), *planned.tail)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("<scratchpad>a</scratchpad>\n<state_snapshot>\nx\n</state_snapshot> bye", "\nx\n"),
        ("<state_snapshot>a</state_snapshot> in it</state_snapshot>", "a</state_snapshot> in it"),
        ("<state_snapshot>x", None),
        ("<state_snapshot> \n</state_snapshot>", None),
        ("I will not.", None),
        ("", None),
    ],
)
def test_a_snapshot_is_read_only_where_it_is_whole(answer: str, found: str | None):
    whole = None if found is None else f"<state_snapshot>{found}</state_snapshot>"
    assert snapshot(answer) == whole


@settings(max_examples=60)
@given(said=histories(), keep=st.sampled_from([0.05, 0.3, 0.6, 0.95]))
def test_a_plan_leaves_two_whole_conversations(said: tuple[Message, ...], keep: float):
    planned = plan(said, size=1, window=1, threshold=0, keep=keep)
    if planned is None:
        assert len(cuts(said, 2)) == 1
        return
    assert (*planned.front, *planned.old, *planned.tail) == said
    assert planned.front == SURROUNDINGS
    assert planned.old
    assert planned.tail
    assert unpaired((*planned.front, *planned.old)) == []
    joined = planned.joined("<state_snapshot>x</state_snapshot>")
    assert unpaired(joined) == []
    last = next(message for message in reversed(said) if is_prompt(message))
    assert last in joined
    roles = [message.role for message in joined]
    assert "assistant assistant" not in " ".join(roles)


@settings(max_examples=60)
@given(said=histories())
def test_no_cut_takes_the_seal_from_a_step_that_leans_on_it(said: tuple[Message, ...]):
    for place in cuts(said, 2):
        if is_prompt(said[place]):
            continue
        start = max(at for at in range(place) if is_prompt(said[at]))
        before = [part for message in said[start:place] for part in message.parts]
        if any(isinstance(part, Thinking) and part.seal for part in before):
            assert any(isinstance(part, Thinking) and part.seal for part in said[place].parts)


@given(said=words)
def test_prose_around_a_snapshot_is_left_out(said: str):
    inner = json.dumps(said)
    text = f"<scratchpad>{inner}</scratchpad><state_snapshot>{inner}</state_snapshot>"
    assert snapshot(text) == f"<state_snapshot>{inner}</state_snapshot>"
