"""Classification of a request by the small model itself."""

import re
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Any

import msgspec

from toolwire.events import Finished, ModelEvent, TextDelta, TextEnded, Usage
from toolwire.messages import Message, Text
from toolwire.model import Model, reading
from toolwire.request import ModelRequest, OutputFormat

QUESTION = "\n\nOf which kind is this request?"
"""Follows the request; the system prompt contains examples."""


class RequestKind(StrEnum):
    """Kind of a request."""

    QUESTION = "question"
    CHANGE = "change"
    COMMAND = "command"
    TALK = "talk"


class _Answer(msgspec.Struct):
    kind: RequestKind


_read = msgspec.json.Decoder(_Answer).decode
_asks = re.compile(
    r"(?:(?:at|by|for|from|in|of|on|to|under|with) )?"
    r"(?:who|whom|whose|which|what|where|when|how (?:many|much|long|old|often))\b[^.!]*\?",
    re.IGNORECASE,
).match
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"type": "string", "enum": [kind.value for kind in RequestKind]}},
    "required": ["kind"],
    "additionalProperties": False,
}


class KindQuestion:
    """One question about the kind; `kind` and `usage` are set after its events."""

    def __init__(self, model: Model, request: ModelRequest) -> None:
        self._model = model
        self._request = msgspec.structs.replace(
            request,
            messages=(*request.messages[:-1], _with_question(request.messages[-1])),
            output=OutputFormat(kind="json_schema", schema=_SCHEMA, name="kind"),
        )
        self.kind: RequestKind | None = None
        self.usage = Usage()

    async def events(self) -> AsyncIterator[ModelEvent]:
        """Progress events of the question."""
        said: list[str] = []
        async with reading(self._model(self._request)) as events:
            async for event in events:
                match event:
                    case TextDelta():
                        said.append(event.text)
                    case Finished():
                        self.usage = event.usage
                    case TextEnded():
                        pass
                    case _:
                        yield event
        try:
            self.kind = _read("".join(said)).kind
        except (msgspec.DecodeError, UnicodeError):
            self.kind = None


def likely(words: str, said: RequestKind | None) -> RequestKind | None:
    """The kind, or None where the model classifies a question as a change."""
    return None if said is RequestKind.CHANGE and _asks(words.strip()) else said


def _with_question(message: Message) -> Message:
    *before, last = message.parts
    said = last.text if isinstance(last, Text) else ""
    return Message(role=message.role, parts=(*before, Text(said + QUESTION)))
