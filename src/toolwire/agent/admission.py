"""Which calls may be considered at all: whole, strict JSON, known, fitting, one of a kind."""

from collections.abc import Iterable

import msgspec

from toolwire.agent.validation import complaints, told
from toolwire.errors import BadInput
from toolwire.messages import CallKind, ToolCall
from toolwire.request import JsonObject
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect, Tool
from toolwire.wire.json_access import dump
from toolwire.wire.repair_json import Parsed, parse_arguments

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
    """What was repaired in the arguments; the model is told."""


class Rejected(msgspec.Struct, frozen=True, kw_only=True):
    """A call that never runs, and what the model is told."""

    text: str
    type: str


def admit_all(calls: Iterable[ToolCall], registry: Registry) -> list[Admitted | Rejected]:
    """One verdict a call, in order; of two with one id only the first can run."""
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
    """The verdict on one call."""
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
    return _fitting(tool, parsed.value, _repair_told(parsed))


def _fitting(tool: Tool, arguments: JsonObject, note: str) -> Admitted | Rejected:
    try:
        problems = complaints(tool.parameters, arguments)
    except BadInput as error:
        return Rejected(text=str(error), type="invalid_schema")
    if problems:
        return Rejected(text=told(problems), type="invalid_tool_params")
    return Admitted(tool=tool, arguments=arguments, note=note)


def _freeform(tool: Tool, text: str) -> JsonObject:
    """Plain text as the one string the tool takes."""
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


def _repair_told(parsed: Parsed) -> str:
    return (
        f"[The arguments were not valid JSON and were read as {_shown(parsed)}: "
        f"{'; '.join(parsed.changes)}.]"
    )


def _shown(parsed: Parsed) -> str:
    text = dump(parsed.value)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
