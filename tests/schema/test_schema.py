from typing import Any

import pytest

from toolwire.errors import UnknownName
from toolwire.request import Loss
from toolwire.schema import Converted, Profile, convert, drop_absent, profile_for

OPEN: dict[str, Any] = {"type": "object", "properties": {}}


def tool(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def member(node: Any, profile: Profile = Profile.GEMINI_OPENAPI) -> Any:
    """How one property comes out, and the words of its losses."""
    converted = convert(tool(a=node), profile)
    return (
        converted.schema.get("properties", {}).get("a"),
        [loss.what for loss in converted.losses],
    )


@pytest.mark.parametrize(
    ("dialect", "options", "profile"),
    [
        ("openai-chat", {}, Profile.OPENAI),
        ("openai-responses", {"strict": True}, Profile.OPENAI_STRICT),
        ("anthropic-messages", {"strict": True}, Profile.ANTHROPIC),
        ("gemini", {}, Profile.GEMINI_OPENAPI),
        ("code-assist", {"json_schema": True}, Profile.GEMINI_JSON),
    ],
)
def test_each_dialect_has_its_profile(dialect: str, options: dict[str, bool], profile: Profile):
    assert profile_for(dialect, **options) is profile


def test_an_unknown_dialect_is_named():
    with pytest.raises(UnknownName, match='did you mean "gemini"'):
        profile_for("gemni")


@pytest.mark.parametrize("profile", [one for one in Profile if one != Profile.ANTHROPIC_OUTPUT])
@pytest.mark.parametrize("schema", [{}, True, {"type": "object"}, {"properties": {}}, {"type": 6}])
def test_a_tool_without_arguments_is_an_empty_object(schema: Any, profile: Profile):
    empty = {"type": "object"} if profile is Profile.GEMINI_OPENAPI else OPEN
    converted = convert(schema, profile)
    assert converted.schema == empty
    assert [loss.what for loss in converted.losses] == (
        ["open object"] if profile is Profile.OPENAI_STRICT else []
    )


def test_the_input_is_left_alone_and_paths_begin_where_the_caller_says():
    schema = tool(a={"type": "Frobnicator"})
    assert convert(schema, "anthropic", "tools[2].parameters") == Converted(
        tool(a={}),
        (
            Loss(
                "tools[2].parameters.properties.a",
                'type: "Frobnicator"',
                "unknown type; any value is accepted",
            ),
        ),
    )
    assert schema == tool(a={"type": "Frobnicator"})


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("dict", "object"),
        ("float", "number"),
        ("String", "string"),
        ("INTEGER", "integer"),
        ("HashMap", "object"),
        ("long", "integer"),
        ("char", "string"),
        (["String", "None"], ["string", "null"]),
        (3, "integer"),
    ],
)
def test_other_words_for_types_are_read(word: Any, name: Any):
    assert member({"type": word}, Profile.ANTHROPIC) == ({"type": name}, [])


def test_any_type_is_left_open_in_json_schema_and_spelled_out_for_gemini():
    assert member({"type": "any"}, Profile.ANTHROPIC) == ({}, [])
    flat = [
        {"type": "string", "nullable": True},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "object"},
    ]
    spelled = {"anyOf": [*flat, {"type": "array", "items": {"anyOf": flat}}]}
    assert member({"type": "any"}) == (spelled, ["any value"])


@pytest.mark.parametrize("profile", [Profile.OPENAI, Profile.ANTHROPIC, Profile.GEMINI_JSON])
def test_old_drafts_become_the_new_one(profile: Profile):
    old = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "$id": "https://example.org/x",
        "type": "object",
        "properties": {
            "low": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
            "pair": {
                "type": "array",
                "items": [{"type": "string"}, {"type": "number"}],
                "additionalItems": False,
            },
            "maybe": {"type": "string", "nullable": True},
            "ref": {"$ref": "#/definitions/Odd~1Name"},
        },
        "dependencies": {"low": ["pair"], "pair": {"required": ["ref"]}},
        "definitions": {"Odd/Name": {"type": "string"}, "Unused": {"type": "string"}},
    }
    assert convert(old, profile) == Converted(
        {
            "type": "object",
            "properties": {
                "low": {"type": "number", "exclusiveMinimum": 0},
                "pair": {
                    "type": "array",
                    "prefixItems": [{"type": "string"}, {"type": "number"}],
                    "items": False,
                },
                "maybe": {"type": ["string", "null"]},
                "ref": {"$ref": "#/$defs/Odd_Name"},
            },
            "dependentRequired": {"low": ["pair"]},
            "dependentSchemas": {"pair": {"required": ["ref"]}},
            "$defs": {"Odd_Name": {"type": "string"}},
        }
    )


