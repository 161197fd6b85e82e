"""The `input` of a request ⇄ messages: items are gathered into turns and spread out again."""

from collections.abc import Iterator, Sequence
from typing import cast

from msgspec import Raw
from msgspec.structs import replace

from toolwire.dialects.arguments import as_text
from toolwire.dialects.kept import own_seal
from toolwire.dialects.losses import Losses
from toolwire.dialects.openai_responses.content import decode_part, encode_part
from toolwire.dialects.openai_responses.items import (
    call_item,
    decode_item,
    image_item,
    message_groups,
    message_item,
    reasoning_item,
    without_our_id,
)
from toolwire.dialects.openai_responses.remembering import remember, replay, words
from toolwire.dialects.openai_responses.wire import NAME
from toolwire.messages import (
    CallKind,
    Kept,
    Media,
    Message,
    Origin,
    Part,
    Refusal,
    ResultPart,
    Role,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import ModelRequest
from toolwire.wire.json_access import JsonObject, dump, parse_object
from toolwire.wire.names import ToolNames

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
        written = _result_item(result, same)
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


def encode_input(
    request: ModelRequest, names: ToolNames, losses: Losses, *, own: bool
) -> list[object]:
    """The input items of the messages."""
    return _Spreader(request, names, losses, own).write()


class _Spreader:
    """Spreads messages into items."""

    def __init__(self, request: ModelRequest, names: ToolNames, losses: Losses, own: bool) -> None:
        self._request = request
        self._names = names
        self._losses = losses
        self._own = own
        self._foreign_files = request.kept is not None and not own

    def write(self) -> list[object]:
        items: list[object] = []
        for number, message in enumerate(self._request.messages):
            path = f"messages[{number}]"
            if message.role == "assistant":
                items += self._assistant(message, path)
            elif _is_item(message.kept):
                items.append(self._item(message, path))
            else:
                items += self._speaker(message, path)
        return items

    def _item(self, message: Message, path: str) -> JsonObject:
        content = self._content(list(enumerate(message.parts)), path)
        body: JsonObject = {"type": "message", "role": message.role, "content": content}
        if "string" in words(message.kept):
            body["content"] = "".join(p.text for p in message.parts if isinstance(p, Text))
        return replay(body, message.kept)

    def _content(self, parts: list[tuple[int, Part]], path: str) -> list[object]:
        content: list[object] = []
        for number, part in parts:
            body = encode_part(
                part,
                f"{path}.parts[{number}]",
                self._losses,
                own=self._own,
                foreign_files=self._foreign_files,
            )
            if body is not None:
                content.append(body)
        return content

    def _speaker(self, message: Message, path: str) -> Iterator[object]:
        """A user's or system's message from elsewhere: results and words in their order."""
        pending: list[tuple[int, Part]] = []
        for number, part in enumerate(message.parts):
            if not isinstance(part, ToolResult | ServerBlock):
                pending.append((number, part))
                continue
            yield from self._words(message, pending, path)
            pending = []
            if isinstance(part, ToolResult):
                yield self._result(part, f"{path}.parts[{number}]")
            elif part.origin.dialect == NAME:
                yield Raw(part.data.encode())
        yield from self._words(message, pending, path)

    def _words(
        self, message: Message, parts: list[tuple[int, Part]], path: str
    ) -> Iterator[JsonObject]:
        content = self._content(parts, path)
        if not content:
            return
        only = parts[0][1]
        if len(parts) == 1 and isinstance(only, Text) and not words(only.kept):
            yield {"role": message.role, "content": only.text}
        else:
            yield {"role": message.role, "content": content}

    def _result(self, part: ToolResult, path: str) -> JsonObject:
        if not self._own:
            if part.is_error:
                self._losses.add(f"{path}.is_error", "error flag", "told by the text alone")
            if part.cache is not None:
                self._losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
        output: object = part.text
        plain = all(isinstance(inner, Text) for inner in part.parts) and len(part.parts) < 2
        if "list" in words(part.kept) or not plain:
            output = self._content(list(enumerate(part.parts)), path)
        elif part.parts and not self._own:
            self._content(list(enumerate(part.parts)), path)
        return replay(_result_item(part, output), part.kept)

    def _assistant(self, message: Message, path: str) -> Iterator[object]:
        number = 0
        for group in message_groups(message.parts):
            if isinstance(group, list):
                yield from self._said(group, path, number)
                number += len(group)
                continue
            found = self._made(group, f"{path}.parts[{number}]")
            number += 1
            if found is not None:
                yield found

    def _said(self, parts: list[Text | Refusal], path: str, number: int) -> Iterator[JsonObject]:
        last = parts[-1]
        sealed = own_seal(last.seal, NAME)
        if words(last.kept) and (self._own or "id" in sealed):
            self._report(parts, path, number)
            yield without_our_id(message_item(parts))
            return
        self._report(parts, path, number, easy=True)
        for part in parts:
            # A list of output parts needs an item id; a plain text of the assistant does not.
            if part.text:
                phase = {"phase": sealed["phase"]} if "phase" in sealed else {}
                yield {"role": "assistant", "content": part.text, **phase}

    def _report(
        self, parts: list[Text | Refusal], path: str, number: int, *, easy: bool = False
    ) -> None:
        for offset, part in enumerate(parts):
            place = f"{path}.parts[{number + offset}]"
            if isinstance(part, Refusal):
                if easy:
                    self._losses.add(f"{place}.refusal", "refusal mark", "sent as plain text")
                continue
            if part.cache is not None:
                self._losses.add(f"{place}.cache", "cache mark", "this format caches by itself")
            for index, source in enumerate(part.citations):
                if easy or source.dialect != NAME:
                    self._losses.add(
                        f"{place}.citations[{index}]", "citation", "a plain text has none"
                    )

    def _made(self, part: Part, path: str) -> object | None:
        match part:
            case Thinking():
                return self._thought(part, path)
            case ToolCall():
                return self._call(part, path)
            case ServerBlock():
                return Raw(part.data.encode()) if part.origin.dialect == NAME else None
            case Media() if part.kept is not None and part.kept.dialect == NAME:
                return image_item(part)
            case _:
                self._losses.add(path, type(part).__name__, "an assistant cannot say it here")
                return None

    def _thought(self, part: Thinking, path: str) -> JsonObject | None:
        sealed = own_seal(part.seal, NAME)
        if (self._own and words(part.kept)) or sealed:
            return without_our_id(reasoning_item(part))
        self._losses.add(path, "reasoning", "only the vendor's own reasoning items are taken back")
        return None

    def _call(self, part: ToolCall, path: str) -> JsonObject:
        if self._own:
            return without_our_id(call_item(part, part.name, part.arguments))
        if part.cache is not None:
            self._losses.add(f"{path}.cache", "cache mark", "this format caches by itself")
        name = self._names.wire_name(part.name, part.namespace)
        freeform = part.kind is CallKind.FREEFORM
        arguments = part.arguments if freeform else as_text(part, path, self._losses)
        return without_our_id(call_item(part, name, arguments))


def _result_item(part: ToolResult, output: object) -> JsonObject:
    freeform = part.kind is CallKind.FREEFORM
    return {
        "type": "custom_tool_call_output" if freeform else "function_call_output",
        "call_id": part.call_id,
        "output": output,
    }


def _is_item(kept: Kept | None) -> bool:
    return any(word in ("item", "string") for word in words(kept))
