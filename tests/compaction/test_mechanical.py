import json
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.histories import (
    SEAL,
    SURROUNDINGS,
    call,
    histories,
    media,
    model,
    result,
    unpaired,
    user,
    words,
)
from toolwire.compaction.mechanical import (
    SMALLEST,
    as_text,
    clip,
    facts,
    shorten_mechanically,
    shorter,
    weight,
)
from toolwire.compaction.plan import ACKNOWLEDGED, is_prompt
from toolwire.compaction.tokens import of_message, of_text
from toolwire.messages import Message, Origin, Refusal, ServerBlock, Text, Thinking, ToolCall

TARGETS = st.sampled_from([SMALLEST, 700, 1_500, 5_000, 20_000])


def exchange(number: int, size: int = 400) -> tuple[Message, ...]:
    return (
        user(f"question {number}"),
        model(call(f"c{number}", absolute_path=f"/project/{number}.py")),
        user(result(f"c{number}", "z" * size)),
        model(f"answer {number}"),
    )


def last_prompt(said: tuple[Message, ...]) -> Message:
    return next(message for message in reversed(said) if is_prompt(message))


def test_a_conversation_that_fits_stays_as_it_is():
    said = (*SURROUNDINGS, *exchange(1))
    assert shorten_mechanically(said, target=weight(said)) == said


def test_whole_exchanges_go_oldest_first_and_facts_of_them_stay():
    said = (*SURROUNDINGS, *(m for n in range(20) for m in exchange(n)), user("and now?"))
    kept = shorten_mechanically(said, target=1_000)
    notes = kept[2].text
    assert kept[:2] == SURROUNDINGS
    assert kept[3] == model(ACKNOWLEDGED)
    assert kept[4] in said
    assert kept[5:] == said[len(said) - len(kept[5:]) :]
    assert len(kept) > 10
    assert notes.startswith("<earlier_conversation>")
    assert "- question 0\n" in notes
    assert "- /project/0.py (read_file)\n" in notes
    assert "- question 14\n" in notes


def test_one_giant_result_is_cut_before_anything_else_is_dropped():
    said = (*SURROUNDINGS, *exchange(1), *exchange(2, 400_000), user("and now?"))
    kept = shorten_mechanically(said, target=2_000)
    assert [message.role for message in kept] == [message.role for message in said]
    assert kept[:8] == said[:8]
    assert "characters left out" in kept[8].results[0].text
    assert kept[9:] == said[9:]


def test_a_turn_in_the_middle_of_its_work_keeps_its_prompt_word_for_word():
    prompt = user("fix everything, please")
    loop = [
        message
        for number in range(40)
        for message in (model(call(f"c{number}")), user(result(f"c{number}", "z" * 400)))
    ]
    kept = shorten_mechanically((*SURROUNDINGS, prompt, *loop), target=1_500)
    assert kept[2].text.startswith("<earlier_conversation>")
    assert kept[3:5] == (model(ACKNOWLEDGED), prompt)
    assert kept[5:] == tuple(loop[len(loop) - len(kept[5:]) :])


def test_sealed_thinking_too_long_to_send_is_reported_not_cut():
    sealed = model(Thinking("t" * 40_000, SEAL), call("a"))
    kept = shorten_mechanically(
        (*SURROUNDINGS, user("go"), sealed, user(result("a", "42"))), target=1_000
    )
    assert kept[:2] == SURROUNDINGS
    assert "The last calls answered:\nread_file: 42" in kept[2].text
    assert kept[3:] == (model(ACKNOWLEDGED), user("go"))


def test_surroundings_larger_than_the_target_are_cut_last_of_all():
    front = (user("tree " * 20_000), SURROUNDINGS[1])
    kept = shorten_mechanically((*front, user("go")), target=1_000)
    assert weight(kept) <= 1_000
    assert kept[0].text.startswith("tree tree")
    assert "characters left out" in kept[0].text
    assert kept[-1] == user("go")


def test_a_prompt_larger_than_the_target_keeps_its_two_ends():
    kept = shorten_mechanically(
        (*SURROUNDINGS, user("start " + "x" * 90_000 + " end")), target=1_000
    )
    assert weight(kept) <= 1_000
    assert kept[-1].text.startswith("start xxx")
    assert kept[-1].text.endswith("xxx end")


