"""Admission of calls: complete, strict JSON, a known tool, valid arguments, a unique id; and the
state of each call.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar, cast

import msgspec

from toolwire.agent.events import ApprovalOutcome
from toolwire.errors import BadInput
from toolwire.messages import CallKind, Media, Text, ToolCall, ToolResult
from toolwire.request import JsonObject
from toolwire.tools.proposals import DiffStat
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Permit, Tool, ToolFailed
from toolwire.wire.json_access import dump, is_object, parse
from toolwire.wire.repair import Parsed, parse_arguments

_Errors = Callable[[Any], list[Any]]

_LIMITS = {
    "minItems": "must NOT have fewer than {} items",
    "maxItems": "must NOT have more than {} items",
    "minLength": "must NOT have fewer than {} characters",
    "maxLength": "must NOT have more than {} characters",
    "minProperties": "must NOT have fewer than {} properties",
    "maxProperties": "must NOT have more than {} properties",
    "minimum": "must be >= {}",
    "maximum": "must be <= {}",
    "exclusiveMinimum": "must be > {}",
    "exclusiveMaximum": "must be < {}",
    "multipleOf": "must be multiple of {}",
    "pattern": 'must match pattern "{}"',
    "format": 'must match format "{}"',
}
_PLAIN = {
    "anyOf": "must match a schema in anyOf",
    "oneOf": "must match exactly one schema in oneOf",
    "not": "must NOT be valid",
    "contains": "must contain at least 1 valid item(s)",
    "uniqueItems": "must NOT have duplicate items",
    "propertyNames": "property name must be valid",
    "falseSchema": "boolean schema is false",
}
_MOST_VIOLATIONS = 20
_ROOT = frozenset(("type", "properties", "required", "additionalProperties"))
_TRUTH = (True, False)
_PLAIN_MEMBER = frozenset(("type", "description", "default"))
_MEMBER = _PLAIN_MEMBER | {"items", "properties"}
_TYPES: dict[str, type] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def complaints(
    schema: JsonObject, value: Any, *, root: str = "params", what: str = "the tool's own schema"
) -> tuple[str, ...]:
    """Every violation, in the order of the schema; empty if the value is valid.

    `root` names the value; BadInput names the schema as `what` if it cannot be used.
    """
    if not schema or (is_object(value) and plainly_fits(schema, value)):
        return ()
    try:
        found = _checker(dump(schema))(value)
    except ValueError as error:
        raise BadInput(f"{what} cannot be used: {_first_line(error)}") from error
    found.sort(key=lambda error: _place(error, schema))
    return tuple(dict.fromkeys(text for error in found for text in _messages(error, schema, root)))


def plainly_fits(schema: JsonObject, arguments: JsonObject) -> bool:
    """Whether simple arguments fit a simple schema, which saves loading the validator.

    False means undecided: the validator has to check.
    """
    members, required = schema.get("properties"), schema.get("required", [])
    if schema.get("type") != "object" or not schema.keys() <= _ROOT or not is_object(members):
        return False
    if not isinstance(required, list) or schema.get("additionalProperties", True) not in _TRUTH:
        return False
    names = cast(list[object], required)
    if not all(isinstance(name, str) and name in arguments for name in names):
        return False
    if not all(_is_sound(member) for member in members.values()):
        return False
    return all(
        name in members
        and members[name].keys() <= _PLAIN_MEMBER
        and _has_type(value, members[name])
        for name, value in arguments.items()
    )


def _is_sound(member: object) -> bool:
    """Whether the schema uses only the few keywords that most tools need."""
    if not (is_object(member) and member.keys() <= _MEMBER):
        return False
    kind = member.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        return False
    inner = member.get("properties", {})
    if not isinstance(member.get("description", ""), str) or not is_object(inner):
        return False
    items = (member["items"],) if "items" in member else ()
    return all(_is_sound(one) for one in (*inner.values(), *items))


def _has_type(value: object, member: JsonObject) -> bool:
    # An integer may also be written 1.0, and true is not a number: left to the validator.
    return type(value) is _TYPES[member["type"]]


def violations_text(problems: tuple[str, ...]) -> str:
    """The violations as one text, a line each; gemini-cli reports only the first."""
    more = len(problems) - _MOST_VIOLATIONS
    rest = (f"… and {more} more",) if more > 0 else ()
    return "\n".join((*problems[:_MOST_VIOLATIONS], *rest))


@lru_cache(256)
def _checker(schema: str) -> _Errors:
    import jsonschema_rs  # noqa: PLC0415 - not needed until a call is made

    def refuse(address: str) -> Any:
        raise ValueError(f"a schema may not point to {address}")

    try:
        validator = jsonschema_rs.validator_for(parse(schema, "schema"), retriever=refuse)
    except jsonschema_rs.ReferencingError as error:
        raise ValueError(_first_line(error)) from error
    return lambda value: list(validator.iter_errors(value))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _place(error: Any, schema: JsonObject) -> tuple[int, ...]:
    """Sort key by position in the schema: required members first, then members in order."""
    at = schema
    key: list[int] = []
    for step in cast(list[str | int], error.instance_path):
        if isinstance(step, int):
            key.append(step)
            at = _inner(at, "items")
        else:
            names = list(_inner(at, "properties"))
            key.append(names.index(step) if step in names else len(names))
            at = _inner(_inner(at, "properties"), step)
    return (*key, -1)


def _inner(schema: JsonObject, name: str) -> JsonObject:
    found: object = schema.get(name)
    return cast(JsonObject, found) if isinstance(found, dict) else {}


def _messages(error: Any, schema: JsonObject, root: str) -> list[str]:
    where = root + "".join(f"/{step}" for step in error.instance_path)
    kind = error.kind
    match kind.name:
        case "type":
            return [f"{where} must be {_limit(error, schema).replace(', ', ',')}"]
        case "required":
            return [f"{where} must have required property '{kind.property}'"]
        case "additionalProperties" | "unevaluatedProperties":
            names = ", ".join(f"'{name}'" for name in kind.unexpected)
            return [f"{where} must NOT have additional properties", f"{where} has no {names}"]
        case "enum":
            first = f"{where} must be equal to one of the allowed values"
            return [first, f"{where} may be {_limit(error, schema)}"]
        case "const":
            return [f"{where} must be equal to constant", f"{where} is {_limit(error, schema)}"]
        case name if name in _LIMITS:
            return [f"{where} {_LIMITS[name].format(_limit(error, schema))}"]
        case name:
            return [f"{where} {_PLAIN.get(name, error.message)}"]


def _limit(error: Any, schema: JsonObject) -> str:
    """The schema's value of the keyword, if the path to it resolves."""
    at: Any = schema
    for step in error.schema_path:
        try:
            at = at[step]
        except (KeyError, IndexError, TypeError):
            return "as the schema says"
    match at:
        case str():
            return at
        case list():
            return ", ".join(one if isinstance(one, str) else dump(one) for one in cast(Any, at))
        case _:
            return dump(at)


