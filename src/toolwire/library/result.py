"""Result of one prompt, its typed output, and the error of a failed one."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    is_typeddict,
)

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    Noticed,
    ToolFinished,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.structured import OutputSchema
from toolwire.errors import BadInput, ToolwireError
from toolwire.events import Usage
from toolwire.messages import Loss, Message
from toolwire.request import JsonObject
from toolwire.tools.typed import path_of, plain_schema, schema_of
from toolwire.wire.json_access import dump
from toolwire.wire.partial import PartialJson

if TYPE_CHECKING:
    # Python 3.11 has neither at run time: a bare `Agent` has text as its output.
    from typing_extensions import TypeForm as TypeForm
    from typing_extensions import TypeVar as DefaultTypeVar

    Output = DefaultTypeVar("Output", default=str)
else:
    Output = TypeVar("Output")
    TypeForm = type


class NoOutput(ToolwireError):
    """The run ended before the model gave its output; `stop` of the result says why."""

    kind = "no_output"


class Result(msgspec.Struct, Generic[Output], frozen=True, kw_only=True):
    """How the work on one prompt ended."""

    text: str
    """The model's final text."""
    stop: TurnEnd
    detail: str = ""
    """Why it stopped, as text; empty when it is done."""
    calls: tuple[ToolFinished, ...] = ()
    """Every call that was made, with arguments, decision and result, in the order they ended."""
    messages: tuple[Message, ...] = ()
    """The whole conversation, as the next request sends it."""
    requests: int = 0
    usage: Usage = Usage()
    """Summed over all requests."""
    cost: float | None = None
    """US dollars; None where no price is known."""
    session: str = ""
    losses: tuple[Loss, ...] = ()
    """What the provider cannot take of the conversation and the model settings."""
    outputs: tuple[Output, ...] = ()
    """The output, if there is one: empty when the run ended early."""

    @property
    def ok(self) -> bool:
        """Whether the model finished: no limit, refusal or cut."""
        return self.stop is TurnEnd.DONE

    @property
    def output(self) -> Output:
        """The validated object, or the text without a type; NoOutput if the run ended early."""
        if not self.outputs:
            raise NoOutput(
                f"the run ended without an output ({self.stop}): {self.detail or 'check ok first'}"
            )
        return self.outputs[0]


class TurnFailed(ToolwireError):
    """The work on a prompt failed: the vendor, the connection or the session. `result` contains
    everything up to then; the conversation can continue.
    """

    def __init__(self, ended: TurnEnded, result: Result[Any]) -> None:
        super().__init__(ended.detail)
        self.kind = ended.error or "turn_failed"
        self.result = result


