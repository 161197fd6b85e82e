import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.scripted import Scripted, calls, says
from tests.fakes.simulated import Place, Simulated
from toolwire import (
    Agent,
    BadInput,
    Effect,
    Finished,
    Limits,
    ModelEvent,
    ModelRequest,
    NoOutput,
    StopReason,
    TextDelta,
    TurnEnd,
    TurnFailed,
    tool,
)
from toolwire.library.result import PartialOutput, output_of
from toolwire.simulator import replies, reply


class City(msgspec.Struct):
    name: str
    people: int


@dataclass
class Trip:
    """A journey."""

    to: City
    days: int = 1
    notes: list[str] = field(default_factory=list[str])


class Card(TypedDict, total=False):
    title: str
    tags: list[str]


class Mood(StrEnum):
    GOOD = "good"
    BAD = "bad"


class Point(NamedTuple):
    x: int
    y: int


class Person(pydantic.BaseModel):
    name: str
    born: date
    friends: "list[Person]" = []

    @pydantic.field_validator("name")
    @classmethod
    def not_empty(cls, name: str) -> str:
        if not name:
            raise ValueError("a person has a name")
        return name


ADA = Person(name="Ada", born=date(1815, 12, 10))


@pytest.mark.parametrize(
    ("kind", "text", "made"),
    [
        (City, '{"name": "Rome", "people": 3}', City("Rome", 3)),
        (
            Trip,
            '{"to": {"name": "Rome", "people": 3}, "notes": ["hot"]}',
            Trip(City("Rome", 3), 1, ["hot"]),
        ),
        (Card, '{"title": "x"}', {"title": "x"}),
        (list[int], '{"result": [1, 2]}', [1, 2]),
        (int, '{"result": 7}', 7),
        (bool, '{"result": false}', False),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Mood, '{"result": "bad"}', Mood.BAD),
        (Literal["a", "b"], '{"result": "b"}', "b"),
        (City | None, '{"result": null}', None),
        (list[City], '{"result": [{"name": "Rome", "people": 3}]}', [City("Rome", 3)]),
        (tuple[int, str], '{"result": [1, "a"]}', (1, "a")),
        (Point, '{"result": [1, 2]}', Point(1, 2)),
        (date, '{"result": "2026-01-02"}', date(2026, 1, 2)),
        (Path, '{"result": "a/b"}', Path("a/b")),
        (Annotated[int, msgspec.Meta(ge=1)], '{"result": 1}', 1),
        (Person, '{"name": "Ada", "born": "1815-12-10"}', ADA),
        (
            list[Person],
            '{"result": [{"name": "Ada", "born": "1815-12-10"}]}',
            [ADA],
        ),
        (City, '```json\n{"name": "Rome", "people": 3}\n```', City("Rome", 3)),
    ],
)
def test_a_type_goes_in_and_an_object_comes_out(kind: Any, text: str, made: object) -> None:
    with Agent(Scripted(says(text)), output=kind) as agent:
        result = agent.run_sync("?")
    assert (result.output, type(result.output)) == (made, type(made))
    assert result.text == text


def test_the_schema_is_in_the_system_prompt() -> None:
    model = Scripted(says('{"name": "Rome", "people": 3}'))
    with Agent(model, output=City, system="Be brief.") as agent:
        agent.run_sync("?")
    (system,) = (part.text for part in model.asked[0].system)
    assert system.startswith("Be brief.\n\nYour final answer must be one JSON value")
    assert '"people":{"type":"integer"}' in system


@pytest.mark.parametrize("dialect", ["anthropic-messages", "openai-chat", "gemini"])
def test_every_vendor_takes_the_format(dialect: str, tmp_path: Path) -> None:
    with Simulated(replies('{"name": "Rome", "people": 3}')) as sim:
        upstream = sim.upstream(dialect, key="k", model="m")
        with Agent(upstream, output=City, environ=Place(tmp_path).environ()) as agent:
            assert agent.run_sync("?").output == City("Rome", 3)
        assert sim.refusals == []


