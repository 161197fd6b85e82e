import sys
from collections.abc import Callable

import pytest

from toolwire.errors import BadInput
from toolwire.history import HistoryRules, Repaired, repair
from toolwire.history.drafts import _alphabet
from toolwire.messages import (
    CallKind,
    Kept,
    Loss,
    Media,
    MediaKind,
    Message,
    Origin,
    Outcome,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

CLAUDE = Origin("anthropic-messages", "anthropic", "claude")
GPT = Origin("openai-responses", "openai", "gpt")
SEAL = Seal(origin=CLAUDE, data='{"signature":"c2ln"}')
IMAGE = Media(kind=MediaKind.IMAGE, mime="image/png", base64="AAAA")
INTERRUPTED = "interrupted: it is not known whether this call took effect"


def user(*parts: Part | str) -> Message:
    return Message(role="user", parts=_parts(parts))


def assistant(*parts: Part | str) -> Message:
    return Message(role="assistant", parts=_parts(parts))


def _parts(parts: tuple[Part | str, ...]) -> tuple[Part, ...]:
    return tuple(Text(part) if isinstance(part, str) else part for part in parts)


def call(call_id: str, name: str = "add", *, complete: bool = True) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments="{}", complete=complete)


def result(call_id: str, text: str = "done", name: str = "add") -> ToolResult:
    return ToolResult(call_id=call_id, name=name, parts=(Text(text),))


def lost(call_id: str, name: str = "add") -> ToolResult:
    return ToolResult(
        call_id=call_id,
        name=name,
        parts=(Text(INTERRUPTED),),
        is_error=True,
        outcome=Outcome.INTERRUPTED,
    )


def repaired(*messages: Message, target: Origin = CLAUDE, rules: HistoryRules | None = None):
    return list(repair(messages, target, rules or HistoryRules()).messages)


def test_a_sound_history_comes_back_as_it_was():
    history = (
        Message(role="system", parts=(Text("be brief"),)),
        user("hi"),
        assistant(Thinking("hm", SEAL), "let me see", call("a"), call("b")),
        user(result("a"), result("b"), "and hurry"),
        assistant("done"),
        user("thanks"),
    )
    sound = repair(history, CLAUDE)
    assert sound == Repaired(history, ())
    assert sound.messages is history


def test_messages_and_parts_that_need_no_repair_stay_the_same_objects():
    history = (
        user("hi"),
        assistant(call("a"), call("b")),
        user(result("a")),
        user("thanks"),
    )
    first, second, third, fourth = repaired(*history)
    assert first is history[0]
    assert second is history[1]
    assert third.parts[0] is history[2].parts[0]
    assert fourth is history[3]


def test_nothing_stays_nothing():
    assert repair([], CLAUDE, HistoryRules(alternate=True, user_first=True)) == Repaired(())


def test_a_call_without_a_result_is_answered_as_interrupted():
    assert repair([user("hi"), assistant(call("a"), call("b")), user(result("b"))], CLAUDE) == (
        Repaired(
            (user("hi"), assistant(call("a"), call("b")), user(lost("a"), result("b"))),
            (
                Loss(
                    "messages[1].parts[0]",
                    'answered the call "a": interrupted',
                    "it had no result",
                ),
            ),
        )
    )


def test_the_last_message_is_answered_too():
    assert repaired(assistant("so", call("a"))) == [assistant("so", call("a")), user(lost("a"))]


def test_a_call_that_was_cut_is_answered_as_not_run():
    cut = ToolCall(id="a", name="sh", arguments='{"x', kind=CallKind.FREEFORM, complete=False)
    answer = ToolResult(
        call_id="a",
        name="sh",
        parts=(Text("not run: the call was cut off before its arguments were complete"),),
        is_error=True,
        outcome=Outcome.NOT_RUN,
        kind=CallKind.FREEFORM,
    )
    assert repaired(assistant(cut)) == [assistant(cut), user(answer)]