class Gathering:
    """Builds the result of one turn from its events."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: list[ToolFinished] = []
        self._losses: list[Loss] = []

    def add(self, event: AgentEvent) -> None:
        """Adds one event."""
        match event:
            # Acknowledgements on the model's behalf are context, not its answer.
            case MessageAdded(context=False) if event.message.role == "assistant":
                self._text = event.message.text
            case ToolFinished():
                self._calls.append(event)
            case Noticed(loss=Loss() as loss):
                self._losses.append(loss)
            case _:
                pass

    def result(
        self,
        ended: TurnEnded,
        messages: tuple[Message, ...],
        session: str,
        output: OutputSchema | None = None,
    ) -> Result[Any]:
        """Returns the result."""
        outputs: tuple[Any, ...] = (self._text,)
        if output is not None:
            done = ended.reason is TurnEnd.DONE
            outputs = (output.read(ended.output),) if done else ()
        return Result(
            text=self._text,
            stop=ended.reason,
            detail=ended.detail,
            calls=tuple(self._calls),
            messages=messages,
            requests=ended.requests,
            usage=ended.usage,
            cost=ended.cost,
            session=session,
            losses=tuple(self._losses),
            outputs=outputs,
        )


_WRAPPED = "result"
"""The member of an answer whose type is not an object: vendors require an object."""


def output_of(kind: Any) -> OutputSchema | None:
    """Returns what an answer of a type has to fit; None for text.

    Structs, dataclasses, TypedDicts and plain types are read by msgspec; what contains pydantic's
    models by pydantic, which is then loaded already.
    """
    if kind is str or kind is None:
        return None
    name = getattr(kind, "__name__", None) or "output"
    schema, convert = _by_pydantic(kind) if _has_pydantic(kind) else _by_msgspec(kind)
    schema = cast(JsonObject, _closed(schema))
    if schema.get("type") == "object":
        return OutputSchema(schema=schema, name=name, convert=convert)
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    whole: JsonObject = {
        "type": "object",
        "properties": {_WRAPPED: schema},
        "required": [_WRAPPED],
        "additionalProperties": False,
        **definitions,
    }
    return OutputSchema(schema=whole, name=name, convert=lambda value: convert(value[_WRAPPED]))


_Converted = tuple[JsonObject, Callable[[Any], Any]]


def _by_msgspec(kind: Any) -> _Converted:
    try:
        schema = schema_of(kind)
    except TypeError as error:
        raise BadInput(f"output={kind!r} cannot be used: {error}") from error
    orders = {frozenset(order): order for order in _typed_dicts(kind, set())}
    return (
        cast(JsonObject, _in_order(schema, orders)),
        lambda value: msgspec.convert(value, kind, dec_hook=path_of),
    )


def _typed_dicts(kind: Any, seen: set[type]) -> Iterator[tuple[str, ...]]:
    """The members of each TypedDict in a type, in its own order."""
    inner: Iterable[Any] = get_args(kind)
    if isinstance(kind, type) and getattr(kind, "__annotations__", None):
        if kind in seen:
            return
        seen.add(kind)
        hints = get_type_hints(kind)
        if is_typeddict(kind):
            yield tuple(hints)
        inner = hints.values()
    for one in inner:
        yield from _typed_dicts(one, seen)


def _in_order(node: Any, orders: Mapping[frozenset[str], tuple[str, ...]]) -> Any:
    """The schema with the members of TypedDicts as declared: msgspec sorts them, and models write
    them in the order of the schema.
    """
    if isinstance(node, list):
        return [_in_order(one, orders) for one in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    members = {key: _in_order(value, orders) for key, value in cast(JsonObject, node).items()}
    order = orders.get(frozenset(members))
    return {name: members[name] for name in order} if order else members


def _has_pydantic(kind: Any) -> bool:
    if "pydantic" not in sys.modules:
        return False
    return hasattr(kind, "__pydantic_validator__") or any(map(_has_pydantic, get_args(kind)))


def _by_pydantic(kind: Any) -> _Converted:
    pydantic: Any = sys.modules["pydantic"]
    adapter = pydantic.TypeAdapter(kind)

    def convert(value: Any) -> Any:
        try:
            return adapter.validate_json(dump(value))
        except pydantic.ValidationError as error:
            found = ((".".join(map(str, one["loc"])), one["msg"]) for one in error.errors())
            lines = (f"answer/{place}: {words}" if place else words for place, words in found)
            raise ValueError("\n".join(lines)) from error

    return plain_schema(adapter.json_schema()), convert


def _closed(node: Any) -> Any:
    """The schema without members that it does not name, so that vendors can enforce it."""
    if isinstance(node, list):
        return [_closed(one) for one in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    members = {key: _closed(value) for key, value in cast(JsonObject, node).items()}
    if members.get("type") == "object" and isinstance(members.get("properties"), dict):
        members.setdefault("additionalProperties", False)
    return members


_MISSING: Any = object()
_SHARE = 50


class PartialOutput:
    """The output so far, of an answer that is still arriving.

    A partial text, list or dict is its beginning, and empty before it begins; a member with a
    default has that until it arrives. Without any other member an object is not complete, and
    not part of the output yet.
    """

    def __init__(self, output: OutputSchema | None) -> None:
        self._output = output
        self.begin()

    def begin(self) -> None:
        """A new answer begins."""
        self._text: list[str] = []
        self._json = PartialJson()
        self._started = False
        self._size = 0
        self._next = 0

    def add(self, text: str) -> tuple[Any, ...]:
        """Returns the output so far; empty if nothing new can be shown."""
        self._size += len(text)
        if self._output is None:
            self._text.append(text)
        else:
            if not self._started:
                # Some models write a code fence or a sentence first.
                _, brace, rest = text.partition("{")
                self._started, text = bool(brace), brace + rest
            self._json.feed(text)
        # A long answer is converted after a share of it, so that all of it stays linear.
        if self._size < self._next:
            return ()
        self._next = self._size + self._size // _SHARE
        return self._shown()

    def _shown(self) -> tuple[Any, ...]:
        output = self._output
        if output is None:
            return ("".join(self._text),)
        tree = self._json.value
        try:
            filled = _beginning(tree, output.schema, output.schema.get("$defs", {}))
            if tree is None or filled is _MISSING:
                return ()
            return (output.convert(filled),)
        except (ValueError, RecursionError):
            return ()


def _beginning(value: Any, schema: JsonObject, definitions: JsonObject) -> Any:
    """A value of the schema that begins like this one; `_MISSING` if there is none yet."""
    while "$ref" in schema:
        schema = definitions.get(str(schema["$ref"]).removeprefix("#/$defs/"), {})
    kind = schema.get("type")
    if isinstance(value, list):
        items = [
            _beginning(one, schema.get("items") or {}, definitions)
            for one in cast(list[Any], value)
        ]
        return [one for one in items if one is not _MISSING]
    if isinstance(value, dict) or (value is _MISSING and kind == "object"):
        given = cast(JsonObject, {} if value is _MISSING else value)
        return _beginning_of_object(given, schema, definitions)
    if value is _MISSING and "enum" not in schema:
        empty: JsonObject = {"string": "", "array": []}
        return empty.get(kind or "", _MISSING)
    return value


def _beginning_of_object(value: JsonObject, schema: JsonObject, definitions: JsonObject) -> Any:
    members: JsonObject = schema.get("properties", {})
    required = schema.get("required", ())
    found: JsonObject = {}
    for name in (*value, *(name for name in members if name in required and name not in value)):
        one = _beginning(value.get(name, _MISSING), members.get(name) or {}, definitions)
        if one is not _MISSING:
            found[name] = one
        elif name in required:
            return _MISSING
    return found
