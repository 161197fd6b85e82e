"""Tools from typed structs: the schema, and the arguments, come from the types."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Protocol, TypeVar, cast, get_type_hints

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.spec import Effect, Run, Tool, ToolContext, ToolFailed, ToolOutput

_Arguments = TypeVar("_Arguments", bound=msgspec.Struct)


class _Making(Protocol):
    def __call__(
        self, run: Callable[[_Arguments, ToolContext], Awaitable[ToolOutput]], /
    ) -> Tool: ...


def tool(name: str, effect: Effect, description: str, **more: Any) -> _Making:
    """Make a function of a struct and a context into a tool; `more` are members of `Tool`."""

    def made(run: Callable[[_Arguments, ToolContext], Awaitable[ToolOutput]]) -> Tool:
        arguments = _arguments_of(run)
        return Tool(
            name=name,
            description=description,
            parameters=schema_of(arguments),
            effect=effect,
            run=_converting(run, arguments),
            **more,
        )

    return made


def words(name: str) -> str:
    """The text of a `.md` file beside the built-in tools, byte for byte."""
    return (files("toolwire.tools.builtin") / f"{name}.md").read_bytes().decode()


def schema_of(arguments: type[msgspec.Struct]) -> JsonObject:
    """The JSON Schema of a struct, its own definition in place and without titles."""
    schema = msgspec.json.schema(arguments)
    definitions: JsonObject = schema.pop("$defs", {})
    top = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    schema = definitions.get(top, schema)
    # The docstring is for readers of the code; a tool's description is its own.
    schema.pop("description", None)
    others = {key: value for key, value in definitions.items() if key != top}
    if _mentions(schema, f"#/$defs/{top}") or _mentions(others, f"#/$defs/{top}"):
        others[top] = schema
    whole = {**schema, "$defs": others} if others else schema
    return cast(JsonObject, _untitled(whole))


def _arguments_of(run: Callable[..., object]) -> type[Any]:
    hints = get_type_hints(run)
    first = next(iter(hints.values()), None)
    if not (isinstance(first, type) and issubclass(first, msgspec.Struct)):
        raise TypeError(f"{run.__qualname__}: the first parameter must be a msgspec struct")
    return first


def _converting(
    run: Callable[[_Arguments, ToolContext], Awaitable[ToolOutput]], arguments: type[_Arguments]
) -> Run:
    async def converting(given: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            typed = msgspec.convert(given, arguments, strict=False)
        except msgspec.ValidationError as error:
            raise ToolFailed(str(error), type="invalid_tool_params") from error
        return await run(typed, context)

    return converting


def _mentions(value: Any, reference: str) -> bool:
    match value:
        case dict():
            members = cast(JsonObject, value)
            return members.get("$ref") == reference or any(
                _mentions(member, reference) for member in members.values()
            )
        case list():
            return any(_mentions(item, reference) for item in cast(list[Any], value))
        case _:
            return False


def _untitled(value: Any, *, named: bool = False) -> Any:
    """Without the class names that msgspec adds; a property called `title` stays."""
    match value:
        case dict():
            members = cast(JsonObject, value)
            return {
                key: _untitled(member, named=key in ("properties", "$defs") and not named)
                for key, member in members.items()
                if named or key != "title"
            }
        case list():
            return [_untitled(item) for item in cast(list[Any], value)]
        case _:
            return value
