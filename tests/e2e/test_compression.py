"""A conversation that outgrows its model, over real HTTP: gemini-cli's shape of a summary."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.simulated import Place
from toolwire import config
from toolwire.agent.events import AgentEvent, HistoryReplaced, TurnEnd, reader_of
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.compaction.plan import ACKNOWLEDGED
from toolwire.compaction.summary import QUESTION
from toolwire.messages import Message, Text
from toolwire.simulator import Reply, Simulator
from toolwire.simulator.script import Call, Question, Say, refused

MODEL = "google/gemini-2.5-pro"
WINDOW = 16_000
THRESHOLD = 0.7
SNAPSHOT = "<state_snapshot>\n<overall_goal>read them all</overall_goal>\n</state_snapshot>"
SCRATCHPAD = "<scratchpad>They want every note read.</scratchpad>\n"


class Reader:
    """A model that reads the note it is asked about, says what is in it, and sums up if asked."""

    def __init__(self, place: Place, summary: Reply) -> None:
        self._place = place
        self._summary = summary

    def __call__(self, question: Question) -> Reply:
        last = question.request.messages[-1]
        if last.text == QUESTION:
            return self._summary
        if last.results:
            return Reply(pieces=(Say(f"In short: {last.results[0].text}"),), delta=0)
        path = self._place.work / f"{last.text.split()[-1]}.txt"
        return Reply(pieces=(Call.of("read_file", absolute_path=str(path)),))


class Talk(msgspec.Struct, frozen=True, kw_only=True):
    """What a session sent, and what became of its history."""

    bodies: list[Any]
    refusals: list[str]
    replaced: list[HistoryReplaced]
    ends: list[TurnEnd]
    window: int

    @property
    def summaries(self) -> list[int]:
        """Which requests ask for a summary."""
        return [number for number, body in enumerate(self.bodies) if is_summary(body)]


def is_summary(body: Any) -> bool:
    return body["contents"][-1]["parts"][-1] == {"text": QUESTION}


def is_prompt(content: Any) -> bool:
    return content["role"] == "user" and all("text" in part for part in content["parts"])


def noted(number: int, lines: int) -> str:
    """Short enough not to be cut to a file when it is old."""
    return "\n".join(f"line{number}.{line}" for line in range(lines)) + "\n"


def talk(place: Place, turns: int, summary: Reply, lines: int = 300, **table: object) -> Talk:
    """A session that reads a note a turn."""
    for number in range(turns):
        (place.work / f"note{number}.txt").write_text(noted(number, lines))
    members = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
    text = f'[models."{MODEL}"]\ncontext = {WINDOW}\n[compression]\n{members}'
    (place.home / "config.toml").write_text(text)
    return asyncio.run(_talk(place, turns, summary))


async def _talk(place: Place, turns: int, summary: Reply) -> Talk:
    replaced: list[HistoryReplaced] = []

    async def hear(event: AgentEvent) -> None:
        if isinstance(event, HistoryReplaced):
            replaced.append(event)

    async with Simulator(Reader(place, summary)) as sim:
        env = place.environ(GEMINI_API_KEY="k", GOOGLE_GEMINI_BASE_URL=sim.origin)
        settings = config.load(env, place.work)
        async with open_session(
            SessionOptions(model=MODEL),
            settings=settings,
            environ=env,
            cwd=place.work,
            readers=(reader_of(hear),),
        ) as session:
            window = session.opened.info.context if session.opened.info else 0
            ends = [
                (await session.send(Message(role="user", parts=(Text(f"read note{n}"),)))).reason
                for n in range(turns)
            ]
    return Talk(
        bodies=[one.json for one in sim.requests],
        refusals=sim.refusals,
        replaced=replaced,
        ends=ends,
        window=window,
    )


def test_the_first_part_is_summed_up_and_the_rest_goes_on_behind_it(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    said = Reply(pieces=(Say(SCRATCHPAD + SNAPSHOT),))
    heard = talk(Place(tmp_path), 12, said, lines=120)
    assert heard.window == WINDOW
    assert heard.ends == [TurnEnd.DONE] * 12
    assert heard.refusals == []
    assert heard.summaries
    asked = heard.summaries[0]
    before, summary, after = heard.bodies[asked - 1 : asked + 2]

    env, ack = before["contents"][:2]
    assert summary["contents"][:2] == after["contents"][:2] == [env, ack]
    assert "<state_snapshot>" in summary["systemInstruction"]["parts"][0]["text"]
    assert summary["systemInstruction"] != before["systemInstruction"]
    assert after["systemInstruction"] == before["systemInstruction"]

    old, told, tail = summary["contents"][2:-1], after["contents"][2:4], after["contents"][4:]
    assert told == [
        {"role": "user", "parts": [{"text": SNAPSHOT}]},
        {"role": "model", "parts": [{"text": ACKNOWLEDGED}]},
    ]
    assert ACKNOWLEDGED == "Got it. Thanks for the additional context!"
    assert is_prompt(tail[0])
    # Nothing is lost between the two, and nothing is in both.
    whole = [*old, *tail]
    assert whole[: len(before["contents"]) - 2] == before["contents"][2:]
    assert [one["role"] for one in whole[len(before["contents"]) - 2 :]] == ["model", "user"]
    share = len(json.dumps(old)) / len(json.dumps(whole))
    assert 0.7 <= share < 0.95
    counted(f"compression, end to end: {share:.0%} of a conversation summed up, the rest kept")


def test_it_sets_off_at_the_share_of_the_window_that_is_set(tmp_path: Path) -> None:
    said = Reply(pieces=(Say(SNAPSHOT),))
    heard = talk(Place(tmp_path), 7, said, threshold=THRESHOLD)
    late = talk(Place(_folder(tmp_path / "late")), 7, said, threshold=0.95)
    assert heard.replaced[0].method == "summary"
    assert heard.replaced[0].before >= THRESHOLD * WINDOW > heard.replaced[0].after
    assert not late.summaries or late.summaries[0] > heard.summaries[0]


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_summary_longer_than_what_it_stands_for_is_not_used(tmp_path: Path) -> None:
    long = "".join(f"<fact>{number}</fact>" for number in range(20_000))
    said = Reply(pieces=(Say(f"<state_snapshot>{long}</state_snapshot>"),), delta=0)
    heard = talk(Place(tmp_path), 6, said)
    assert heard.ends == [TurnEnd.DONE] * 6
    assert len(heard.summaries) == 1
    asked = heard.summaries[0]
    before, after = heard.bodies[asked - 1], heard.bodies[asked + 1]
    kept = len(before["contents"])
    assert after["contents"][:kept] == before["contents"]


def test_where_no_summary_is_to_be_had_the_work_goes_on(tmp_path: Path) -> None:
    said = Reply(fault=refused(400, "no"))
    heard = talk(Place(tmp_path), 9, said)
    assert heard.ends == [TurnEnd.DONE] * 9
    assert {one.method for one in heard.replaced} & {"mechanical", "outputs"}
    assert heard.bodies[-1]["contents"][:2] == heard.bodies[0]["contents"][:2]
