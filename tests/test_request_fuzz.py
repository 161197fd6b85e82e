"""Damaged requests: a value or a typed error, and a batch that goes on."""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests import request_fuzz as fuzz
from toolwire import dialects
from toolwire.cli import convert, decode
from toolwire.wire.json_access import JsonObject

DIALECTS = dialects.NAMES


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_wrong_type_anywhere_is_a_typed_error(dialect: str) -> None:
    assert fuzz.failures(dialect, fuzz.every_wrong_type(dialect), fuzz.decode, Counter()) == {}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_vendors_rules_take_any_body(dialect: str) -> None:
    assert fuzz.failures(dialect, fuzz.every_wrong_type(dialect), fuzz.check, Counter()) == {}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_damaged_requests_convert_or_end_in_a_typed_error(dialect: str) -> None:
    bodies = fuzz.random_bodies(dialect, 700, seed=1)
    assert fuzz.failures(dialect, bodies, fuzz.convert, Counter()) == {}


@pytest.mark.sweep
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hundred_thousand_damaged_requests(dialect: str) -> None:
    bodies = fuzz.random_bodies(dialect, 100_000, seed=2)
    assert fuzz.failures(dialect, bodies, fuzz.convert, Counter()) == {}


def lines(command: click.Command, given: Iterator[bytes]) -> list[dict[str, Any]]:
    done = CliRunner().invoke(command, ["--jsonl"], input=b"\n".join(given))
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


MEMBERS: list[tuple[click.Command, dict[str, Any]]] = [
    (
        convert.convert_command,
        {"id": 1, "from": "openai-chat", "to": "gemini", "model": "m", "request": {"messages": []}},
    ),
    (decode.decode_command, {"id": 1, "dialect": "openai-chat", "whole": True, "body": "{}"}),
    (convert.schema_command, {"id": 1, "to": "gemini", "schema": {"type": "object"}}),
]


@pytest.mark.parametrize(("command", "line"), MEMBERS, ids=["convert", "decode", "schema"])
def test_a_batch_answers_every_line_whatever_is_in_it(
    command: click.Command, line: dict[str, Any]
) -> None:
    deep = b"[" * 900 + b"]" * 900
    bad = [json.dumps({**line, key: wrong}).encode() for key in line for wrong in fuzz.WRONG]
    bad += [b'{"id":' + deep + b"}", deep, b"{", b'"\xff"', b'{"id":1e999}', b"null"]
    bad += [b'{"id":2,"%s":%s}' % (key.encode(), deep) for key in line]
    last = json.dumps({**line, "id": "last"}).encode()
    answers = lines(command, chain(bad, [last]))
    assert len(answers) == len(bad) + 1
    assert answers[-1]["id"] == "last"


def test_damaged_requests_in_a_batch_cost_no_other_line() -> None:
    bodies = list(fuzz.random_bodies("anthropic-messages", 200, seed=3))
    line = b'{"id":%d,"from":"anthropic-messages","to":"openai-chat","request":%s}'
    given = [line % (number, body.replace(b"\n", b" ")) for number, body in enumerate(bodies)]
    answers = lines(convert.convert_command, iter(given))
    assert len(answers) == len(bodies)
    assert all(answer.get("error", {}).get("kind") != "internal" for answer in answers)


def test_a_fault_of_ours_in_one_line_is_reported_and_the_rest_go_on() -> None:
    @click.command()
    @click.option("--jsonl", is_flag=True)
    def faulty(jsonl: bool) -> None:
        def answer(line: JsonObject) -> JsonObject:
            return {"half": 1 / line["by"]}

        convert.each_line(answer)

    given = [b'{"id":1,"by":2}', b'{"id":2,"by":0}', b'{"id":3,"by":[]}', b'{"id":4,"by":4}']
    answers = lines(faulty, iter(given))
    assert [answer["id"] for answer in answers] == [1, 2, 3, 4]
    assert answers[1]["error"] == {
        "kind": "internal",
        "message": "ZeroDivisionError: division by zero",
    }
    assert "half" in answers[3]
