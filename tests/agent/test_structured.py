import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.agent.test_turn import Stage
from tests.fakes.scripted import Scripted, calls, says
from toolwire.agent.events import MessageAdded, Noticed, TurnEnd
from toolwire.agent.structured import OutputSchema
from toolwire.errors import BadInput, InvalidOutput
from toolwire.events import StopReason

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ADA = '{"name": "Ada", "age": 36}'


class Person(msgspec.Struct, frozen=True):
    name: str
    age: int


def schema(**more: Any) -> OutputSchema:
    return OutputSchema(schema=PERSON, **more)


@pytest.mark.parametrize(
    "text",
    [ADA, f"\n{ADA}\n", f"```json\n{ADA}\n```", f"```\n{ADA}\n```\n", f"```JSON\n{ADA}\n```"],
)
def test_a_valid_answer_is_read_as_its_value(text: str):
    assert schema().read(text) == {"name": "Ada", "age": 36}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("Ada is 36", "the answer is not JSON"),
        (f"Here it is: {ADA}", "the answer is not JSON"),
        (f"{ADA} {ADA}", "the answer is not JSON"),
        ("[" * 5000, "nested too deeply"),
        ("[1]", "answer must be object"),
        ('"name"', "answer must be object"),
        ('{"name": "Ada"}', "answer must have required property 'age'"),
        ('{"name": "Ada", "age": -1}', "answer/age must be >= 0"),
        ('{"name": "Ada", "age": 1, "x": 2}', "answer has no 'x'"),
    ],
)
def test_an_answer_that_does_not_fit_says_what_is_wrong(text: str, words: str):
    with pytest.raises(InvalidOutput, match=words):
        schema().read(text)


def test_a_schema_whose_root_is_a_list_is_applied_too():
    numbers = OutputSchema(schema={"type": "array", "items": {"type": "integer"}, "minItems": 1})
    assert numbers.read("[1, 2]") == [1, 2]
    with pytest.raises(InvalidOutput, match="fewer than 1 items"):
        numbers.read("[]")


def test_the_callers_object_is_made_of_the_value_and_may_refuse_it():
    def adult(value: Any) -> Person:
        person = msgspec.convert(value, Person)
        if person.age < 18:
            raise ValueError(f"{person.name} is too young")
        return person

    held = schema(convert=adult)
    assert held.read(ADA) == Person("Ada", 36)
    with pytest.raises(InvalidOutput, match="Bob is too young"):
        held.read('{"name": "Bob", "age": 3}')


@pytest.mark.parametrize(
    "broken", [{"type": "objekt"}, {"$ref": "https://example.com/x.json"}, {"minimum": "one"}]
)
def test_a_schema_that_cannot_be_used_is_refused_by_name(broken: dict[str, Any]):
    with pytest.raises(BadInput, match=r"^person\.json cannot be used: ."):
        OutputSchema(schema=broken).check("person.json")


def test_an_answer_that_fits_ends_the_turn_with_its_json(tmp_path: Path):
    stage = Stage(tmp_path, Scripted(says(f"```json\n{ADA}\n```")), output=schema())
    asyncio.run(stage.run())
    assert (stage.ended.reason, stage.ended.output) == (TurnEnd.DONE, ADA)
    assert not stage.of(Noticed)


def test_an_answer_that_does_not_fit_is_requested_again_with_what_is_wrong(tmp_path: Path):
    model = Scripted(calls(("1", "echo", {"x": "a"})), says("Ada, 36"), says(ADA))
    stage = Stage(tmp_path, model, output=schema())
    request = asyncio.run(stage.run())
    assert (stage.ended.reason, stage.ended.output, len(model.asked)) == (TurnEnd.DONE, ADA, 3)
    (notice,) = stage.of(Noticed)
    assert notice.kind == "output"
    assert "is not JSON" in notice.message
    assert notice.message.endswith("asking again (1 of 2)")
    correction = request.messages[-2]
    assert correction.text.startswith("Your answer cannot be used:\nthe answer is not JSON")
    assert MessageAdded(message=correction, context=True) in stage.events


def test_after_the_last_try_the_turn_fails_with_a_kind_of_its_own(tmp_path: Path):
    model = Scripted(says("no"), says("no"), says('{"name": "Ada"}'))
    stage = Stage(tmp_path, model, output=schema())
    asyncio.run(stage.run())
    assert (stage.ended.reason, stage.ended.error) == (TurnEnd.FAILED, "invalid_output")
    assert stage.ended.detail == (
        "3 answers did not fit the JSON Schema; the last: answer must have required property 'age'"
    )
    assert stage.ended.output == ""


@pytest.mark.parametrize("reason", [StopReason.LENGTH, StopReason.REFUSAL])
def test_an_answer_that_was_cut_or_refused_is_not_requested_again(
    tmp_path: Path, reason: StopReason
):
    model = Scripted(says("{", reason))
    stage = Stage(tmp_path, model, output=schema())
    asyncio.run(stage.run())
    assert len(model.asked) == 1
    assert stage.ended.reason == reason.value