_CUT = (
    "The call was cut off before its end, so it was not run. "
    "Send it again, whole; if it is long, do it in several smaller calls."
)
_MOST_SHOWN = 4_000


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """A call that may run if the policy allows it."""

    tool: Tool
    arguments: JsonObject
    note: str = ""
    """What was repaired in the arguments, for the model."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """A call that never runs, and the result for the model."""

    text: str
    type: str


def admit_all(calls: Iterable[ToolCall], registry: Registry) -> list[Admitted | Rejected]:
    """One admission for each call, in order; a second call with the same id is rejected."""
    seen: set[str] = set()
    verdicts: list[Admitted | Rejected] = []
    for call in calls:
        if call.id in seen:
            text = f'The id "{call.id}" was used by an earlier call, so this one was not run.'
            verdicts.append(Rejected(text=text, type="duplicate_id"))
        else:
            verdicts.append(admit(call, registry))
        seen.add(call.id)
    return verdicts


def admit(call: ToolCall, registry: Registry) -> Admitted | Rejected:
    """The admission of one call."""
    if not call.complete:
        return Rejected(text=_CUT, type="incomplete_call")
    tool = registry.get(call.name)
    if tool is None:
        return Rejected(text=registry.unknown(call.name), type="tool_not_registered")
    if call.kind is CallKind.FREEFORM:
        return _fitting(tool, _freeform(tool, call.arguments), "")
    parsed = parse_arguments(call.arguments)
    if parsed.value is None:
        text = (
            f"The arguments are not a JSON object: {parsed.error}. "
            "Nothing was run; call again with one valid JSON object."
        )
        return Rejected(text=text, type="invalid_json")
    if parsed.exact:
        return _fitting(tool, parsed.value, "")
    if tool.effect is not Effect.READ or parsed.truncated:
        return Rejected(text=_repair_refused(parsed), type="invalid_json")
    return _fitting(tool, parsed.value, _repair_note(parsed))


def _fitting(tool: Tool, arguments: JsonObject, note: str) -> Admitted | Rejected:
    try:
        problems = complaints(tool.parameters, arguments)
    except BadInput as error:
        return Rejected(text=str(error), type="invalid_schema")
    if problems:
        return Rejected(text=violations_text(problems), type="invalid_tool_params")
    return Admitted(tool=tool, arguments=arguments, note=note)


def _freeform(tool: Tool, text: str) -> JsonObject:
    """Plain text as the only string argument of the tool."""
    required = tool.parameters.get("required") or list(tool.parameters.get("properties", ()))
    return {required[0] if required else "input": text}


def _repair_refused(parsed: Parsed) -> str:
    if parsed.truncated:
        return f"The arguments stop in the middle: {parsed.error}. {_CUT}"
    return (
        f"The arguments are not valid JSON: {parsed.error}. Nothing was run.\n"
        f"They could be meant as: {_shown(parsed)}\n({'; '.join(parsed.changes)})\n"
        "If that is what you mean, call again with it as valid JSON."
    )


def _repair_note(parsed: Parsed) -> str:
    return (
        f"[The arguments were not valid JSON and were read as {_shown(parsed)}: "
        f"{'; '.join(parsed.changes)}.]"
    )


def _shown(parsed: Parsed) -> str:
    text = dump(parsed.value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


_SIDE_BY_SIDE = (Effect.READ, Effect.NETWORK)
_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")


class CallState:
    """State of a call from admission to its result."""

    def __init__(self, call: ToolCall, verdict: Admitted | Rejected) -> None:
        self.call = call
        self.verdict = verdict
        self.arguments: JsonObject = {}
        self.arguments_text = call.arguments
        """The same as JSON, for events; of a rejected call what the model wrote."""
        if isinstance(verdict, Admitted):
            self.give(verdict.arguments)
        self.started: float | None = None
        self.ended = 0.0
        self.decision: ApprovalOutcome | None = None
        self.stat: DiffStat | None = None
        self.edited: str | None = None
        self.permit: Permit | None = None
        """Permit of the ruling, for shell commands."""
        self.parts: tuple[ToolResult | Text | Media, ...] = ()

    @property
    def tool(self) -> Tool | None:
        """The tool, if the call was admitted."""
        return self.verdict.tool if isinstance(self.verdict, Admitted) else None

    @property
    def side_by_side(self) -> bool:
        """Whether adjacent calls may run at the same time."""
        return self.tool is None or self.tool.delegates or self.only_reads

    @property
    def only_reads(self) -> bool:
        """Whether it has no side effects."""
        return self.tool is None or self.tool.effect in _SIDE_BY_SIDE

    def give(self, arguments: JsonObject) -> None:
        """Set the arguments that the tool gets; they are written as JSON once."""
        self.arguments, self.arguments_text = arguments, dump(arguments)

    def as_ruled(self, tool: Tool) -> ToolCall:
        """The call with the tool's real name and effective arguments."""
        return msgspec.structs.replace(self.call, name=tool.name, arguments=self.arguments_text)


async def guarded(step: Awaitable[_Value]) -> _Value:
    """Result of a step in the tool's code; any exception there is the tool's failure."""
    try:
        return await step
    except ToolFailed:
        raise
    except Exception as error:
        _log.debug("a tool broke", exc_info=True)
        message = str(error) or type(error).__name__
        raise ToolFailed(message, type="unhandled_exception") from error