def test_user_text_between_a_call_and_its_result_moves_behind_the_result():
    assert repair([assistant(call("a")), user("wait"), user(result("a"))], CLAUDE) == Repaired(
        (assistant(call("a")), user(result("a")), user("wait")),
        (
            Loss(
                "messages[2].parts[0]",
                'moved the result of "a"',
                "a result follows its call directly",
            ),
        ),
    )


@pytest.mark.parametrize(
    "answers",
    [
        [user(result("b"), result("a"))],
        [user(result("b")), user(result("a"))],
        [user("oh", result("a"), result("b"))],
        [user(result("a"), "oh", result("b"))],
        [user(result("a")), assistant("x"), user(result("b"))],
        [Message(role="system", parts=(Text("s"),)), user(result("a"), result("b"))],
        [user(), user(result("b"), result("a"))],
    ],
)
def test_results_stand_first_in_the_next_message_in_the_order_of_calls(answers: list[Message]):
    messages = repaired(assistant(call("a"), call("b")), *answers)
    assert messages[1].parts[:2] == (result("a"), result("b"))
    assert messages[1].role == "user"


def test_two_messages_with_calls_in_a_row_each_get_their_results():
    assert repaired(assistant(call("a")), assistant(call("b")), user(result("a"), result("b"))) == [
        assistant(call("a")),
        user(result("a")),
        assistant(call("b")),
        user(result("b")),
    ]


def test_results_inside_an_assistant_message_move_out_of_it():
    assert repaired(assistant(call("a"), result("a"), "so")) == [
        assistant(call("a"), "so"),
        user(result("a")),
    ]


def test_a_result_without_its_call_becomes_text_with_its_media():
    orphan = ToolResult(call_id="gone", name="look", parts=(Text("seen"), IMAGE))
    assert repair([user(orphan, "go on")], CLAUDE) == Repaired(
        (
            user(
                "[result of a call of look that is no longer in the history]\nseen",
                IMAGE,
                "go on",
            ),
        ),
        (
            Loss(
                "messages[0].parts[0]",
                "made the result text",
                "its call is no longer in the history",
            ),
        ),
    )


def test_a_result_before_its_call_is_not_a_result_of_it():
    messages = repaired(user(result("a", "early", name="")), assistant(call("a")))
    assert messages == [
        user("[result of a call that is no longer in the history]\nearly"),
        assistant(call("a")),
        user(lost("a")),
    ]


def test_an_empty_result_without_its_call_is_dropped_and_reported():
    assert repair([user(ToolResult(call_id="gone"), "hi")], CLAUDE) == Repaired(
        (user("hi"),),
        (
            Loss(
                "messages[0].parts[0]",
                "dropped an empty result",
                "its call is no longer in the history",
            ),
        ),
    )


def test_a_second_result_becomes_text_unless_it_says_the_same():
    messages = repaired(
        assistant(call("a")), user(result("a", "1"), result("a", "1"), result("a", "2"))
    )
    assert messages == [
        assistant(call("a")),
        user(result("a", "1"), "[result of a call of add that is answered already]\n2"),
    ]


def test_a_call_in_a_user_message_becomes_text_and_so_does_its_result():
    assert repaired(user(call("a")), user(result("a"))) == [
        user("[call of add: {}]"),
        user("[result of a call of add that is no longer in the history]\ndone"),
    ]


def test_an_id_used_again_is_renamed_with_its_result_and_the_first_one_stays():
    messages = repaired(
        assistant(call("call_0")),
        user(result("call_0", "1")),
        assistant(call("call_0")),
        user(result("call_0", "2")),
    )
    second = messages[2].calls[0]
    assert messages[0].calls[0] == call("call_0")
    assert second == ToolCall(id=second.id, name="add", arguments="{}", made_id=True)
    assert second.id.startswith("call_0_")
    assert messages[3] == user(result(second.id, "2"))


def test_a_result_answers_the_nearest_earlier_call_with_its_id():
    messages = repaired(
        assistant(call("x", "first")), assistant(call("x", "second")), user(result("x", name=""))
    )
    assert messages[1].results == (lost("x", "first"),)
    assert messages[3].results == (result(messages[2].calls[0].id, name=""),)