@pytest.mark.parametrize(
    ("kind", "wrong", "words"),
    [
        (City, "Rome", "not JSON"),
        (City, '{"name": "Rome"}', "required property 'people'"),
        (City, '{"name": "Rome", "people": "many"}', "answer/people must be integer"),
        (Person, '{"name": "", "born": "1815-12-10"}', "answer/name: Value error, a person has"),
    ],
)
def test_an_answer_that_does_not_fit_is_requested_again(kind: Any, wrong: str, words: str) -> None:
    right = '{"name": "Ada", "people": 3, "born": "1815-12-10"}'
    right = right.replace(', "born": "1815-12-10"' if kind is City else ', "people": 3', "")
    model = Scripted(says(wrong), says(right))
    with Agent(model, output=kind) as agent:
        result = agent.run_sync("?")
    assert (result.output.name, result.requests) == ("Ada", 2)
    assert words in model.asked[1].messages[-1].text or words == "not JSON"


def test_it_is_requested_again_twice_and_then_an_error() -> None:
    model = Scripted(says("no"))
    with Agent(model, output=City) as agent:
        with pytest.raises(TurnFailed, match="did not fit the JSON Schema") as failed:
            agent.run_sync("?")
        assert len(model.asked) == 3
        assert (failed.value.kind, failed.value.result.requests) == ("invalid_output", 3)
        with pytest.raises(NoOutput):
            _ = failed.value.result.output


def test_a_check_of_the_type_itself_is_given_back_to_the_model() -> None:
    class Even(msgspec.Struct):
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("the number must be even")

    model = Scripted(says('{"number": 3}'), says('{"number": 4}'))
    with Agent(model, output=Even) as agent:
        assert agent.run_sync("?").output == Even(4)
    assert "the number must be even" in model.asked[1].messages[-1].text


def test_members_are_in_the_order_of_the_type() -> None:
    class Step(TypedDict):
        why: str
        action: str

    class Plan(msgspec.Struct):
        thought: str
        steps: list[Step]
        answer: str

    model = Scripted(says('{"thought": "", "steps": [], "answer": ""}'))
    with Agent(model, output=Plan) as agent:
        agent.run_sync("?")
    system = model.asked[0].system[0].text
    found = [system.index(f'"{name}":{{') for name in ("thought", "steps", "answer")]
    assert found == sorted(found)
    assert system.index('"why":{') < system.index('"action":{')


def test_tools_run_before_the_typed_answer() -> None:
    @tool(effect=Effect.READ)
    def people(name: str) -> int:
        return 3

    model = Scripted(
        calls(("c1", "people", {"name": "Rome"})), says('{"name": "Rome", "people": 3}')
    )
    with Agent(model, tools=[people], output=City) as agent:
        assert agent.run_sync("?").output == City("Rome", 3)


def test_a_run_has_an_output_of_its_own() -> None:
    model = Scripted(says("Hello."), says('{"result": [1]}'), says("Bye."))
    with Agent(model) as agent:
        first = agent.run_sync("Hi")
        second = agent.run_sync("?", output=list[int])
        third = agent.run_sync("Bye")
    assert (first.output, second.output, third.output) == ("Hello.", [1], "Bye.")
    assert [bool(one.system) for one in model.asked] == [False, True, False]


def test_a_run_that_ends_early_has_no_output() -> None:
    with Agent(Scripted(says('{"name', StopReason.LENGTH)), output=City) as agent:
        result = agent.run_sync("?")
        assert (result.ok, result.stop, result.outputs) == (False, TurnEnd.LENGTH, ())
        with pytest.raises(NoOutput, match=r"ended without an output .length.: the answer was cut"):
            _ = result.output


def test_text_is_the_output_without_a_type() -> None:
    with Agent(Scripted(says("Once upon", StopReason.LENGTH))) as agent:
        assert agent.run_sync("?").output == "Once upon"


