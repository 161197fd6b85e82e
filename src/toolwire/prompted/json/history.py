"""The conversation as a model without tools can read it: its calls as JSON, results as text."""

from collections.abc import Sequence

import msgspec

from toolwire.events import Notice
from toolwire.messages import (
    CallKind,
    Media,
    Message,
    Part,
    ServerBlock,
    Text,
    ToolCall,
    ToolResult,
)
from toolwire.wire.json_access import dump
from toolwire.wire.names import ToolNames

_decode = msgspec.json.Decoder().decode
NOTHING = "(it returned nothing)"


class Rendering:
    """Turns messages into plain ones; `limit` is the most characters of a result."""

    def __init__(self, names: ToolNames, limit: int | None = None) -> None:
        self._names = names
        self._limit = limit
        self._calls: dict[str, ToolCall] = {}
        self.notices: list[Notice] = []

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """All of them, in order."""
        return tuple(map(self._message, messages))

    def _message(self, message: Message) -> Message:
        if message.role == "assistant":
            parts = self._said(message)
        else:
            parts = tuple(new for part in message.parts for new in self._heard(part))
        return message if parts == message.parts else Message(role=message.role, parts=parts)

    def _said(self, message: Message) -> tuple[Part, ...]:
        """Each run of text becomes a reply, the calls one object, as the model would write them."""
        lines: list[str] = []
        others: list[Part] = []
        if message.text:
            lines.append(f'{{"reply": {dump(message.text)}}}')
        calls = [self._call(call) for call in message.calls]
        if len(calls) == 1:
            lines.append(calls[0])
        elif calls:
            lines.append(f'{{"calls": [{", ".join(calls)}]}}')
        others = [part for part in message.parts if not isinstance(part, Text | ToolCall)]
        return (*others, Text("\n".join(lines))) if lines else tuple(others)

    def _call(self, call: ToolCall) -> str:
        self._calls[call.id] = call
        name = dump(self._names.wire_name(call.name, call.namespace))
        arguments = call.arguments
        if call.kind is CallKind.FREEFORM:
            arguments = dump({"input": arguments})
        elif not arguments.strip():
            arguments = "{}"
        elif not _is_json(arguments):
            arguments = dump(arguments)
        return f'{{"tool": {name}, "arguments": {arguments}}}'

    def _heard(self, part: Part) -> tuple[Part, ...]:
        if not isinstance(part, ToolResult):
            return (part,)
        call = self._calls.get(part.call_id)
        name = part.name or (call.name if call is not None else part.call_id)
        word = "Error from" if part.is_error else "Result of"
        text = self._shortened(part.text, name)
        media = [it for it in part.parts if isinstance(it, Media)]
        if any(isinstance(it, ServerBlock) for it in part.parts):
            self.notices.append(
                Notice("result_cut", f"a vendor's own block in the result of {name} was left out")
            )
        shown = text or ("(see below)" if media else NOTHING)
        return (Text(f"{word} {name}:\n{shown}"), *media)

    def _shortened(self, text: str, name: str) -> str:
        limit = self._limit
        if limit is None or len(text) <= limit:
            return text
        # The end often says how it came out, so a quarter of the room is kept for it.
        tail = limit // 4
        head = limit - tail
        left_out = len(text) - limit
        self.notices.append(
            Notice("result_cut", f"{left_out} characters of the result of {name} were left out")
        )
        end = text[len(text) - tail :]
        return f"{text[:head]}\n[… {left_out} characters left out here …]\n{end}"


def _is_json(text: str) -> bool:
    try:
        _decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return False
    return True