def test_properties_named_like_keywords_are_properties():
    names = ("type", "enum", "$ref", "properties", "required", "items", "anyOf", "nullable")
    schema = tool(**{name: {"type": "string"} for name in names})
    for profile in (Profile.OPENAI, Profile.GEMINI_JSON, Profile.GEMINI_OPENAPI):
        assert convert(schema, profile) == Converted(schema)


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("https://example.org/s.json", "never fetched; any value is accepted there"),
        ("other.json#/a", "never fetched; any value is accepted there"),
        ("#/$defs/Missing", "the target does not exist; any value is accepted there"),
        ("#nowhere", "the target does not exist; any value is accepted there"),
    ],
)
def test_references_that_lead_nowhere_are_reported_and_nothing_is_fetched(reference: str, why: str):
    loss = Loss("$.properties.a", f'$ref: "{reference}"', why)
    assert convert(tool(a={"$ref": reference}), Profile.ANTHROPIC) == Converted(tool(a={}), (loss,))


def test_references_to_anywhere_become_definitions():
    schema = tool(
        a={"type": "array", "items": {"type": "string"}}, b={"$ref": "#/properties/a/items"}
    )
    assert convert(schema, Profile.OPENAI).schema == {
        **tool(a=schema["properties"]["a"], b={"$ref": "#/$defs/items"}),
        "$defs": {"items": {"type": "string"}},
    }
    assert convert(schema, Profile.GEMINI_OPENAPI) == Converted(
        tool(a=schema["properties"]["a"], b={"type": "string"})
    )


TREE: dict[str, Any] = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "label": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
            "required": ["label"],
        }
    },
}


def test_recursion_stays_where_references_are_taken():
    node = TREE["$defs"]["Node"]
    assert convert(TREE, Profile.ANTHROPIC) == Converted({**node, "$defs": {"Node": node}})


def test_recursion_is_cut_to_an_open_object_where_they_are_not():
    inner = {"type": "object", "description": "Same form as Node above."}
    schema = {**tool(tree={"$ref": "#/$defs/Node"}), "$defs": TREE["$defs"]}
    assert convert(schema, Profile.GEMINI_OPENAPI) == Converted(
        tool(
            tree={
                "type": "object",
                "properties": {
                    "label": {"type": "string"},
                    "children": {"type": "array", "items": inner},
                },
                "required": ["label"],
            }
        ),
        (
            Loss(
                "$.properties.tree.properties.children.items",
                '$ref: "#/$defs/Node"',
                "recursive; left open at this depth",
            ),
        ),
    )


def test_references_that_multiply_are_cut():
    defs: dict[str, Any] = {
        f"L{level}": tool(**{name: {"$ref": f"#/$defs/L{level + 1}"} for name in "abcd"})
        for level in range(12)
    }
    defs["L12"] = {"type": "string"}
    converted = convert({**tool(a={"$ref": "#/$defs/L0"}), "$defs": defs}, Profile.GEMINI_OPENAPI)
    assert any(loss.why == "too deep or too large; left open" for loss in converted.losses)


@pytest.mark.parametrize("profile", list(Profile))
def test_very_deep_schemas_are_cut_and_reported(profile: Profile):
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(3000):
        deep = {"type": "array", "items": deep}
    assert convert(tool(a=deep), profile).losses


