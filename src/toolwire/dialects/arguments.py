"""Arguments of a call as valid text or a valid object, whatever the model wrote."""

import json

import msgspec

from toolwire.dialects.losses import Losses
from toolwire.messages import CallKind, ToolCall
from toolwire.request import FreeformTool, JsonObject, ToolSpec
from toolwire.wire.json_access import dump
from toolwire.wire.surrogates import without_halves

FREEFORM_MEMBER = "input"
"""The one member of a freeform tool that is offered as a function."""
INVALID_MEMBER = "_invalid_arguments"
"""Contains arguments that are not a JSON object as text, so that the model still sees them."""

_NONE = frozenset({"[]", "null"})
"""How some clients (PHP among them) write that a call has no arguments."""

_object = msgspec.json.Decoder(dict[str, object])


def parsed(call: ToolCall) -> JsonObject | None:
    """The arguments as an object; None if the text is not one. Empty text means no arguments."""
    if call.kind is CallKind.FREEFORM:
        return {FREEFORM_MEMBER: call.arguments}
    if not call.arguments.strip():
        return {}
    try:
        return _object.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _repaired(call.arguments)


def _repaired(text: str) -> JsonObject | None:
    """The object with half surrogate pairs, which are valid JSON but not text, as U+FFFD."""
    if "\\ud" not in text.lower():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return without_halves(value) if isinstance(value, dict) else None


def as_object(call: ToolCall, path: str, losses: Losses) -> JsonObject:
    """The arguments for formats that carry them as an object."""
    found = parsed(call)
    if found is None and call.arguments.strip() in _NONE:
        losses.add(f"{path}.arguments", call.arguments.strip(), "sent as an empty object")
        return {}
    if found is None:
        losses.add(
            f"{path}.arguments", "raw text", "not a JSON object; sent as a string inside one"
        )
        return {INVALID_MEMBER: call.arguments}
    return found


def as_text(call: ToolCall, path: str, losses: Losses) -> str:
    """The arguments for formats that carry them as JSON text; valid text is not changed."""
    if call.kind is CallKind.JSON and call.arguments.strip() and parsed(call) is not None:
        return call.arguments
    return dump(as_object(call, path, losses))


def as_function(tool: FreeformTool, path: str, losses: Losses) -> ToolSpec:
    """A freeform tool as a function of one string, for formats without freeform tools."""
    losses.add(path, "freeform tool", "offered as a function of one string")
    about = "The whole input as plain text."
    if tool.grammar:
        losses.add(f"{path}.grammar", f"{tool.syntax} grammar", "described, not enforced")
        about = f"{about} It must match this {tool.syntax} grammar:\n{tool.grammar}"
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters={
            "type": "object",
            "properties": {FREEFORM_MEMBER: {"type": "string", "description": about}},
            "required": [FREEFORM_MEMBER],
            "additionalProperties": False,
        },
    )