def test_a_type_that_no_model_can_write_is_refused_at_once() -> None:
    class Own:
        pass

    with pytest.raises(BadInput, match="Own cannot be described to a model"):
        Agent(Scripted(says("")), output=Own)


def test_pydantic_is_not_loaded_for_other_types() -> None:
    code = (
        "import sys, msgspec, toolwire\n"
        "class C(msgspec.Struct):\n    a: int\n"
        "toolwire.Agent('openai/gpt-5', output=C)\n"
        "assert 'pydantic' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def letters(text: str, *more: str) -> Any:
    """A model that writes letter by letter, one reply after the other."""
    waiting = [text, *more]

    async def write(request: ModelRequest) -> AsyncIterator[ModelEvent]:
        for letter in waiting.pop(0):
            yield TextDelta(letter)
        yield Finished(reason=StopReason.END)

    return write


def grown(text: str, kind: Any, *more: str) -> list[Any]:
    async def read() -> list[Any]:
        async with Agent(letters(text, *more), output=kind) as agent:
            return [one async for one in agent.stream_output("?")]

    return asyncio.run(read())


def test_texts_and_lists_grow_while_they_arrive() -> None:
    assert grown('{"title": "ab", "tags": ["c"]}', Card) == [
        {},
        {"title": ""},
        {"title": "a"},
        {"title": "ab"},
        {"title": "ab", "tags": []},
        {"title": "ab", "tags": [""]},
        {"title": "ab", "tags": ["c"]},
    ]


def test_an_object_appears_with_its_numbers() -> None:
    text = '{"result": [{"people": 3, "name": "Ro"}, {"people": 4, "name": "B"}]}'
    assert grown(text, list[City]) == [
        [],
        [City("", 3)],
        [City("R", 3)],
        [City("Ro", 3)],
        [City("Ro", 3), City("", 4)],
        [City("Ro", 3), City("B", 4)],
    ]


def test_members_with_defaults_have_them_until_they_arrive() -> None:
    seen = grown('{"to": {"people": 3, "name": "R"}, "days": 2}', Trip)
    assert seen == [
        Trip(City("", 3)),
        Trip(City("R", 3)),
        Trip(City("R", 3), 2),
    ]
    assert all(isinstance(one, Trip) for one in seen)


def test_a_word_of_a_closed_set_is_shown_when_it_is_whole() -> None:
    assert grown('{"result": "good"}', Mood) == [Mood.GOOD]


def test_models_of_pydantic_grow_too() -> None:
    seen = grown('{"born": "1815-12-10", "name": "Ada"}', Person)
    assert [one.name for one in seen] == ["A", "Ad", "Ada"]


def test_text_before_the_object_and_a_fence_are_skipped() -> None:
    assert grown('```json\n{"people": 1, "name": "R"}\n```', City)[-1] == City("R", 1)


def test_an_answer_that_is_requested_again_begins_again() -> None:
    seen = grown('{"name": "R"}', Card, '{"title": "T"}')
    assert seen[-1] == {"title": "T"}


def test_plain_text_grows() -> None:
    assert grown("abc", str) == ["a", "ab", "abc"]


def test_a_stream_that_ends_early_says_so() -> None:
    async def read() -> None:
        model = Scripted(says('{"title": "a', StopReason.LENGTH))
        async with Agent(model, output=Card) as agent:
            async for _ in agent.stream_output("?"):
                pass

    with pytest.raises(NoOutput, match="length"):
        asyncio.run(read())


def test_leaving_an_output_stream_cancels_the_turn() -> None:
    async def read() -> list[str]:
        async with Agent(letters('{"title": "abc"}', '{"title": "d"}'), output=Card) as agent:
            stream = agent.stream_output("?")
            async for one in stream:
                if one.get("title"):
                    break
            await stream.aclose()
            result = await agent.run("Again.")
            return [result.output.get("title", "")]

    assert asyncio.run(read()) == ["d"]


def test_a_long_output_costs_what_it_is_long() -> None:
    made = 0

    class Counted(msgspec.Struct):
        text: str

        def __post_init__(self) -> None:
            nonlocal made
            made += 1

    long = " ".join(map(str, range(4_000)))
    seen = grown('{"text": "' + long + '"}', Counted)
    assert seen[-1].text == long
    assert made < 700


def test_a_list_of_equal_items_is_not_a_loop() -> None:
    zeros = msgspec.json.encode({"result": [0] * 400}).decode()
    assert grown(zeros, list[int])[-1] == [0] * 400
    cities = [City("unknown", 0)] * 100
    assert grown(msgspec.json.encode({"result": cities}).decode(), list[City])[-1] == cities


def test_the_limits_of_a_run_hold_for_its_output() -> None:
    with Agent(Scripted(says("no")), output=City) as agent:
        result = agent.run_sync("?", limits=Limits(turns=1))
    assert (result.stop, result.outputs) == (TurnEnd.TURN_LIMIT, ())


def test_a_typed_child_answers_with_its_json(tmp_path: Path) -> None:
    child = Agent(Scripted(says("no"), says('{"name": "Rome", "people": 3}')), output=City)
    model = Scripted(calls(("p1", "city", {"prompt": "?"})), says("Thanks."))
    with Agent(model, tools=[child.as_tool("city", "Finds a city.")]) as agent:
        agent.run_sync("?")
        assert agent.messages[2].results[0].text == '{"name": "Rome", "people": 3}'


def test_a_vendor_streams_a_typed_answer(tmp_path: Path) -> None:
    async def read(upstream: str) -> list[Card]:
        async with Agent(upstream, output=Card, environ=Place(tmp_path).environ()) as agent:
            return [one async for one in agent.stream_output("?")]

    with Simulated(replies(reply('{"title": "Tea time", "tags": ["hot"]}', delta=4))) as sim:
        seen = asyncio.run(read(sim.upstream("openai-chat", key="k", model="m")))
        assert sim.refusals == []
    assert len(seen) > 5
    assert seen[-1] == {"title": "Tea time", "tags": ["hot"]}


class Node(msgspec.Struct):
    name: str
    size: float
    mood: Mood | None
    tags: dict[str, list[int]] = {}
    inner: "list[Node]" = []


NODES = st.recursive(
    st.builds(
        Node,
        name=st.text(max_size=8),
        size=st.floats(allow_nan=False, allow_infinity=False),
        mood=st.none() | st.sampled_from(Mood),
        tags=st.dictionaries(st.text(max_size=3), st.lists(st.integers(0, 9), max_size=2)),
    ),
    lambda inner: st.builds(
        Node,
        name=st.text(max_size=8),
        size=st.integers(-9, 9).map(float),
        mood=st.none(),
        inner=st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)


@given(node=NODES, cuts=st.lists(st.integers(1, 20), max_size=40))
def test_whatever_the_pieces_each_partial_object_is_valid_and_the_last_is_whole(
    node: Node, cuts: list[int]
) -> None:
    text = msgspec.json.encode(node).decode()
    output = output_of(Node)
    assert output is not None
    partial, at, shown = PartialOutput(output), 0, ()
    for cut in (*cuts, len(text)):
        shown = partial.add(text[at : at + cut]) or shown
        at += cut
        for one in shown:
            assert msgspec.convert(msgspec.to_builtins(one), Node) == one
    assert shown == (output.read(text),) == (node,)


@given(pieces=st.lists(st.text(max_size=6), max_size=12), kind=st.sampled_from([Node, Trip, Card]))
def test_no_text_breaks_a_partial_output(pieces: list[str], kind: Any) -> None:
    partial = PartialOutput(output_of(kind))
    for piece in ("{", *pieces):
        partial.add(piece)


def test_a_tree_too_deep_to_show_is_not_shown() -> None:
    partial = PartialOutput(output_of(dict[str, Any]))
    assert partial.add('{"a":' * 3) == ({"a": {"a": {}}},)
    # Whether it can be shown depends on the depth of the caller; it never raises.
    assert len(partial.add('{"a":' * 480)) <= 1
