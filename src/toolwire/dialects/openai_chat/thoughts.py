"""Reasoning of compatible servers: read from any of its members, each word once, and sealed."""

from typing import Any

from toolwire.dialects.openai_chat.wire import Delta
from toolwire.events import ModelEvent, ThinkingDelta, ThinkingEnded
from toolwire.messages import Origin, Seal
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump


class Thoughts:
    """One per answer. Tells the words as they come, then seals what the maker wants back."""

    def __init__(self, origin: Origin, *, whole: bool = False) -> None:
        self._origin = origin
        self._whole = whole
        self._plain_seen = False
        self._members: dict[str, list[str]] = {}
        self._details: list[JsonObject] = []
        self._parts: list[str] = []
        self.open = False

    def add(self, delta: Delta, events: list[ModelEvent]) -> None:
        """The reasoning of one delta, in whichever member it stands."""
        text = ""
        if isinstance(delta.reasoning, str) and delta.reasoning:
            text = self._plain("reasoning", delta.reasoning)
        if delta.reasoning_content:
            text = self._plain("reasoning_content", delta.reasoning_content)
        if delta.reasoning_details:
            self.open = True
            if not text and not self._plain_seen:
                text = details_text(delta.reasoning_details)
            if self._whole:
                self._details.extend(delta.reasoning_details)
            else:
                merge_details(self._details, delta.reasoning_details)
        if text:
            events.append(ThinkingDelta(text))

    def add_part(self, text: str, events: list[ModelEvent]) -> None:
        """Reasoning that stands as a part inside the content list (Mistral)."""
        self.open = True
        self._parts.append(text)
        if text:
            events.append(ThinkingDelta(text))

    def end(self, events: list[ModelEvent]) -> None:
        """Something else begins: what was thought since the last time is sealed."""
        if not self.open:
            return
        self.open = False
        sealed: JsonObject = {name: "".join(texts) for name, texts in self._members.items()}
        if self._details:
            sealed["reasoning_details"] = self._details
        if self._parts:
            sealed = thinking_part("".join(self._parts)) | sealed
        self._members = {}
        self._details = []
        self._parts = []
        events.append(ThinkingEnded(Seal(origin=self._origin, data=dump(sealed))))

    def _plain(self, member: str, text: str) -> str:
        self.open = self._plain_seen = True
        self._members.setdefault(member, []).append(text)
        return text


def thinking_part(text: str) -> JsonObject:
    """Thinking as a part of the content list."""
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def part_text(thinking: str | list[dict[str, Any]] | None) -> str:
    """The words of a thinking part."""
    if isinstance(thinking, str):
        return thinking
    return "".join(_string(piece.get("text")) for piece in thinking or ())


def details_text(details: list[JsonObject]) -> str:
    """The words of reasoning details; encrypted ones have none."""
    return "".join(_string(item.get("text")) or _string(item.get("summary")) for item in details)


def merge_details(into: list[JsonObject], pieces: list[JsonObject]) -> None:
    """Streamed pieces of one index and type become one item: words joined, the rest replaced."""
    for piece in pieces:
        match = next((item for item in reversed(into) if _same_item(item, piece)), None)
        if match is None:
            into.append(dict(piece))
            continue
        for key, value in piece.items():
            if key in ("text", "summary") and isinstance(value, str):
                match[key] = _string(match.get(key)) + value
            elif value is not None or key not in match:
                match[key] = value


def _same_item(item: JsonObject, piece: JsonObject) -> bool:
    index = piece.get("index")
    return (
        index is not None
        and item.get("index") == index
        and item.get("type") == piece.get("type")
        and not (item.get("id") and piece.get("id") and item["id"] != piece["id"])
    )


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""
