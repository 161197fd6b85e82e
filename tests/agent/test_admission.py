import subprocess
import sys
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolwire.agent.admission import complaints, plainly_fits

MEMBERS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 3},
    {"type": "string", "enum": ["a"]},
    {"type": "integer", "default": 1},
    {"type": "integer", "minimum": 2},
    {"type": "number", "description": "a number"},
    {"type": "boolean"},
    {"type": "array"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object"},
    {"type": "object", "properties": {"x": {"type": "string"}}},
    {"type": ["string", "null"]},
    {},
]
VALUES = st.sampled_from(["", "text", 0, 1, 1.0, 1.5, True, None, [], [1], {}, {"x": 1}])
NAMES = st.sampled_from("abc")
SCHEMAS = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(NAMES, st.sampled_from(MEMBERS)),
        "required": st.lists(NAMES, unique=True),
    },
    optional={"additionalProperties": st.booleans(), "maxProperties": st.just(1)},
)


@given(SCHEMAS, st.dictionaries(NAMES, VALUES))
def test_what_plainly_fits_also_fits_by_the_validator(
    schema: dict[str, Any], arguments: dict[str, Any]
):
    valid = jsonschema_rs.is_valid(schema, arguments)
    assert valid or not plainly_fits(schema, arguments)
    assert (complaints(schema, arguments) == ()) == valid


PATH = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "where"},
        "ignore": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}


@pytest.mark.parametrize(
    ("arguments", "fits"),
    [
        ({"path": "/a"}, True),
        ({}, False),
        ({"path": 1}, False),
        ({"path": "/a", "ignore": ["b"]}, False),
        ({"path": "/a", "other": "b"}, False),
    ],
)
def test_a_look_is_enough_for_plain_arguments(arguments: dict[str, Any], fits: bool):
    assert plainly_fits(PATH, arguments) is fits


@pytest.mark.parametrize(
    "member",
    [
        {"type": "text"},
        {"type": ["string", "null"]},
        {"type": "string", "description": 1},
        {"type": "array", "items": 1},
        1,
    ],
)
def test_a_schema_that_may_be_broken_is_left_to_the_validator(member: object):
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": member}}
    assert not plainly_fits(schema, {"a": "x"})


def test_plain_calls_do_not_load_the_validator():
    code = (
        "import sys; from toolwire.agent.admission import complaints; "
        f"print(complaints({PATH!r}, {{'path': 'x'}}), 'jsonschema_rs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["()", "False"]
