"""The `input` of a request → messages: items are gathered into turns."""

from collections.abc import Sequence
from typing import cast

from msgspec import Raw
from msgspec.structs import replace

from toolwire.dialects.openai_responses.encode_messages import result_item, text_body
from toolwire.dialects.openai_responses.items import decode_item
from toolwire.dialects.openai_responses.media import media_body, read_audio, read_file, read_image
from toolwire.dialects.openai_responses.remembering import remember
from toolwire.dialects.openai_responses.shapes import NAME, TEXT_TYPES
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
from toolwire.wire.json_access import JsonObject, dump, obj, parse_object

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


def decode_input(raws: Sequence[Raw]) -> tuple[Message, ...]:
    """The messages that a list of input items spells."""
    return _Turns().read(raws)


class _Turns:
    """Gathers neighbouring items of one side into one message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._role: Role = "assistant"
        self._parts: list[Part] = []
        self._names: dict[str, str] = {}
        self._ids: set[str] = set()
        self._made = 0

    def read(self, raws: Sequence[Raw]) -> tuple[Message, ...]:
        origin = Origin(NAME)
        items: list[tuple[Raw, JsonObject]] = []
        for number, raw in enumerate(raws):
            item = parse_object(bytes(raw), f"input[{number}]")
            items.append((raw, item))
            if isinstance(item.get("call_id"), str):
                self._ids.add(item["call_id"])
        for number, (raw, item) in enumerate(items):
            kind, speaker = item.get("type"), item.get("role")
            kind = kind if isinstance(kind, str | None) else ""
            role = None
            if kind in ("message", None) and isinstance(speaker, str):
                role = _ROLES.get(speaker)
            if role is not None:
                self._flush()
                self._messages.append(_message(item, role, f"input[{number}]"))
            elif kind in _OUTPUTS and isinstance(item.get("call_id"), str | None):
                self._add("user", (self._result(item, f"input[{number}]"),))
            elif kind in _FROM_CLIENT or (kind in _FROM_EITHER and "id" not in item):
                text = bytes(raw).decode()
                self._add("user", (ServerBlock(origin=origin, kind=kind or "", data=text),))
            else:
                self._add("assistant", decode_item(item, bytes(raw).decode(), origin))
        self._flush()
        return tuple(self._messages)

    def _add(self, role: Role, parts: tuple[Part, ...]) -> None:
        if role != self._role:
            self._flush()
            self._role = role
        for part in parts:
            if isinstance(part, ToolCall):
                if not part.id:
                    part = replace(part, id=self._made_id())
                self._names[part.id] = part.name
            self._parts.append(part)

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
        form: list[str] = []
        if isinstance(output, str):
            parts = (Text(output),) if output else ()
        elif isinstance(output, list):
            form.append("list")
            found = enumerate(cast(list[object], output))
            parts = tuple(decode_part(part, f"{path}.output[{number}]") for number, part in found)
        elif output is not None:
            parts = (Text(dump(output)),)
        result = ToolResult(
            call_id=call_id,
            name=self._names.get(call_id, ""),
            parts=parts,
            kind=_OUTPUTS[item["type"]],
        )
        same: object = item["output"] if "list" in form else result.text
        written = result_item(result, same)
        return replace(result, kept=remember(item, written, form))


def _message(item: JsonObject, role: Role, path: str) -> Message:
    content = item.get("content")
    form = "item"
    parts: tuple[Part, ...] = ()
    if isinstance(content, str):
        form = "string"
        parts = (Text(content),)
    elif isinstance(content, list):
        found = enumerate(cast(list[object], content))
        parts = tuple(decode_part(part, f"{path}.content[{number}]") for number, part in found)
    word = "system" if role == "system" else "user"
    written: JsonObject = {"type": "message", "role": word, "content": []}
    if isinstance(content, str | list):
        written["content"] = content
    return Message(role=role, parts=parts, kept=remember(item, written, [form]))


def decode_part(value: object, path: str) -> ResultPart:
    """A content part; one of an unknown type stays whole."""
    source = obj(value, path)
    part: Text | Media | None = None
    match source.get("type"):
        case str(word) if word in TEXT_TYPES and isinstance(source.get("text"), str):
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
        kind = source.get("type")
        word = kind if isinstance(kind, str) else ""
        return ServerBlock(origin=Origin(NAME), kind=word, data=dump(source))
    kept = remember(source, text_body(part) if isinstance(part, Text) else media_body(part))
    if isinstance(part, Text):
        return Text(part.text, kept=kept)
    return Media(
        kind=part.kind,
        mime=part.mime,
        base64=part.base64,
        url=part.url,
        file_id=part.file_id,
        name=part.name,
        kept=kept,
    )
