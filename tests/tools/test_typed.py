from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from tests.tools.one_call import done
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput, Workspace
from toolwire.tools.typed import schema_of, tool

Place = Workspace(roots=(Path("/w"),), temp=Path("/t"), home=Path("/h"))


class Inner(msgspec.Struct, frozen=True):
    title: str


class Tree(msgspec.Struct, frozen=True):
    name: str
    children: list["Tree"] = []


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: Annotated[str, msgspec.Meta(description="Where.")]
    inner: Inner
    count: Annotated[int, msgspec.Meta(ge=1)] = 3


def test_the_schema_comes_from_the_types_without_a_reference_at_the_top() -> None:
    assert schema_of(Outer) == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "inner": {"$ref": "#/$defs/Inner"},
            "count": {"type": "integer", "minimum": 1, "default": 3},
        },
        "required": ["path", "inner"],
        "additionalProperties": False,
        "$defs": {
            "Inner": {
                "type": "object",
                "properties": {"title": {"type": "string"}},
                "required": ["title"],
            }
        },
    }


def test_a_struct_that_holds_itself_keeps_its_definition() -> None:
    schema = schema_of(Tree)
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert set(schema["$defs"]) == {"Tree"}


@tool("outer", Effect.WRITE, "About it.", title="Outer", aliases=("o",))
async def outer(args: Outer, context: ToolContext) -> ToolOutput:
    return ToolOutput(text=f"{args.path} {args.inner.title} {args.count}")


def run(arguments: dict[str, Any]) -> str:
    return done(outer, arguments, ToolContext(workspace=Place)).text


def test_the_function_is_given_the_struct() -> None:
    assert run({"path": "p", "inner": {"title": "t"}}) == "p t 3"
    assert (outer.name, outer.effect, outer.title, outer.aliases) == (
        "outer",
        Effect.WRITE,
        "Outer",
        ("o",),
    )
    assert outer.spec.description == "About it."


def test_arguments_that_are_no_such_struct_fail_in_words() -> None:
    with pytest.raises(ToolFailed, match="Object missing required field `inner`"):
        run({"path": "p"})


def test_a_function_without_a_struct_is_refused() -> None:
    async def wrong(args: Any, context: ToolContext) -> ToolOutput:
        return ToolOutput()

    with pytest.raises(TypeError, match="must be a msgspec struct"):
        tool("x", Effect.READ, "")(wrong)