def test_results_of_one_id_in_one_message_answer_its_calls_in_order():
    messages = repaired(
        assistant(call("", "a"), call("", "b")), user(result("", "1", ""), result("", "2", ""))
    )
    assert [answer.text for answer in messages[1].results] == ["1", "2"]
    assert [answer.call_id for answer in messages[1].results] == [
        made.id for made in messages[0].calls
    ]
    assert all(made.id.startswith("call_") for made in messages[0].calls)


MISTRAL = HistoryRules(id_characters="a-zA-Z0-9", id_length=9)


def test_ids_of_an_exact_length_are_hashes_and_those_that_fit_stay():
    messages = repaired(
        assistant(call("D681PevKs"), call("toolu_1"), call("functions.add:0")), rules=MISTRAL
    )
    ids = [made.id for made in messages[0].calls]
    assert ids[0] == "D681PevKs"
    assert all(len(made) == 9 and made.isalnum() for made in ids)
    assert len(set(ids)) == 3
    assert [answer.call_id for answer in messages[1].results] == ids


def test_a_renamed_id_is_the_same_in_every_run():
    first = repaired(assistant(call("toolu_1")), rules=MISTRAL)[0].calls[0].id
    assert first == "okum6cm8q"


def test_ids_keep_what_the_reader_can_read_of_them():
    rules = HistoryRules(id_characters="a-zA-Z0-9_-", id_limit=24)
    ids = [
        made.id
        for made in repaired(assistant(call("functions.add:0"), call("y" * 60)), rules=rules)[
            0
        ].calls
    ]
    assert ids[0][:-8] == "functions_add_0_"
    assert ids[1][:-8] == "y" * 15 + "_"


def test_two_ids_that_read_alike_to_the_reader_stay_apart():
    rules = HistoryRules(id_characters="a-z_")
    ids = {made.id for made in repaired(assistant(call("a.b"), call("a:b")), rules=rules)[0].calls}
    assert len(ids) == 2


def test_a_reader_without_enough_ids_is_an_error_not_an_endless_search():
    with pytest.raises(BadInput, match="no id left"):
        repaired(
            assistant(call("a"), call("b"), call("c")),
            rules=HistoryRules(id_characters="ab", id_length=1),
        )


def test_a_history_appended_to_after_its_repair_gets_the_ids_it_would_have_got_at_once():
    turn = [assistant(call("call_0")), user(result("call_0"))]
    at_once = repaired(*turn, *turn, *turn)
    step_by_step = repaired(*repaired(*turn, *turn), *turn)
    assert at_once == step_by_step


def test_foreign_seals_go_and_thinking_with_words_stays():
    history = [
        assistant(
            Thinking("hm", SEAL),
            Thinking("", SEAL),
            Text("a", seal=SEAL),
            Text("", seal=SEAL),
            Refusal("no", SEAL),
        )
    ]
    why = "only anthropic-messages/anthropic/claude reads it"
    assert repair(history, GPT) == Repaired(
        (assistant(Thinking("hm"), "a", Refusal("no")),),
        tuple(Loss(f"messages[0].parts[{n}]", "dropped the seal", why) for n in range(5)),
    )


@pytest.mark.parametrize(
    ("target", "reads"),
    [
        (CLAUDE, True),
        (Origin("anthropic-messages"), True),
        (Origin("anthropic-messages", "anthropic"), True),
        (Origin("anthropic-messages", "minimax"), False),
        (Origin("anthropic-messages", "anthropic", "claude-older"), False),
        (Origin("gemini"), False),
    ],
)
def test_seals_and_blocks_go_only_to_the_family_that_made_them(target: Origin, reads: bool):
    block = ServerBlock(origin=CLAUDE, kind="web_search", data="{}")
    history = [assistant(Thinking("hm", SEAL), block, "so")]
    expected = history if reads else [assistant(Thinking("hm"), "so")]
    assert repaired(*history, target=target) == expected


