import copy
import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from tests.schema.schema_judge import (
    Maker,
    from_openapi,
    nodes,
    plain,
    refused_output,
    uncovered,
    validator,
)
from toolwire.request import Loss
from toolwire.schema import Converted, Profile, convert

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "schemas.jsonl.gz"
needs_corpus = pytest.mark.skipif(not CORPUS.exists(), reason="the shared corpus is not here")

Convert = Callable[[Any, Profile], Converted]


def schemas() -> list[Any]:
    with gzip.open(CORPUS, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["schema"] for line in lines]


def differences(schema: Any, profile: Profile, converter: Convert, count: int) -> list[Any]:
    converted = converter(schema, profile)
    after = converted.schema
    if profile is Profile.GEMINI_OPENAPI:
        after = from_openapi(after)
    original = plain(schema)
    return uncovered(original, after, converted.losses, Maker(original, 1).values(count))


@needs_corpus
@pytest.mark.slow
def test_every_recorded_schema_converts_soundly_to_every_profile(counted: Callable[[str], None]):
    counts: Counter[str] = Counter()
    for schema in schemas():
        original = plain(schema)
        values = Maker(original, 1).values(12)
        before = validator(original)
        counts["values"] += len(values)
        counts["values the schema takes"] += sum(map(before.is_valid, values))
        for profile in Profile:
            converted = convert(schema, profile)
            after = converted.schema
            if profile is Profile.GEMINI_OPENAPI:
                types.Schema.model_validate(after)
                after = from_openapi(after)
            if profile is Profile.ANTHROPIC_OUTPUT:
                assert refused_output(after) == []
            counts[f"{profile} exact"] += not converted.losses
            counts["strict"] += converted.strict
            assert uncovered(original, after, converted.losses, values) == []
            again = convert(converted.schema, profile)
            assert (again.schema, again.strict) == (converted.schema, converted.strict)
            counts["conversions"] += 1
    counted(f"schemas: {dict(counts)}")
    assert counts["values the schema takes"] > counts["values"] / 2


def without(keyword: str) -> Convert:
    """A converter that drops a keyword and says nothing."""

    def broken(schema: Any, profile: Profile) -> Converted:
        converted = convert(schema, profile)
        after = copy.deepcopy(converted.schema)
        for node in nodes(after):
            node.pop(keyword, None)
        return Converted(after, converted.losses)

    return broken


def silent(schema: Any, profile: Profile) -> Converted:
    return Converted(convert(schema, profile).schema)


def narrowing(schema: Any, profile: Profile) -> Converted:
    converted = convert(schema, profile)
    after = copy.deepcopy(converted.schema)
    for node in nodes(after):
        if "properties" in node:
            node["required"] = list(node["properties"])
    return Converted(after, converted.losses)


def elsewhere(schema: Any, profile: Profile) -> Converted:
    """A converter whose losses name the wrong place."""
    converted = convert(schema, profile)
    losses = tuple(Loss("$.properties.other", one.what, one.why) for one in converted.losses)
    return Converted(converted.schema, losses)


RICH = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "even": {"type": "integer", "multipleOf": 2},
        "name": {"type": "string", "minLength": 2, "maxLength": 9},
        "code": {"type": "string", "pattern": "^[ab]"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "free": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["mode"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("profile", list(Profile))
def test_the_judge_finds_nothing_wrong_with_the_converter(profile: Profile):
    assert differences(RICH, profile, convert, 400) == []


@pytest.mark.parametrize(
    "keyword",
    [
        *("minimum", "maximum", "multipleOf", "minLength", "maxLength", "pattern", "enum"),
        *("items", "minItems", "maxItems", "anyOf", "required", "additionalProperties", "type"),
    ],
)
def test_the_judge_catches_a_converter_that_drops_a_keyword(keyword: str):
    assert differences(RICH, Profile.ANTHROPIC, without(keyword), 2000)


@pytest.mark.parametrize("broken", [silent, narrowing, elsewhere])
def test_the_judge_catches_losses_that_are_not_reported_or_misplaced(broken: Convert):
    assert differences(RICH, Profile.GEMINI_OPENAPI, broken, 400)