def test_facts_name_prompts_files_commands_and_the_last_steps():
    items = [{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}]
    said = (
        user("<state_snapshot>\nbefore\n</state_snapshot>"),
        model(ACKNOWLEDGED),
        user("mend\n  the parser"),
        model(call("a", absolute_path="/p/a.py"), call("b", "replace", file_path="/p/a.py")),
        user(result("a"), result("b")),
        model(call("c", "run_shell_command", command="make test"), call("d", "todo", items=items)),
        user(result("c"), result("d")),
        model(call("e", "read_many_files", paths=["x.py", "y.py"])),
        user(result("e")),
    )
    assert facts(said, 1_000) == (
        "<earlier_conversation>\n"
        "Earlier parts of this conversation were left out to make room. Known of them:\n"
        "<state_snapshot>\nbefore\n</state_snapshot>\n"
        "The user asked:\n- mend the parser\n"
        "The list of steps was last:\n- [x] look\n- [~] mend\n"
        "Files named in calls:\n- /p/a.py (read_file, replace)\n- x.py (read_many_files)\n"
        "- y.py (read_many_files)\n"
        "Commands run:\n- make test\n"
        "</earlier_conversation>"
    )


def test_facts_carry_earlier_facts_on():
    first = facts((user("the very first question"),), 500)
    again = facts((user(first), model(ACKNOWLEDGED), user("another")), 500)
    assert "- the very first question\n" in again
    assert "- another\n" in again
    assert again.count("<earlier_conversation>") == 1


def test_a_text_keeps_its_two_ends():
    text = "".join(f"{number:05}\n" for number in range(1_000))
    short = clip(text, 100)
    assert short.startswith("00000\n")
    assert short.endswith("00999\n")
    head, left_out, tail = re.split(r"\n\[… ([\d,]+) characters left out …\]\n", short)
    assert len(head) + int(left_out.replace(",", "")) + len(tail) == len(text)
    assert of_text(short) <= 100


def test_long_arguments_stay_arguments():
    made = call("a", "write_file", path="x.py", content="c" * 9_000, lines=[1, "d" * 9_000])
    short = shorter(model(made), 100).calls[0]
    arguments = json.loads(short.arguments)
    assert arguments["path"] == "x.py"
    assert arguments["lines"][0] == 1
    assert "characters left out" in arguments["content"]
    assert of_message(model(short)) < 250


def test_what_cannot_be_cut_is_left_alone():
    sealed = Thinking("t" * 4_000, SEAL)
    block = ServerBlock(origin=Origin("gemini"), kind="search", data="x" * 4_000)
    broken = ToolCall(id="a", name="add", arguments='{"x": "' + "y" * 4_000)
    message = model(sealed, block, broken, Refusal("r" * 4_000))
    short = shorter(message, 50)
    assert short.parts[:3] == (sealed, block, broken)
    assert "characters left out" in short.parts[3].text  # type: ignore[union-attr]


@given(text=words, tokens=st.integers(0, 300))
def test_a_clipped_text_is_never_above_its_size(text: str, tokens: int):
    short = clip(text, tokens)
    assert of_text(short) <= tokens
    assert short == text or of_text(text) > tokens


@given(parts=st.lists(st.builds(Text, words) | media, max_size=4), tokens=st.integers(8, 500))
def test_a_message_told_as_text_is_never_above_its_size(parts: list, tokens: int):
    assert of_message(as_text(Message(role="user", parts=tuple(parts)), tokens)) <= tokens


@settings(max_examples=40)
@given(said=histories(), tokens=st.integers(40, 600), latest=st.booleans())
def test_facts_are_never_above_their_size(said: tuple[Message, ...], tokens: int, latest: bool):
    assert of_text(facts(said, tokens, latest=latest)) <= tokens


@settings(max_examples=100)
@given(said=histories(), target=TARGETS)
def test_any_conversation_is_brought_below_the_target_whole(said: tuple[Message, ...], target: int):
    kept = shorten_mechanically(said, target=target)
    assert weight(kept) <= target
    assert weight(kept) <= weight(said)
    assert unpaired(kept) == []
    assert kept[: len(SURROUNDINGS)] == SURROUNDINGS
    assert shorten_mechanically(kept, target=target) == kept
    last = last_prompt(said)
    if of_message(last) <= target // 2:
        assert last in kept


@settings(max_examples=40)
@given(said=histories(), target=TARGETS, context=st.integers(0, 6))
def test_any_number_of_messages_may_stand_in_front(
    said: tuple[Message, ...], target: int, context: int
):
    kept = shorten_mechanically(said, target=target, context=context)
    assert weight(kept) <= target
    assert unpaired(kept) == []