def test_foreign_state_inside_results_goes_too():
    block = ServerBlock(origin=GPT, kind="tool_reference", data="{}")
    answer = ToolResult(call_id="a", parts=(Text("x", seal=Seal(origin=GPT, data="{}")), block))
    messages = repaired(assistant(call("a")), user(answer))
    assert messages[1] == user(ToolResult(call_id="a", parts=(Text("x"),)))


def test_thinking_loses_its_seal_with_the_block_it_led_to():
    block = ServerBlock(origin=GPT, kind="web_search_call", data="{}")
    assert repaired(assistant("a", Thinking("", SEAL), Thinking("hm", SEAL), block, "so")) == [
        assistant("a", Thinking("hm"), "so")
    ]


LEADING = HistoryRules(thinking_leads=True)


def test_thinking_that_leads_to_nothing_loses_its_seal_where_the_reader_minds():
    history = [user("q"), assistant("a", Thinking("hm", SEAL), Thinking("", SEAL)), user("r")]
    assert repaired(*history) == history
    assert repaired(*history, rules=LEADING) == [
        user("q"),
        assistant("a", Thinking("hm")),
        user("r"),
    ]


def test_thinking_that_leads_to_the_next_message_of_the_assistant_keeps_its_seal():
    history = [assistant(Thinking("hm", SEAL)), assistant(call("a")), user(result("a"))]
    assert repaired(*history, rules=LEADING) == history


def test_a_message_that_was_only_a_lost_thought_goes():
    rules = HistoryRules(thinking_leads=True, alternate=True)
    assert repaired(user("q"), assistant(Thinking("", SEAL)), user("r"), rules=rules) == [
        user("q", "r")
    ]


def test_empty_messages_and_parts_go_and_are_reported():
    own = Kept(dialect="anthropic-messages", fields='{"x":1}')
    foreign = Kept(dialect="openai-chat", fields='{"name":"n"}')
    history = [user(), user("", "a", Text("", kept=own), Text("", kept=foreign)), assistant("")]
    assert repair(history, CLAUDE) == Repaired(
        (user("a", Text("", kept=own)),),
        (
            Loss("messages[0]", "removed the message", "it is empty"),
            Loss("messages[1].parts[0]", "dropped an empty part", "it is empty"),
            Loss(
                "messages[1].parts[3]",
                "dropped an empty part with members of openai-chat",
                "it is empty",
            ),
            Loss("messages[2].parts[0]", "dropped an empty part", "it is empty"),
        ),
    )


def test_kept_members_of_another_format_stay_for_the_encoder_to_report():
    foreign = Kept(dialect="openai-chat", fields='{"name":"n"}')
    history = [Message(role="user", parts=(Text("a", kept=foreign),), kept=foreign)]
    assert repaired(*history) == history


def test_neighbours_of_one_role_are_joined_where_turns_must_alternate():
    rules = HistoryRules(alternate=True)
    history = [user("a"), user("b"), assistant("c"), assistant(call("d")), user("e")]
    assert repair(history, CLAUDE, rules).messages == (
        user("a", "b"),
        assistant("c", call("d")),
        user(lost("d"), "e"),
    )


def test_members_lost_by_joining_are_reported():
    kept = Kept(dialect="openai-chat", fields='{"name":"n"}')
    history = [user("a"), Message(role="user", parts=(Text("b"),), kept=kept)]
    assert repair(history, CLAUDE, HistoryRules(alternate=True)) == Repaired(
        (user("a", "b"),),
        (
            Loss(
                "messages[1]",
                "joined it to the message before, without their members",
                "the reader requires user and assistant to alternate",
            ),
        ),
    )


def test_a_user_message_is_put_first_where_the_reader_wants_one():
    system = Message(role="system", parts=(Text("be brief"),))
    assert repaired(system, assistant("hi"), rules=HistoryRules(user_first=True)) == [
        system,
        user("[the conversation before this point is not shown]"),
        assistant("hi"),
    ]


