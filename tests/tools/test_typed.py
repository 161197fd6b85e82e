import threading
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from tests.tools.one_call import done
from toolwire.messages import Media, MediaKind
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput, Workspace
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


class Unit(Enum):
    LINES = "lines"
    WORDS = "words"


@dataclass
class Range:
    first: int
    last: int


def count(
    path: Annotated[str, "File to look at."],
    unit: Unit = Unit.LINES,
    within: Range | None = None,
    most: Annotated[int, msgspec.Meta(ge=1)] = 100,
) -> str:
    """Count the lines or words of a file."""
    return f"{path} {unit.value} {within} {most}"


def used(function: Tool, **arguments: Any) -> ToolOutput:
    return done(function, arguments, ToolContext(workspace=Place, call_id="c1"))


def test_a_plain_function_is_described_by_its_types_and_docstring() -> None:
    made = tool(count)
    assert (made.name, made.effect) == ("count", Effect.OTHER)
    assert made.description == "Count the lines or words of a file."
    assert made.parameters == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "File to look at."},
            "unit": {"$ref": "#/$defs/Unit", "default": "lines"},
            "within": {"anyOf": [{"$ref": "#/$defs/Range"}, {"type": "null"}], "default": None},
            "most": {"type": "integer", "minimum": 1, "default": 100},
        },
        "required": ["path"],
        "additionalProperties": False,
        "$defs": {
            "Unit": {"enum": ["lines", "words"]},
            "Range": {
                "type": "object",
                "properties": {"first": {"type": "integer"}, "last": {"type": "integer"}},
                "required": ["first", "last"],
            },
        },
    }


def test_a_plain_function_is_given_values_of_its_types_and_keeps_its_defaults() -> None:
    made = tool(effect=Effect.READ, title="Count")(count)
    assert (made.effect, made.title) == (Effect.READ, "Count")
    assert used(made, path="p").text == "p lines None 100"
    given = used(made, path="p", unit="words", within={"first": 1, "last": 2})
    assert given.text == "p words Range(first=1, last=2) 100"
    with pytest.raises(ToolFailed, match="unknown field"):
        used(made, path="p", other=1)


def test_a_plain_function_runs_beside_the_event_loop_and_a_coroutine_on_it() -> None:
    def thread() -> str:
        return threading.current_thread().name

    async def loop() -> str:
        return threading.current_thread().name

    here = threading.current_thread().name
    assert used(tool(thread)).text != here
    assert used(tool(loop)).text == here


def test_a_parameter_of_the_context_is_not_the_models_to_say() -> None:
    @tool(name="where", description="Tells the place.")
    def place(context: ToolContext, deep: Path = Path("a")) -> str:
        return f"{context.workspace.roots[0] / deep} {context.call_id}"

    assert (place.name, place.description) == ("where", "Tells the place.")
    assert place.parameters["properties"] == {"deep": {"type": "string", "default": "a"}}
    assert used(place, deep="b").text == "/w/b c1"


@pytest.mark.parametrize(
    ("returned", "text"),
    [
        ("words", "words"),
        (None, "done"),
        ([1, 2.5, None], "[1,2.5,null]"),
        ({"at": Range(1, 2)}, '{"at":{"first":1,"last":2}}'),
        ({"path": Path("/p")}, '{"path":"/p"}'),
        (ToolOutput(text="whole", display="shown"), "whole"),
    ],
)
def test_what_a_plain_function_returns_becomes_text(returned: object, text: str) -> None:
    def give() -> object:
        return returned

    assert used(tool(give)).text == text


def test_an_image_that_a_plain_function_returns_is_kept() -> None:
    image = Media.of_bytes(MediaKind.IMAGE, "image/png", b"png")

    def draw() -> Media:
        return image

    assert used(tool(draw)).media == (image,)


def test_methods_and_callable_objects_are_tools_too() -> None:
    class Shop:
        def __init__(self) -> None:
            self.sold: list[str] = []

        def sell(self, what: str) -> int:
            self.sold.append(what)
            return len(self.sold)

        def __call__(self, what: str) -> str:
            return f"called {what}"

    shop = Shop()
    assert used(tool(shop.sell), what="tea").text == "1"
    assert shop.sold == ["tea"]
    assert used(tool(name="shop")(shop), what="tea").text == "called tea"


def test_functions_that_no_model_could_call_are_refused() -> None:
    def untyped(path) -> str:  # pyright: ignore
        return ""

    def many(*paths: str) -> str:
        return ""

    def odd(lock: threading.Thread) -> str:
        return ""

    with pytest.raises(TypeError, match='untyped: parameter "path" has no type; annotate it'):
        tool(untyped)  # pyright: ignore
    with pytest.raises(TypeError, match=r"many: .* make \*paths: str a plain one"):
        tool(many)
    with pytest.raises(TypeError, match="odd: Thread cannot be described to a model"):
        tool(odd)
    with pytest.raises(TypeError, match="has no usable name"):
        tool(lambda: "")
