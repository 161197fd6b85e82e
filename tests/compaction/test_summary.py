import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agent.histories import (
    SURROUNDINGS,
    call,
    histories,
    model,
    result,
    unpaired,
    user,
)
from tests.fakes.scripted import Scripted, calls, says
from toolwire.agent.events import AgentEvent, HistoryReplaced, Noticed, UsageCounted
from toolwire.agent.scheduler import Scheduler
from toolwire.agent.turn import run_turn
from toolwire.compaction.mechanical import weight
from toolwire.compaction.plan import ACKNOWLEDGED, CompressionRules, is_prompt
from toolwire.compaction.summary import KEEP, QUESTION, Compressor, with_old_outputs_cut
from toolwire.compaction.tokens import Tally, of_message
from toolwire.errors import ConnectionFailed, ErrorKind, ProviderError
from toolwire.events import Finished, StopReason, TextDelta, Usage
from toolwire.messages import Media, MediaKind, Message, Text
from toolwire.model import Model
from toolwire.policy.ruling import Ruling
from toolwire.request import ModelRequest, ToolChoice, ToolSpec
from toolwire.tools.registry import Registry
from toolwire.tools.spec import ToolContext, Workspace

SNAPSHOT = "<state_snapshot>\n<overall_goal>mend it</overall_goal>\n</state_snapshot>"
TOOLS = (ToolSpec(name="read_file", description="reads"),)
TOO_LONG = ProviderError(ErrorKind.CONTEXT_TOO_LONG, "prompt is too long", status=400)


def exchange(number: int, size: int = 4_000) -> tuple[Message, ...]:
    return (
        user(f"question {number}"),
        model(call(f"c{number}", absolute_path=f"/p/{number}.py")),
        user(result(f"c{number}", f"{number} " + "z" * size)),
        model(f"answer {number}"),
    )


def asked(*messages: Message, **more) -> ModelRequest:
    said = (*SURROUNDINGS, *messages)
    return ModelRequest(model="m", messages=said, tools=TOOLS, system=(Text("be exact"),), **more)


TALK = asked(*(m for n in range(10) for m in exchange(n)), user("and now?"))
SIZE = Tally().size(TALK)


class Heard:
    """Everything that was told."""

    def __init__(self) -> None:
        self.events: list[AgentEvent] = []

    async def __call__(self, event: AgentEvent) -> None:
        self.events.append(event)

    @property
    def notices(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Noticed)]


def compressor(model: Model, tmp_path: Path, window: int = SIZE + 100, **more) -> Compressor:
    return Compressor(model, window=window, temp=tmp_path, **more)


def shortened(made: Compressor, request: ModelRequest = TALK, *, force: bool = False):
    return asyncio.run(made(request, force=force))


def without_files(**more) -> CompressionRules:
    """Outputs stay where they are: the window decides how many may."""
    return CompressionRules(outputs=10**9, keep=0.3, **more)


def spoken(text: str) -> Scripted:
    return Scripted(says(text))


def test_a_short_conversation_is_left_alone(tmp_path: Path):
    asking = spoken(SNAPSHOT)
    assert shortened(compressor(asking, tmp_path, window=SIZE * 2)) is None
    assert asking.asked == []


def test_where_the_window_is_not_known_nothing_is_done_unasked(tmp_path: Path):
    assert shortened(compressor(spoken(SNAPSHOT), tmp_path, window=0)) is None
    replaced = shortened(compressor(spoken(SNAPSHOT), tmp_path, window=0), force=True)
    assert replaced is not None
    assert replaced.method == "summary"


def test_older_outputs_in_files_are_enough_where_they_are_enough(tmp_path: Path):
    # Long outputs: what is left of one names its file, and the file's path may be long too.
    talk = asked(*(m for n in range(10) for m in exchange(n, 20_000)), user("and now?"))
    size = Tally().size(talk)
    asking = spoken(SNAPSHOT)
    replaced = shortened(compressor(asking, tmp_path, window=size + 100), talk)
    assert isinstance(replaced, HistoryReplaced)
    assert replaced.method == "outputs"
    assert replaced.before == size
    assert replaced.after < 0.7 * (size + 100)
    assert asking.asked == []
    assert len(replaced.messages) == len(talk.messages)
    assert unpaired(replaced.messages) == []


def test_a_cut_output_names_the_file_that_holds_it_whole(tmp_path: Path):
    said = (*exchange(1, 90_000), *exchange(2), *exchange(3))
    kept = with_old_outputs_cut(said, budget=3_000, folder=tmp_path / "kept")
    (file,) = (tmp_path / "kept").iterdir()
    assert file.read_text() == "1 " + "z" * 90_000
    text = kept[2].results[0].text
    assert f"For full output see: {file}\n" in text
    assert len(text) < 2_500
    assert kept[3:] == said[3:]
    assert with_old_outputs_cut(kept, budget=0, folder=tmp_path / "other")[2] == kept[2]