@pytest.mark.parametrize(
    ("node", "expected", "losses"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}, []),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "d"},
            {"type": "integer", "description": "d", "nullable": True},
            [],
        ),
        (
            {"type": ["string", "integer"], "description": "d", "minimum": 1, "maxLength": 3},
            {
                "anyOf": [
                    {"type": "string", "maxLength": 3, "description": "d"},
                    {"type": "integer", "minimum": 1},
                ]
            },
            [],
        ),
        ({"const": "x"}, {"type": "string", "enum": ["x"]}, []),
        ({"const": 5}, {"type": "integer", "minimum": 5, "maximum": 5}, []),
        ({"enum": [1, 2, 3]}, {"type": "integer", "minimum": 1, "maximum": 3}, []),
        (
            {"type": "integer", "enum": [1, 5]},
            {"type": "integer", "minimum": 1, "maximum": 5, "description": "enum: [1,5]"},
            ["enum: [1,5]"],
        ),
        (
            {"enum": ["a", 1, None]},
            {
                "anyOf": [
                    {"type": "integer", "minimum": 1, "maximum": 1, "nullable": True},
                    {"type": "string", "enum": ["a"]},
                ]
            },
            [],
        ),
        ({"type": "boolean", "enum": [True, False]}, {"type": "boolean"}, []),
        (
            {"type": "string", "enum": ["", "a"]},
            {"type": "string", "description": 'enum: ["","a"]'},
            ['enum: ["","a"]'],
        ),
        (
            {"type": "string", "format": "email", "description": "Mail."},
            {"type": "string", "description": 'Mail.\nformat: "email"'},
            ['format: "email"'],
        ),
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}, []),
        (
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "number", "minimum": 0, "description": "exclusiveMinimum: 0"},
            ["exclusiveMinimum: 0"],
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "description": 'additionalProperties: {"type":"string"}'},
            ['additionalProperties: {"type":"string"}'],
        ),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object"},
            ["additionalProperties: false"],
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}] * 2, "items": False},
            {"type": "array", "items": {"type": "number"}, "maxItems": 2},
            [],
        ),
        (
            {"properties": {"b": {"type": "string"}}},
            {"type": "object", "properties": {"b": {"type": "string"}}},
            ["missing type"],
        ),
        (
            {**tool(b={"type": "string"}), "required": ["b", "c"]},
            {**tool(b={"type": "string"}), "required": ["b"], "description": 'required: ["c"]'},
            ['required: ["c"]'],
        ),
        (
            {"allOf": [tool(b={"type": "string"}), {"required": ["b"]}], "description": "d"},
            {**tool(b={"type": "string"}), "required": ["b"], "description": "d"},
            [],
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            [],
        ),
        (
            {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
            {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]},
            ["oneOf"],
        ),
        ({"anyOf": [{"type": "number"}, {"not": {}}]}, {"type": "number"}, []),
        (False, None, ["false"]),
        (
            {"type": "string", "not": {"const": "x"}},
            {"type": "string", "description": 'not: {"const":"x"}'},
            ['not: {"const":"x"}'],
        ),
        ({"type": "integer", "minLength": 3}, {"type": "integer"}, []),
        ({"type": "string", "x-mine": 1}, {"type": "string"}, ["x-mine: 1"]),
    ],
)
def test_gemini_gets_its_subset(node: Any, expected: Any, losses: list[str]):
    assert member(node) == (expected, losses)


@pytest.mark.parametrize("profile", [Profile.OPENAI, Profile.ANTHROPIC, Profile.GEMINI_OPENAPI])
def test_alternatives_at_the_root_are_joined(profile: Profile):
    schema = {
        "anyOf": [
            {**tool(a={"type": "string"}), "required": ["a"]},
            {**tool(b={"type": "string"}), "required": ["b"]},
        ]
    }
    assert convert(schema, profile) == Converted(
        {
            **tool(a={"type": "string"}, b={"type": "string"}),
            "description": "give at least one of these sets: a | b",
        },
        (Loss("$", "anyOf", "not taken at the root; the alternatives are joined into one"),),
    )


@pytest.mark.parametrize("profile", [Profile.OPENAI, Profile.ANTHROPIC, Profile.GEMINI_OPENAPI])
def test_a_root_that_is_not_an_object_is_put_inside_one(profile: Profile):
    schema = {"type": "array", "items": {"type": "string"}}
    assert convert(schema, profile) == Converted(
        {**tool(value=schema), "required": ["value"]},
        (Loss("$", "root that is not an object", 'only an object is taken; put in "value"'),),
    )


