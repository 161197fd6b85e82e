"""Tools from typed functions: the schema, and the arguments, come from the types."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from pkgutil import get_data
from typing import (
    Annotated,
    Any,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import msgspec

from toolwire.messages import Media
from toolwire.request import JsonObject
from toolwire.tools.spec import Effect, Run, Tool, ToolContext, ToolFailed, ToolOutput

DONE = "done"
"""What the model reads of a function that returns nothing."""
_Arguments = TypeVar("_Arguments", bound=msgspec.Struct)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Making(Protocol):
    def __call__(
        self, run: Callable[[_Arguments, ToolContext], Awaitable[ToolOutput]], /
    ) -> Tool: ...


@overload
def tool(name: str, effect: Effect, description: str, **more: Any) -> _Making: ...
@overload
def tool(function: Callable[..., object], /) -> Tool: ...
@overload
def tool(
    *, name: str = "", effect: Effect = Effect.OTHER, description: str = "", **more: Any
) -> Callable[[Callable[..., object]], Tool]: ...
def tool(
    name: str | Callable[..., object] = "",
    effect: Effect = Effect.OTHER,
    description: str = "",
    **more: Any,
) -> Any:
    """Make a function into a tool; `more` are members of `Tool`.

    The parameters of the function are the arguments, each with its type, and its docstring is
    the description; a parameter of type `ToolContext` is given the context. Or it is a coroutine
    of one struct and a context, and the struct's members are the arguments.
    """
    if not isinstance(name, str):
        return _of_function(name)

    def made(run: Callable[..., Any]) -> Tool:
        arguments = _struct_of(run)
        if arguments is None:
            return _of_function(run, name, effect, description, more)
        return Tool(
            name=name or run.__name__,
            description=description or inspect.getdoc(run) or "",
            parameters=schema_of(arguments),
            effect=effect,
            run=_converting(run, arguments),
            deps=_deps_of(list(_hints(run).values())[1]),
            **more,
        )

    return made


def words(name: str) -> str:
    """The text of a `.md` file beside the built-in tools, byte for byte."""
    return (get_data("toolwire.tools.builtin", f"{name}.md") or b"").decode()


def schema_of(arguments: Any) -> JsonObject:
    """The JSON Schema of a type, its own definition in place and without titles."""
    return plain_schema(msgspec.json.schema(arguments, schema_hook=_path_schema))


def plain_schema(schema: JsonObject) -> JsonObject:
    """A generated schema, its first definition in place and without titles."""
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


def _struct_of(run: Callable[..., object]) -> type[msgspec.Struct] | None:
    """The struct of a coroutine that takes one and a context; None for any other function."""
    hints = _hints(run)
    parameters = [hints.get(name) for name in inspect.signature(run).parameters]
    if not inspect.iscoroutinefunction(run) or len(parameters) != 2:
        return None
    first, second = parameters
    fits = isinstance(first, type) and issubclass(first, msgspec.Struct)
    return cast(type[msgspec.Struct], first) if fits and _is_context(second) else None


def _of_function(
    function: Callable[..., object],
    name: str = "",
    effect: Effect = Effect.OTHER,
    description: str = "",
    more: Mapping[str, Any] = {},
) -> Tool:
    name = name or getattr(function, "__name__", "")
    if not name.isidentifier():
        raise TypeError(f"{function!r} has no usable name; give one: tool(name=…)")
    parameters = _parameters(function, name)
    context = next((one for one, hint in parameters.items() if _is_context(hint)), "")
    arguments = _struct_for(function, name, parameters)
    schema = schema_of(arguments)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name != context and parameter.default is not parameter.empty:
            _tell_default(schema["properties"][parameter.name], parameter.default)

    async def run(typed: msgspec.Struct, given: ToolContext) -> ToolOutput:
        named = {one: getattr(typed, one) for one in typed.__struct_fields__}
        arguments = {one: value for one, value in named.items() if value is not msgspec.UNSET}
        if context:
            arguments[context] = given
        if inspect.iscoroutinefunction(function):
            return _output(await function(**arguments))
        returned = await asyncio.to_thread(function, **arguments)
        return _output(await returned if inspect.isawaitable(returned) else returned)

    return Tool(
        name=name,
        description=description or inspect.getdoc(function) or "",
        parameters=schema,
        effect=effect,
        run=_converting(run, arguments),
        deps=_deps_of(parameters.get(context)),
        **more,
    )


def _is_context(hint: object) -> bool:
    return hint is ToolContext or get_origin(hint) is ToolContext


def _deps_of(hint: object) -> type | None:
    """The type of the dependencies in `ToolContext[…]`, if it can be checked."""
    found = next(iter(get_args(hint)), None)
    found = get_origin(found) or found
    return found if isinstance(found, type) else None


def _hints(function: Callable[..., object]) -> dict[str, Any]:
    annotated = function if inspect.isroutine(function) else type(function).__call__
    return get_type_hints(annotated, include_extras=True)


def _parameters(function: Callable[..., object], name: str) -> dict[str, Any]:
    hints = _hints(function)
    found: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _NAMED:
            raise TypeError(f"{name}: arguments are passed by name; make {parameter} a plain one")
        if parameter.name not in hints:
            raise TypeError(f'{name}: parameter "{parameter.name}" has no type; annotate it')
        found[parameter.name] = hints[parameter.name]
    return found


def _struct_for(
    function: Callable[..., object], name: str, parameters: Mapping[str, Any]
) -> type[msgspec.Struct]:
    """A struct of the parameters; one with a default may be left out, and is then not passed."""
    known = inspect.signature(function).parameters
    fields: list[Any] = []
    for one, hint in parameters.items():
        if _is_context(hint):
            continue
        hint = _described(hint)
        if known[one].default is inspect.Parameter.empty:
            fields.append((one, hint))
        else:
            fields.append((one, Union[hint, msgspec.UnsetType], msgspec.UNSET))  # noqa: UP007 - a value
    made = msgspec.defstruct(name, fields, frozen=True, kw_only=True, forbid_unknown_fields=True)
    try:
        schema_of(made)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from error
    return made


def _described(hint: Any) -> Any:
    """The type, with a string in `Annotated` as the description of the parameter."""
    if get_origin(hint) is not Annotated:
        return hint
    notes = (
        msgspec.Meta(description=one) if isinstance(one, str) else one for one in hint.__metadata__
    )
    return Annotated[(hint.__origin__, *notes)]


def _tell_default(schema: JsonObject, default: object) -> None:
    try:
        schema["default"] = msgspec.to_builtins(default, enc_hook=_plain)
    except TypeError:
        # Nothing that JSON has a word for; the function knows it.
        return


def _plain(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _output(returned: object) -> ToolOutput:
    match returned:
        case ToolOutput():
            return returned
        case str():
            return ToolOutput(text=returned)
        case Media():
            return ToolOutput(text=DONE, media=(returned,))
        case None:
            return ToolOutput(text=DONE)
        case _:
            return ToolOutput(text=msgspec.json.encode(returned, enc_hook=str).decode())


def _path_schema(kind: type) -> JsonObject:
    if kind is Path:
        return {"type": "string"}
    raise TypeError(
        f"{kind.__name__} cannot be described to a model; use text, numbers, bool, lists, dicts, "
        "enums, dataclasses or structs"
    )


def path_of(kind: type, value: Any) -> Any:
    """A path of its text: the one type that msgspec does not read."""
    return kind(value)


def _converting(
    run: Callable[[_Arguments, ToolContext], Awaitable[ToolOutput]], arguments: type[_Arguments]
) -> Run:
    async def converting(given: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            typed = msgspec.convert(given, arguments, strict=False, dec_hook=path_of)
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