def test_equal_ids_of_two_replies_are_two_files(tmp_path: Path):
    def reads(text: str) -> tuple[Message, Message]:
        return model(call("call_0")), user(result("call_0", text * 9_000))

    said = (user("go"), *reads("a"), *reads("b"), *reads("c"))
    with_old_outputs_cut(said, budget=0, folder=tmp_path)
    assert {file.read_text()[0] for file in tmp_path.iterdir()} == {"a", "b"}


def test_an_old_image_is_kept_in_a_file_too(tmp_path: Path):
    image = Media.of_bytes(MediaKind.IMAGE, "image/png", b"\x89PNG")
    said = (user("go"), model(call("a")), user(result("a"), image), *exchange(2))
    kept = with_old_outputs_cut(said, budget=0, folder=tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.suffix == ".png"
    assert file.read_bytes() == b"\x89PNG"
    assert kept[2] == user(result("a"), f"[image/png, 4 bytes, stored in: {file}]")


def test_an_image_that_is_only_an_address_stays(tmp_path: Path):
    image = Media(kind=MediaKind.IMAGE, url="https://example.com/a.png")
    said = (user("go"), model(call("a")), user(result("a"), image), *exchange(2))
    assert with_old_outputs_cut(said, budget=0, folder=tmp_path) == said


def test_outputs_stay_where_no_file_can_be_written(tmp_path: Path):
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    said = (*exchange(1, 90_000), *exchange(2))
    assert with_old_outputs_cut(said, budget=0, folder=in_the_way / "kept") == said


def test_a_summary_takes_the_place_of_the_old_part(tmp_path: Path):
    asking = spoken(f"<scratchpad>hm</scratchpad>\n{SNAPSHOT}\nThat is all.")
    heard = Heard()
    made = compressor(asking, tmp_path, emit=heard, price=lambda usage: 0.25, clock=lambda: 7.0)
    replaced = shortened(made, force=True)
    assert replaced is not None
    assert replaced.method == "summary"
    assert replaced.messages[:4] == (*SURROUNDINGS, user(SNAPSHOT), model(ACKNOWLEDGED))
    assert replaced.messages[4:] == TALK.messages[len(TALK.messages) - len(replaced.messages[4:]) :]
    assert replaced.after < replaced.before == SIZE
    assert heard.events == [
        UsageCounted(model="m", usage=Usage(input=10, output=5), cost=0.25, purpose="compression")
    ]


def test_words_of_the_user_say_what_the_summary_keeps(tmp_path: Path):
    asking = spoken(SNAPSHOT)
    made = compressor(asking, tmp_path, window=SIZE * 9)
    asyncio.run(made(TALK, force=True, keep="the names of all tables"))
    (question,) = asking.asked
    assert question.messages[-1] == user(f"{QUESTION}\n\n{KEEP}\nthe names of all tables")


def test_the_question_holds_the_old_part_and_its_tools_but_lets_none_be_called(tmp_path: Path):
    asking = spoken(SNAPSHOT)
    shortened(compressor(asking, tmp_path, window=SIZE * 9), force=True)
    (question,) = asking.asked
    assert question.messages[:-1] == TALK.messages[: len(question.messages) - 1]
    assert question.messages[-1] == user(QUESTION)
    assert unpaired(question.messages) == []
    assert question.tools == TOOLS
    assert question.tool_choice == ToolChoice(mode="none")
    assert "<current_plan>" in question.system[0].text


def test_an_old_part_without_calls_needs_no_tools(tmp_path: Path):
    asking = spoken(SNAPSHOT)
    said = [m for n in range(9) for m in (user(f"q{n} " + "x" * 900), model("y" * 900))]
    shortened(compressor(asking, tmp_path), asked(*said, user("now?")), force=True)
    assert asking.asked[0].tools == ()
    assert asking.asked[0].tool_choice is None


@pytest.mark.parametrize(
    "script",
    [
        says("I would rather not."),
        says(""),
        says(SNAPSHOT, StopReason.LENGTH),
        says("no", StopReason.REFUSAL),
        says("<state_snapshot>cut off"),
        [TextDelta(SNAPSHOT)],
        calls(("a", "read_file", {"absolute_path": "/p"})),
        [ConnectionFailed("no route to the server")],
        [ProviderError(ErrorKind.QUOTA, "out of credits", status=402)],
    ],
)
def test_without_a_summary_a_full_conversation_is_shortened_mechanically(script, tmp_path: Path):
    heard = Heard()
    made = compressor(Scripted(script), tmp_path, SIZE, emit=heard, rules=without_files())
    request = asked(
        *(m for n in range(40) for m in (user(f"q{n}"), model("y" * 900))), user("and now?")
    )
    made.window = Tally().size(request)
    replaced = shortened(made, request)
    assert replaced is not None
    assert replaced.method == "mechanical"
    assert replaced.after < 0.7 * made.window
    assert replaced.messages[:2] == SURROUNDINGS
    assert replaced.messages[-1] == user("and now?")
    assert len(heard.notices) == 1
    assert heard.notices[0].startswith("the conversation could not be summarised: ")


def test_while_there_is_room_a_failed_summary_is_only_told_and_tried_again_later(tmp_path: Path):
    asking = Scripted(
        [ConnectionFailed("no route")], [ConnectionFailed("no route")], says(SNAPSHOT)
    )
    talk = [m for n in range(40) for m in (user(f"q{n}"), model("y" * 900))]
    request = asked(*talk, user("and now?"))
    heard = Heard()
    made = compressor(asking, tmp_path, int(Tally().size(request) * 1.3), emit=heard)
    assert shortened(made, request) is None
    assert len(heard.notices) == 1
    assert shortened(made, request) is None
    assert len(asking.asked) == 1
    grown = asked(*talk, user("z" * 12_000))
    shortened(made, grown)
    assert len(asking.asked) == 2


def test_a_summary_larger_than_the_conversation_is_rolled_back_until_one_is_asked_for(
    tmp_path: Path,
):
    long = f"<state_snapshot>{'x' * 400_000}</state_snapshot>"
    asking = Scripted(says(long), says(SNAPSHOT))
    request = asked(*(m for n in range(9) for m in (user(f"q{n}"), model("y" * 900))), user("so?"))
    heard = Heard()
    made = compressor(asking, tmp_path, int(Tally().size(request) * 1.3), emit=heard)
    assert shortened(made, request) is None
    assert "longer than the conversation" in heard.notices[0]
    assert shortened(made, request) is None
    assert len(asking.asked) == 1
    replaced = shortened(made, request, force=True)
    assert replaced is not None
    assert replaced.method == "summary"


def test_it_can_be_switched_off_but_not_for_those_who_ask(tmp_path: Path):
    made = compressor(spoken(SNAPSHOT), tmp_path, rules=CompressionRules(enabled=False))
    assert shortened(made) is None
    assert shortened(made, force=True) is not None


def test_a_lone_prompt_cannot_be_made_shorter_on_demand(tmp_path: Path):
    asking = spoken(SNAPSHOT)
    assert shortened(compressor(asking, tmp_path), asked(user("hi")), force=True) is None
    assert asking.asked == []


def test_an_old_part_too_long_for_the_question_is_asked_about_in_part(tmp_path: Path):
    asking = Scripted([TOO_LONG], says(SNAPSHOT))
    replaced = shortened(compressor(asking, tmp_path, SIZE // 3, rules=without_files()))
    assert replaced is not None
    assert replaced.method == "summary"
    first, second = (weight(question.messages) for question in asking.asked)
    assert second < first < SIZE // 3


def test_a_tail_too_long_by_itself_is_cut_after_the_summary(tmp_path: Path):
    request = asked(
        *exchange(1), *exchange(2), user("look"), model(call("a")), user(result("a", "z" * 90_000))
    )
    window = 10_000
    replaced = shortened(compressor(spoken(SNAPSHOT), tmp_path, window), request)
    assert replaced is not None
    assert replaced.method == "summary"
    assert replaced.after < 0.7 * window
    assert replaced.messages[2] == user(SNAPSHOT)
    assert user("look") in replaced.messages


def test_what_the_vendor_counts_decides_when_it_is_time(tmp_path: Path):
    made = compressor(spoken(SNAPSHOT), tmp_path, window=SIZE * 2)
    counted = [TextDelta("hi"), Finished(reason=StopReason.END, usage=Usage(input=int(SIZE * 1.5)))]

    async def ask() -> None:
        async for _ in made.watching(Scripted(counted))(TALK):
            pass

    assert shortened(made) is None
    asyncio.run(ask())
    assert made.size(TALK) == int(SIZE * 1.5)
    assert shortened(made) is not None


def test_a_refusal_for_length_teaches_the_window(tmp_path: Path):
    made = compressor(Scripted([ConnectionFailed("offline")]), tmp_path, window=1_000_000)
    refusal = ProviderError(
        ErrorKind.CONTEXT_TOO_LONG,
        f"prompt is too long: {SIZE * 2} tokens > {SIZE} maximum",
        status=400,
    )

    async def ask() -> None:
        async for _ in made.watching(Scripted([refusal]))(TALK):
            pass

    with pytest.raises(ProviderError):
        asyncio.run(ask())
    assert made.window == SIZE
    assert made.size(TALK) == SIZE * 2
    replaced = shortened(made, force=True)
    assert replaced is not None
    assert replaced.after < 0.7 * SIZE


@pytest.mark.parametrize("window", [0, 1_000_000])
def test_a_refusal_without_figures_still_makes_the_request_shorter(window: int, tmp_path: Path):
    made = compressor(Scripted([ConnectionFailed("offline")]), tmp_path, window=window)
    made.too_long(TALK, TOO_LONG)
    replaced = shortened(made, force=True)
    assert replaced is not None
    assert weight(replaced.messages) < 0.7 * weight(TALK.messages)


def test_room_for_the_answer_is_left(tmp_path: Path):
    request = asked(*TALK.messages[2:], max_output_tokens=SIZE)
    window = int(SIZE * 1.9)
    assert shortened(compressor(spoken(SNAPSHOT), tmp_path, window)) is None
    assert shortened(compressor(spoken(SNAPSHOT), tmp_path, window), request) is not None


def test_a_second_summary_is_made_of_the_first(tmp_path: Path):
    asking = Scripted(says(SNAPSHOT), says(SNAPSHOT.replace("mend", "ship")))
    made = compressor(asking, tmp_path)
    first = shortened(made, force=True)
    assert first is not None
    more = asked(*first.messages[2:], *(m for n in range(20, 30) for m in exchange(n)))
    second = shortened(made, more, force=True)
    assert second is not None
    assert user(SNAPSHOT) in asking.asked[1].messages
    assert "ship it" in second.messages[2].text
    assert user(SNAPSHOT) not in second.messages


ANSWERS = [
    says(SNAPSHOT),
    says(f"<state_snapshot>{'x' * 30_000}</state_snapshot>"),
    says("no"),
    [ConnectionFailed("offline")],
    [TOO_LONG],
]


@settings(max_examples=60)
@given(
    said=histories(),
    window=st.sampled_from([800, 3_000, 20_000, 200_000]),
    answer=st.sampled_from(ANSWERS),
    force=st.booleans(),
)
def test_whatever_comes_back_is_whole_and_smaller(
    said: tuple[Message, ...],
    window: int,
    answer: list,
    force: bool,
    tmp_path_factory: pytest.TempPathFactory,
):
    request = ModelRequest(model="m", messages=said)
    made = Compressor(Scripted(answer), window=window, temp=tmp_path_factory.mktemp("t"))
    replaced = shortened(made, request, force=force)
    size = Tally().size(request)
    if replaced is None:
        assert size < 0.92 * window or size < 400
        return
    kept = replaced.messages
    assert unpaired(kept) == []
    assert weight(kept) < weight(said)
    assert replaced.after <= replaced.before == size
    assert kept[:2] == SURROUNDINGS
    last = next(message for message in reversed(said) if is_prompt(message))
    assert last in kept or of_message(last) > 0.7 * 0.8 * window // 2
    if size >= 0.92 * window and 0.7 * 0.8 * window > 400:
        assert weight(kept) < 0.7 * window


def test_a_turn_whose_request_is_refused_for_length_goes_on_with_a_shorter_one(tmp_path: Path):
    refusal = ProviderError(
        ErrorKind.CONTEXT_TOO_LONG, f"prompt is too long: {SIZE} tokens > {SIZE // 2} maximum"
    )
    asking = Scripted([refusal], says("done"))
    made = compressor(spoken(SNAPSHOT), tmp_path, window=1_000_000)
    heard = Heard()
    context = ToolContext(workspace=Workspace(roots=(tmp_path,), temp=tmp_path, home=tmp_path))
    scheduler = Scheduler(Registry(()), context=context, policy=_deny, emit=heard)
    seen: list[tuple[Message, ...]] = []
    asyncio.run(
        run_turn(
            TALK,
            model=made.watching(asking),
            scheduler=scheduler,
            changed=seen.append,
            shorten=made,
        )
    )
    (replaced,) = (event for event in heard.events if isinstance(event, HistoryReplaced))
    assert made.window == SIZE // 2
    assert replaced.method == "summary"
    assert asking.asked[1].messages == replaced.messages
    assert seen == [replaced.messages, (*replaced.messages, model("done"))]
    assert Tally().size(asking.asked[1]) < 0.7 * made.window


def _deny(*given: object) -> Ruling:
    raise AssertionError(given)
