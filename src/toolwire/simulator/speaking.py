"""Converts a reply to events, with ids and seals as the vendor makes them."""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from toolwire.events import (
    Finished,
    MediaAdded,
    ModelEvent,
    RefusalDelta,
    StopReason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    Usage,
)
from toolwire.messages import Origin, Seal
from toolwire.request import JsonObject
from toolwire.simulator.script import Call, Decline, Piece, Reply, Say, Show, Think
from toolwire.simulator.seals import Seals, call_content
from toolwire.wire.json_access import dump

ChatThinking: TypeAlias = Literal["reasoning_content", "reasoning_details", "thought_signature"]
"""Where a compatible chat server puts its thinking: DeepSeek and similar, OpenRouter, and
Gemini behind a chat address.
"""
ANTHROPIC, CHAT, GEMINI, RESPONSES = (
    "anthropic-messages",
    "openai-chat",
    "gemini",
    "openai-responses",
)


class Voice(msgspec.Struct, frozen=True, kw_only=True):
    """The vendor that a reply imitates."""

    family: str
    model: str
    seals: Seals
    new_id: Callable[[], str]
    chat_thinking: ChatThinking = "reasoning_content"
    id_length: int = 0
    """Length of call ids, where the server has its own rule."""

    @property
    def signs_all(self) -> bool:
        """Gemini 3 signs every answer, whether it showed its thoughts or not."""
        return self.family == GEMINI and "gemini-3" in self.model


def spoken(reply: Reply, voice: Voice, counted: Usage) -> tuple[list[ModelEvent], Finished]:
    """Returns the events of a reply and its end; usage is `counted` unless the reply sets it."""
    events = _Speaker(reply, voice).events()
    detail = "MALFORMED_FUNCTION_CALL" if reply.reason is StopReason.MALFORMED_CALL else ""
    return events, Finished(reason=reply.reason, usage=reply.usage or counted, detail=detail)


class _Speaker:
    def __init__(self, reply: Reply, voice: Voice) -> None:
        self._reply = reply
        self._voice = voice
        shown = (p for p in reply.pieces if isinstance(p, Think) and not p.hidden)
        self._thoughts = "".join(piece.text for piece in shown)
        self._thought = any(isinstance(piece, Think) for piece in reply.pieces)
        self._seals: list[str] = []
        self._call_ids: list[str] = []

    def events(self) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        last = len(self._reply.pieces) - 1
        for number, piece in enumerate(self._reply.pieces):
            events += self._piece(piece, last=number == last)
        for call_id in self._call_ids:
            self._voice.seals.remember(call_id, tuple(self._seals), self._thoughts)
        return events

    def _piece(self, piece: Piece, *, last: bool) -> Iterable[ModelEvent]:
        match piece:
            case Say():
                yield from (TextDelta(text) for text in self._cut(piece.text))
                yield from self._text_end(last)
            case Think():
                words = "" if piece.hidden else piece.text
                yield from (ThinkingDelta(text) for text in self._cut(words))
                yield ThinkingEnded(self._thinking_seal(words, hidden=piece.hidden))
            case Decline():
                yield from (RefusalDelta(text) for text in self._cut(piece.text))
            case Call():
                yield from self._call(piece)
            case Show():
                yield MediaAdded(piece.media)

    def _cut(self, text: str) -> Iterator[str]:
        step = self._reply.delta or len(text) or 1
        return (text[at : at + step] for at in range(0, len(text), step))

    def _sealed(self, members: JsonObject) -> Seal:
        return Seal(origin=Origin(self._voice.family), data=dump(members))

    def _issue(self, content: str) -> str:
        token = self._voice.seals.issue(self._voice.family, self._voice.model, content)
        self._seals.append(token)
        return token

    def _thinking_seal(self, words: str, *, hidden: bool) -> Seal | None:
        match self._voice.family:
            case "anthropic-messages" if hidden:
                return self._sealed({"type": "redacted_thinking", "data": self._issue("")})
            case "anthropic-messages":
                return self._sealed({"signature": self._issue(words)})
            case "openai-responses":
                return self._sealed({"encrypted_content": self._issue(words)})
            case "openai-chat" if self._voice.chat_thinking == "reasoning_details":
                return self._sealed({"reasoning_details": [self._detail(words, hidden)]})
            case _:
                return None

    def _detail(self, words: str, hidden: bool) -> JsonObject:
        around: JsonObject = {"format": "unknown", "index": 0}
        if hidden:
            return {"type": "reasoning.encrypted", "data": self._issue(""), **around}
        seal = self._issue(words)
        return {"type": "reasoning.text", "text": words, "signature": seal, **around}

    def _text_end(self, last: bool) -> Iterable[ModelEvent]:
        signs = self._voice.family == GEMINI and (self._thought or self._voice.signs_all)
        if last and signs and not self._call_ids:
            yield TextEnded(self._sealed({"thoughtSignature": self._issue("")}))

    def _call(self, call: Call) -> Iterable[ModelEvent]:
        first = not self._call_ids
        call_id = call.id or _call_id(self._voice)
        self._call_ids.append(call_id)
        made = not call.id and self._voice.family == GEMINI
        yield ToolCallStarted(call_id, call.name, made_id=made)
        yield from (ToolCallDelta(call_id, text) for text in self._cut(call.arguments))
        seal = self._call_seal(call, first) if call.complete else None
        yield ToolCallEnded(call_id, complete=call.complete, seal=seal)

    def _call_seal(self, call: Call, first: bool) -> Seal | None:
        voice = self._voice
        content = call_content(call.name, call.arguments)
        # Of parallel calls only the first is signed.
        if voice.family == GEMINI and first and (self._thought or voice.signs_all):
            return self._sealed({"thoughtSignature": self._issue(content)})
        if voice.family == CHAT and voice.chat_thinking == "thought_signature" and first:
            signature = {"google": {"thought_signature": self._issue(content)}}
            return self._sealed({"extra_content": signature})
        return None


def _call_id(voice: Voice) -> str:
    tail = voice.new_id().rpartition("_")[2]
    if voice.id_length:
        return tail[-voice.id_length :]
    return f"toolu_{tail}" if voice.family == ANTHROPIC else f"call_{tail}"
