"""Arguments of calls as valid text or objects, and the cache of encoded tool lists."""

import json
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from toolwire.dialects.losses import Losses
from toolwire.messages import CallKind, ToolCall
from toolwire.request import (
    AnyTool,
    FreeformTool,
    JsonObject,
    Loss,
    ModelRequest,
    OutputFormat,
    ToolSpec,
)
from toolwire.wire.json_access import dump, encode
from toolwire.wire.surrogates import without_halves

FREEFORM_MEMBER = "input"
"""The one member of a freeform tool that is offered as a function."""
INVALID_MEMBER = "_invalid_arguments"
"""Contains arguments that are not a JSON object as text, so that the model still sees them."""

_NONE = frozenset({"[]", "null"})
"""How some clients (PHP among them) write that a call has no arguments."""

_OPENAI = frozenset({"", "openai-chat", "openai-responses"})

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


Write: TypeAlias = Callable[[Losses], JsonObject]
"""Returns the members of a body that carry the tools, and reports what they lose."""

_MOST_LISTS = 16
_LARGEST = 256 * 1024
"""Bytes of schemas beyond which a list is not cached."""

_encode = msgspec.json.Encoder().encode


def openai_output(request: ModelRequest, losses: Losses) -> OutputFormat | None:
    """The format of the answer; OpenAI's formats take only schemas whose root is an object.

    Only one that another format's client sent is changed: local servers take any root.
    """
    output, source = request.output, request.source
    schema = None if output is None else output.schema
    own = source.dialect in _OPENAI or not source.unchanged(request, "output")
    if output is None or schema is None or own or schema.get("type") == "object":
        return output
    from toolwire.schema import Profile, convert  # noqa: PLC0415 - reading answers needs none

    converted = convert(schema, Profile.OPENAI, "output.schema")
    losses.extend(converted.losses)
    return msgspec.structs.replace(output, schema=converted.schema)


class _Written(msgspec.Struct, frozen=True):
    schemas: bytes
    """A copy: what `tools` refers to may have changed since."""
    tools: tuple[AnyTool, ...]
    members: dict[str, Raw]
    losses: tuple[Loss, ...]


class OfferedTools:
    """The last 16 tool lists that one dialect encoded."""

    def __init__(self) -> None:
        self._lists: dict[tuple[Any, ...], _Written] = {}
        self._storing = Lock()

    def members(
        self, tools: tuple[AnyTool, ...], terms: tuple[Any, ...], losses: Losses, write: Write
    ) -> JsonObject:
        """What `write` returns for these tools, from the cache if possible.

        `terms` is everything else that `write` depends on.
        """
        schemas = _schemas(tools)
        if schemas is None:
            return write(losses)
        # A length is quicker than a hash of the text; the whole text is compared below.
        key = (len(schemas), *terms)
        known = self._lists.get(key)
        # The text distinguishes 1 from 1.0 and orders of members, the values a list from a tuple.
        if known is None or known.schemas != schemas or known.tools != tools:
            known = self._store(key, schemas, tools, write)
        losses.extend(known.losses)
        return dict(known.members)

    def _store(
        self, key: tuple[Any, ...], schemas: bytes, tools: tuple[AnyTool, ...], write: Write
    ) -> _Written:
        found = Losses()
        members = {name: Raw(encode(value)) for name, value in write(found).items()}
        known = _Written(schemas, tools, members, found.done())
        with self._storing:
            self._lists.pop(key, None)
            while len(self._lists) >= _MOST_LISTS:
                del self._lists[next(iter(self._lists))]
            self._lists[key] = known
        return known


def _schemas(tools: tuple[AnyTool, ...]) -> bytes | None:
    """The schemas as text, which shows a change in place; None for a list not to cache."""
    try:
        text = _encode([tool.parameters for tool in tools if isinstance(tool, ToolSpec)])
    except (TypeError, ValueError, RecursionError):
        return None
    return text if len(text) <= _LARGEST else None