def test_a_result_takes_the_name_and_kind_of_its_call():
    freeform = ToolCall(id="a", name="sh", arguments="ls", kind=CallKind.FREEFORM)
    messages = repaired(assistant(freeform), user(result("a", name="bash")))
    assert messages[1].results == (
        ToolResult(call_id="a", name="sh", parts=(Text("done"),), kind=CallKind.FREEFORM),
    )


def _steps(work: Callable[[], object]) -> int:
    steps = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return steps


@pytest.mark.parametrize("late", [False, True])
def test_work_grows_with_the_history_and_no_faster(late: bool):
    def history(turns: int) -> list[Message]:
        said: list[Message] = []
        for _ in range(turns):
            said += [user("q"), assistant(Thinking("hm", SEAL), call("call_0"), call("call_0"))]
            if not late:
                said.append(user("oh", result("call_0"), result("call_0")))
        return said + [user(result("call_0")) for _ in range(2 * turns if late else 0)]

    rules = HistoryRules(id_characters="a-z", id_length=12, alternate=True, thinking_leads=True)
    small, large = history(100), history(400)
    ratio = _steps(lambda: repair(large, GPT, rules)) / _steps(lambda: repair(small, GPT, rules))
    assert ratio < 4.4


BESIDE = HistoryRules(results_first=False)


def test_what_follows_a_result_stays_behind_it_where_the_reader_lets_it():
    asked = assistant(call("a"), call("b"))
    history = (user("hi"), asked, user(result("a"), "a1", IMAGE, result("b"), "b1"))
    assert repair(history, GPT, BESIDE) == Repaired(history, ())
    mixed = user(result("b"), "b1", result("a"), "a1", IMAGE)
    assert repair((*history[:2], mixed), GPT, BESIDE) == Repaired(
        history, (Loss("messages[2]", "put the results in order", "that of the calls"),)
    )


def test_what_the_user_says_after_all_results_stays_behind_them():
    asked = assistant(call("a"), call("b"))
    mixed = (user("hi"), asked, user(result("b"), result("a"), "go on", IMAGE))
    after = user(result("a"), result("b"), "go on", IMAGE)
    assert repaired(*mixed, rules=BESIDE) == [user("hi"), asked, after]
    unanswered = (user("hi"), asked, user(result("a"), "go on"))
    assert repaired(*unanswered, rules=BESIDE)[2] == user(result("a"), lost("b"), "go on")


def test_a_message_that_begins_with_words_gets_its_results_first():
    asked = assistant(call("a"), call("b"))
    history = (user("hi"), asked, user("wait", result("a"), "a1", result("b")))
    first = user(result("a"), result("b"), "wait", "a1")
    assert repaired(*history, rules=BESIDE) == [user("hi"), asked, first]


def test_a_made_up_result_stands_in_its_place_among_those_with_something_beside():
    asked = assistant(call("a"), call("b"), call("c"))
    history = (asked, user(result("a"), "a1", result("c"), "c1"))
    whole = user(result("a"), "a1", lost("b"), result("c"), "c1")
    assert repaired(*history, rules=BESIDE) == [asked, whole]


def test_results_in_messages_of_their_own_keep_what_follows_them():
    asked = assistant(call("a"), call("b"))
    history = (user("hi"), asked, user(result("a"), "a1"), user(result("b"), "b1"))
    rules = HistoryRules(alternate=True, results_first=False)
    assert repaired(*history, rules=rules) == [
        user("hi"),
        asked,
        user(result("a"), "a1", result("b"), "b1"),
    ]


def test_the_alphabet_of_ids_is_made_once() -> None:
    messages = (
        Message(role="user", parts=(Text("Hi"),)),
        Message(role="assistant", parts=(ToolCall(id="toolu_1", name="f"),)),
        Message(role="user", parts=(ToolResult(call_id="toolu_1"),)),
    )
    rules = HistoryRules(id_characters="a-f", id_length=4)
    repair(messages, Origin("x"), rules)
    made = _alphabet.cache_info().misses
    again = repair(messages, Origin("x"), rules)
    assert _alphabet.cache_info().misses == made
    assert set(again.messages[1].calls[0].id) <= set("abcdef")