def test_names_anthropic_refuses_at_the_root_are_reported_in_words():
    schema = {**tool(**{"a b": {"type": "string"}, "ok": OPEN}), "required": ["a b"]}
    assert convert(schema, Profile.ANTHROPIC) == Converted(
        {**tool(ok=OPEN), "description": 'also takes "a b": {"type":"string"}'},
        (
            Loss("$", 'required: "a b"', "moved to the description"),
            Loss(
                '$.properties["a b"]',
                "property",
                "the name is not one Anthropic takes; moved to the description",
            ),
        ),
    )


CLOSED = {"type": "object", "additionalProperties": False}


def test_strict_is_used_when_every_call_stays_the_same():
    schema = {
        **CLOSED,
        "properties": {
            "a": {"type": "string", "enum": ["x", "y"]},
            "b": {"type": "integer", "default": 3},
            "c": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
            "d": {"$ref": "#/$defs/D", "description": "beside"},
        },
        "required": ["a", "d"],
        "$defs": {"D": {**CLOSED, "properties": {"e": {"type": "number"}}, "required": ["e"]}},
    }
    assert convert(schema, Profile.OPENAI_STRICT) == Converted(
        {
            **CLOSED,
            "properties": {
                "a": {"type": "string", "enum": ["x", "y"]},
                "b": {"type": ["integer", "null"], "description": "default: 3"},
                "c": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "d": {
                    **CLOSED,
                    "description": "beside",
                    "properties": {"e": {"type": "number"}},
                    "required": ["e"],
                },
            },
            "required": ["a", "b", "c", "d"],
        },
        (
            Loss(
                "$.properties.b",
                "default: 3",
                "not taken in strict schemas; moved to the description",
            ),
            Loss("$.properties.b", "optional", "always sent; null means left out"),
        ),
        strict=True,
    )


@pytest.mark.parametrize(
    ("node", "what"),
    [
        ({"type": "object"}, "open object"),
        ({"type": "string", "minLength": 1}, "minLength: 1"),
        ({"type": "string", "format": "uri"}, 'format: "uri"'),
        ({"type": "string", "pattern": "(?=x)"}, 'pattern: "(?=x)"'),
        ({}, "missing type"),
        ({"oneOf": [{"type": "string"}]}, 'oneOf: [{"type":"string"}]'),
        ({"type": "array", "items": {}}, "missing type"),
        ({**CLOSED, "required": ["x"]}, 'required: "x"'),
    ],
)
def test_strict_is_not_used_when_it_would_say_something_else(node: Any, what: str):
    schema = {**CLOSED, "properties": {"a": node}, "required": ["a"]}
    converted = convert(schema, Profile.OPENAI_STRICT)
    assert (converted.schema, converted.strict) == (convert(schema, Profile.OPENAI).schema, False)
    assert what in [loss.what for loss in converted.losses]
    assert all(loss.why.startswith("strict was not used: ") for loss in converted.losses)


def test_strict_is_not_used_where_null_and_absent_may_differ():
    schema = {**CLOSED, "properties": {"a": {"type": ["string", "null"]}}}
    assert convert(schema, Profile.OPENAI_STRICT) == Converted(
        schema,
        (
            Loss(
                "$.properties.a",
                "optional",
                "strict was not used: it may be null, and may be left out: not the same",
            ),
        ),
    )


def test_null_that_stood_for_left_out_is_left_out_again():
    inner = {**CLOSED, "properties": {"x": {"type": "integer"}}}
    schema = {
        **CLOSED,
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["string", "null"]},
            "c": {"type": "array", "items": {"$ref": "#/$defs/Inner"}},
            "d": {"anyOf": [{"$ref": "#/$defs/Inner"}, {"type": "string"}]},
            "e": {"type": "string"},
        },
        "required": ["e"],
        "$defs": {"Inner": inner},
    }
    sent = {"a": None, "b": None, "c": [{"x": None}, {"x": 1}], "d": {"x": None}, "e": None}
    assert drop_absent(sent, schema) == {"b": None, "c": [{}, {"x": 1}], "d": {}, "e": None}
