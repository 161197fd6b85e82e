"""The `input` of a request → messages: neighbouring items of one side form one message."""

from collections.abc import Sequence
from typing import cast

from msgspec import Raw
from msgspec.structs import replace

from toolwire.dialects.openai_responses.encode_messages import result_item, text_body
from toolwire.dialects.openai_responses.items import decode_item, has_our_id, without_our_id
from toolwire.dialects.openai_responses.media import media_body, read_audio, read_file, read_image
from toolwire.dialects.openai_responses.shapes import CALLS, NAME, TEXT_TYPES, Span, extra_members
from toolwire.messages import (
    CallKind,
    Media,
    Message,
    Origin,
    Part,
    ResultPart,
    Role,
    ServerBlock,
    Text,
    ToolCall,
    ToolResult,
)
from toolwire.request import Source
from toolwire.wire.json_access import JsonObject, dump, obj, parse_object, text

_ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system"}
_OUTPUTS = {
    "function_call_output": CallKind.JSON,
    "custom_tool_call_output": CallKind.FREEFORM,
}
_FROM_CLIENT = frozenset(
    {
        "additional_tools",
        "apply_patch_call_output",
        "compaction_trigger",
        "computer_call_output",
        "configuration_update",
        "local_shell_call_output",
        "mcp_approval_response",
    }
)
_FROM_EITHER = frozenset({"shell_call_output", "tool_search_output"})


def decode_input(raws: Sequence[Raw], source: Source) -> tuple[tuple[Message, ...], list[object]]:
    """The messages of a list of input items, and the items as they may be sent again."""
    turns = _Turns(source)
    return turns.read(raws), turns.wires


class _Turns:
    """Gathers neighbouring items of one side into one message."""

    def __init__(self, source: Source) -> None:
        self.wires: list[object] = []
        self._source = source
        self._messages: list[Message] = []
        self._role: Role = "assistant"
        self._parts: list[Part] = []
        self._names: dict[str, str] = {}
        self._ids: set[str] = set()
        self._made = 0

    def read(self, raws: Sequence[Raw]) -> tuple[Message, ...]:
        items: list[tuple[Raw, JsonObject]] = []
        for number, raw in enumerate(raws):
            item = parse_object(bytes(raw), f"input[{number}]")
            items.append((raw, item))
            if isinstance(item.get("call_id"), str):
                self._ids.add(item["call_id"])
        for number, (raw, item) in enumerate(items):
            self._read_item(raw, item, f"input[{number}]")
        self._flush()
        return tuple(self._messages)

    def _read_item(self, raw: Raw, item: JsonObject, path: str) -> None:
        kind = text(item.get("type"), f"{path}.type")
        speaker = text(item.get("role"), f"{path}.role")
        if kind in CALLS or kind in _OUTPUTS:
            text(item.get("call_id"), f"{path}.call_id")
            text(item.get("name"), f"{path}.name")
        wire: object = raw
        if kind in ("message", "") and speaker in _ROLES:
            self._flush()
            message = self._message(item, _ROLES[speaker], path)
            self._source.add(message, raw)
            self._messages.append(message)
        elif kind in _OUTPUTS:
            self._add("user", (self._result(item, path),), raw)
        elif kind in _FROM_CLIENT or (kind in _FROM_EITHER and "id" not in item):
            data = bytes(raw).decode()
            block = ServerBlock(origin=Origin(NAME), kind=kind, data=data)
            self._add("user", (block,), raw)
        else:
            parts = decode_item(item, bytes(raw).decode(), Origin(NAME))
            if has_our_id(item) and not isinstance(parts[0], ServerBlock):
                wire = without_our_id(item)
            self._add("assistant", parts, wire)
        self.wires.append(wire)

    def _add(self, role: Role, parts: tuple[Part, ...], wire: object) -> None:
        if role != self._role:
            self._flush()
            self._role = role
        if isinstance(parts[0], ToolCall):
            call = parts[0]
            if not call.id:
                call = replace(call, id=self._made_id())
            self._names[call.id] = call.name
            parts = (call,)
        self._source.add(parts[0], Span(wire, parts))
        self._parts += parts

    def _flush(self) -> None:
        if self._parts:
            self._messages.append(Message(role=self._role, parts=tuple(self._parts)))
            self._parts = []

    def _made_id(self) -> str:
        while True:
            self._made += 1
            made = f"call_{self._made}"
            if made not in self._ids:
                self._ids.add(made)
                return made

    def _result(self, item: JsonObject, path: str) -> ToolResult:
        call_id = item.get("call_id") or ""
        output = item.get("output")
        parts: tuple[ResultPart, ...] = ()
        if isinstance(output, str):
            parts = (Text(output),) if output else ()
        elif isinstance(output, list):
            parts = self._content(cast(list[object], output), f"{path}.output")
        elif output is not None:
            parts = (Text(dump(output)),)
        result = ToolResult(
            call_id=call_id,
            name=self._names.get(call_id, ""),
            parts=parts,
            kind=_OUTPUTS[item["type"]],
        )
        written = result_item(
            result, cast(object, output if isinstance(output, list) else result.text)
        )
        return replace(result, kept=extra_members(item, written))

    def _message(self, item: JsonObject, role: Role, path: str) -> Message:
        content = item.get("content")
        parts: tuple[Part, ...] = ()
        if isinstance(content, str):
            parts = (Text(content),)
        elif isinstance(content, list):
            parts = self._content(cast(list[object], content), f"{path}.content")
        written: JsonObject = {"content": content} if isinstance(content, str | list) else {}
        return Message(role=role, parts=parts, kept=extra_members(item, written))

    def _content(self, values: list[object], path: str) -> tuple[ResultPart, ...]:
        parts: list[ResultPart] = []
        for number, value in enumerate(values):
            part = decode_part(value, f"{path}[{number}]")
            self._source.add(part, value)
            parts.append(part)
        return tuple(parts)


def decode_part(value: object, path: str) -> ResultPart:
    """A content part; one of an unknown type is a server block."""
    source = obj(value, path)
    kind = text(source.get("type"), f"{path}.type")
    part: Text | Media | None = None
    match kind:
        case _ if kind in TEXT_TYPES and isinstance(source.get("text"), str):
            part = Text(source["text"])
        case "input_image":
            part = read_image(source)
        case "input_file":
            part = read_file(source)
        case "input_audio":
            part = read_audio(source)
        case _:
            pass
    if part is None:
        return ServerBlock(origin=Origin(NAME), kind=kind, data=dump(source))
    written = text_body(part) if isinstance(part, Text) else media_body(part)
    return replace(part, kept=extra_members(source, written))
