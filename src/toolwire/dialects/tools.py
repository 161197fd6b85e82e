"""Arguments of calls as valid text or objects, and the caches of encoded and decoded tool lists."""

import json
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from toolwire.dialects.losses import Losses
from toolwire.errors import BadInput
from toolwire.messages import CallKind, ToolCall
from toolwire.request import (
    AnyTool,
    FreeformTool,
    JsonObject,
    Loss,
    ModelRequest,
    OutputFormat,
    Source,
    ToolSpec,
)
from toolwire.wire.json_access import dump, encode, parse, parse_object
from toolwire.wire.surrogates import whole_characters, without_halves

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
    if output is None:
        return None
    schema = output.schema
    own = source.dialect in _OPENAI or not source.unchanged(request, "output")
    if schema is None or own or schema.get("type") == "object":
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


_MOST_READ = 2 * 1024 * 1024
"""Bytes of raw tool lists that one dialect remembers."""
_TAIL = 64
_members = msgspec.json.Decoder(dict[str, Raw])
Read: TypeAlias = Callable[[Source], tuple[AnyTool, ...]]


class _ReadList:
    """One tool list: its raw JSON, what it was parsed to, and, once read, its tools."""

    __slots__ = ("raw", "source", "tools", "value")

    def __init__(self, raw: bytes, value: Any) -> None:
        self.raw = raw
        self.value = value
        self.tools: tuple[AnyTool, ...] | None = None
        self.source = Source()


class ReceivedTools:
    """The last tool lists that one dialect decoded: clients send the same one with every turn.

    The values are frozen, and the objects they were parsed from are shared.
    """

    def __init__(self) -> None:
        self._lists: dict[tuple[int, bytes], _ReadList] = {}
        self._by_value: dict[int, _ReadList] = {}
        self._size = 0
        self._storing = Lock()

    def members(self, body: bytes, what: str) -> tuple[JsonObject, dict[str, Raw]]:
        """The members of a body, parsed and raw, with half surrogate pairs repaired."""
        try:
            raws = _members.decode(body)
            if "tools" not in raws:
                return parse_object(body, what), raws
            found = {
                key: self.value(bytes(raw), _parsed) if key == "tools" else _parsed(bytes(raw))
                for key, raw in raws.items()
            }
        except (BadInput, msgspec.DecodeError, UnicodeError, RecursionError):
            body = whole_characters(body)
            return parse_object(body, what), _members.decode(body)
        return found, raws

    def value(self, raw: bytes, parsing: Callable[[bytes], Any]) -> Any:
        """What `parsing` returns for a raw list, from the cache if possible."""
        # The end differs where one description does; the whole text is compared below.
        key = (len(raw), raw[-_TAIL:])
        known = self._lists.get(key)
        if known is not None and known.raw == raw:
            return known.value
        value = parsing(raw)
        if value and len(raw) <= _LARGEST:
            self._store(key, _ReadList(raw, value))
        return value

    def read(self, value: Any, source: Source, reading: Read) -> tuple[AnyTool, ...]:
        """What `reading` returns for a parsed list; `source` gets what it recorded."""
        known = self._by_value.get(id(value))
        if known is None or known.value is not value:
            return reading(source)
        if known.tools is None:
            recorded = Source(source.dialect)
            known.tools, known.source = reading(recorded), recorded
        source.add_all(known.source)
        return known.tools

    def _store(self, key: tuple[int, bytes], new: _ReadList) -> None:
        with self._storing:
            self._drop(key)
            self._size += len(new.raw)
            self._lists[key] = new
            self._by_value[id(new.value)] = new
            while self._size > _MOST_READ:
                self._drop(next(iter(self._lists)))

    def _drop(self, key: tuple[int, bytes]) -> None:
        old = self._lists.pop(key, None)
        if old is not None:
            self._size -= len(old.raw)
            del self._by_value[id(old.value)]


def _parsed(raw: bytes) -> Any:
    return parse(raw, "request")
