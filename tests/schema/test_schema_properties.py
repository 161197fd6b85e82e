import json
from typing import Any

from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schema.schema_author import Author
from tests.schema.schema_judge import (
    Maker,
    from_openapi,
    nodes,
    refused_output,
    uncovered,
    validator,
)
from toolwire.schema import Profile, convert

KEYWORDS = st.sampled_from(
    [
        *("type", "properties", "items", "required", "enum", "const", "anyOf", "oneOf", "allOf"),
        *("not", "$ref", "$defs", "additionalProperties", "minimum", "nullable", "format", "a"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "string", "#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=20,
)
SEEDS = st.integers(0, 10**9)
PROFILES = st.sampled_from(list(Profile))
MANY = settings(max_examples=120, database=None)


def read_back(schema: dict[str, Any], profile: Profile) -> dict[str, Any]:
    return from_openapi(schema) if profile is Profile.GEMINI_OPENAPI else schema


@MANY
@given(seed=SEEDS)
def test_a_conversion_takes_what_the_schema_took_or_says_where_not(seed: int):
    schema = Author(seed).tool()
    values = Maker(schema, seed).values(6)
    for profile in Profile:
        converted = convert(schema, profile)
        after = read_back(converted.schema, profile)
        assert uncovered(schema, after, converted.losses, values) == []


@MANY
@given(seed=SEEDS)
def test_converting_twice_changes_nothing_more(seed: int):
    schema = Author(seed).tool()
    for profile in Profile:
        once = convert(schema, profile)
        if any("could not be kept whole" in loss.why for loss in once.losses):
            continue
        twice = convert(once.schema, profile)
        assert (twice.schema, twice.strict) == (once.schema, once.strict)


@MANY
@given(seed=SEEDS)
def test_the_openapi_subset_keeps_the_rules_of_geminis_server(seed: int):
    converted = convert(Author(seed).tool(), Profile.GEMINI_OPENAPI)
    types.Schema.model_validate(converted.schema)
    for node in nodes(converted.schema):
        assert list(node) == ["anyOf"] if "anyOf" in node else isinstance(node["type"], str)
        assert ("items" in node) == (node.get("type") == "array")
        assert "properties" not in node or node["type"] == "object"
        assert set(node.get("required", ())) <= set(node.get("properties", ()))
        assert "enum" not in node or node["type"] == "string"


@MANY
@given(seed=SEEDS)
def test_an_output_schema_keeps_the_rules_of_anthropics_server(seed: int):
    converted = convert(Author(seed).tool(), Profile.ANTHROPIC_OUTPUT)
    assert refused_output(converted.schema) == []


@MANY
@given(schema=JSON, profile=PROFILES)
def test_no_json_value_crashes_the_converter(schema: Any, profile: Profile):
    before = json.dumps(schema)
    converted = convert(schema, profile)
    assert json.dumps(schema) == before
    assert profile is Profile.ANTHROPIC_OUTPUT or converted.schema["type"] == "object"
    validator(read_back(converted.schema, profile))
