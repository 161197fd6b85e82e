"""Events as streamed chunks and as whole bodies, as Gemini writes them."""

from typing import Any

import msgspec

from toolwire.dialects.gemini.encode_messages import PartWriter
from toolwire.dialects.gemini.ends import finish_of, write_usage
from toolwire.dialects.gemini.errors import write_error
from toolwire.dialects.gemini.shapes import NAME
from toolwire.dialects.losses import Losses
from toolwire.errors import ProviderError
from toolwire.events import (
    Finished,
    MediaAdded,
    ModelEvent,
    RefusalDelta,
    ServerBlockAdded,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)
from toolwire.messages import Kept, Message, Part, Seal, Text, Thinking, ToolCall
from toolwire.request import JsonObject
from toolwire.wire.json_access import is_object, parse_object
from toolwire.wire.sse import Frame

_encode = msgspec.json.Encoder().encode


class _PendingCall:
    def __init__(self, started: ToolCallStarted) -> None:
        self.started = started
        self.pieces: list[str] = []
        self.ended: ToolCallEnded | None = None

    def call(self, ended: ToolCallEnded) -> ToolCall:
        started = self.started
        text = "".join(self.pieces) if ended.arguments is None else ended.arguments
        return ToolCall(
            id=started.id,
            name=started.name,
            arguments=text,
            kind=started.kind,
            namespace=started.namespace,
            made_id=started.made_id,
            seal=ended.seal,
            kept=ended.kept,
        )


class GeminiEncoder:
    """One per answer. The last part is held back: its signature or the finish reason may follow and
    belongs in its chunk.
    """

    response_id = ""
    """Only the vendor's own id is sent, in the last chunk."""

    def __init__(self, model: str, *, enveloped: bool = False) -> None:
        self._model = model
        self._enveloped = enveloped
        self._writer = PartWriter(Losses())
        self._held: Text | Thinking | JsonObject | None = None
        self._pending: list[_PendingCall] = []
        self._by_id: dict[str, _PendingCall] = {}

    def feed(self, event: ModelEvent) -> list[Frame]:
        """The frames of one event."""
        match event:
            case TextDelta() | RefusalDelta():
                return self._hold(Text(event.text))
            case ThinkingDelta():
                return self._hold(Thinking(event.text))
            case TextEnded():
                return self._close_part(Text(""), event.seal, event.kept)
            case ThinkingEnded():
                return self._close_part(Thinking(""), event.seal, event.kept)
            case ToolCallStarted():
                call = _PendingCall(event)
                self._pending.append(call)
                self._by_id[event.id] = call
                return []
            case ToolCallDelta():
                self._by_id[event.id].pieces.append(event.arguments)
                return []
            case ToolCallEnded():
                self._by_id[event.id].ended = event
                return self._ended_calls()
            case MediaAdded():
                return self._hold_all(event.media)
            case ServerBlockAdded():
                return self._hold_all(event.block)
            case Finished():
                return self._finish(event)
            case _:
                return []

    def close(self) -> list[Frame]:
        """Nothing follows the chunk with the finish reason."""
        return []

    def beat(self) -> list[Frame]:
        """A chunk without parts: clients do not parse a comment."""
        return [self._frame(self._chunk({"content": {"role": "model", "parts": []}}))]

    def fail(self, error: ProviderError) -> list[Frame]:
        """What was held back, then the error object."""
        _, body = write_error(error)
        return [*self._flush(), Frame(_encode(body))]

    def _hold(self, part: Text | Thinking | JsonObject) -> list[Frame]:
        frames = self._flush()
        self._held = part
        return frames

    def _hold_all(self, part: Part) -> list[Frame]:
        return [frame for body in self._writer.write(part, "") for frame in self._hold(body)]

    def _close_part(
        self, part: Text | Thinking, seal: Seal | None, kept: Kept | None
    ) -> list[Frame]:
        own_seal = seal is not None and seal.origin.dialect == NAME
        own_kept = kept is not None and kept.dialect == NAME
        if not own_seal and not own_kept:
            return self._flush()
        held = self._held
        if isinstance(held, type(part)):
            self._held = None
            part = held
        frames = self._flush()
        part = msgspec.structs.replace(part, seal=seal, kept=kept)
        self._held = part
        return [*frames, *self._flush()]

    def _ended_calls(self) -> list[Frame]:
        frames: list[Frame] = []
        while self._pending and self._pending[0].ended is not None:
            pending = self._pending.pop(0)
            if pending.ended is not None and pending.ended.complete:
                frames += self._hold_all(pending.call(pending.ended))
        return frames

    def _body_of_held(self) -> JsonObject | None:
        held = self._held
        self._held = None
        if isinstance(held, Text | Thinking):
            written = self._writer.write(held, "")
            return written[0] if written else None
        return held

    def _flush(self) -> list[Frame]:
        part = self._body_of_held()
        return [] if part is None else [self._frame(self._chunk({"content": _content(part)}))]

    def _finish(self, finished: Finished) -> list[Frame]:
        self._pending = [call for call in self._pending if call.ended is not None]
        frames = self._ended_calls()
        part = self._body_of_held()
        response = write_end(finished, self._model, _content(part or {"text": ""}))
        return [*frames, self._frame(response)]

    def _chunk(self, candidate: JsonObject) -> JsonObject:
        return {"candidates": [{**candidate, "index": 0}], "modelVersion": self._model}

    def _frame(self, response: JsonObject) -> Frame:
        data = _encode({"response": response} if self._enveloped else response)
        # Google's JavaScript SDK reads frames of one line only.
        return Frame(msgspec.json.format(data, indent=-1) if b"\n" in data else data)


def _content(part: JsonObject) -> JsonObject:
    return {"parts": [part], "role": "model"}


def write_end(finished: Finished, model: str, content: JsonObject) -> JsonObject:
    """The last response object of an answer."""
    kept = finished.kept
    own = kept is not None and kept.dialect == NAME
    beside = parse_object(kept.fields, "kept members") if own and kept is not None else {}
    counted = beside.pop("usageMetadata", None)
    feedback = beside.pop("promptFeedback", None)
    reason, message = finish_of(finished.reason, finished.detail)
    response: JsonObject = {}
    if not (is_object(feedback) and feedback.get("blockReason") and not beside):
        candidate: JsonObject = {**beside, "content": content, "finishReason": reason, "index": 0}
        if message:
            candidate["finishMessage"] = message
        response["candidates"] = [candidate]
    if feedback is not None:
        response["promptFeedback"] = feedback
    usage = write_usage(finished.usage, counted if is_object(counted) else {})
    if usage:
        response["usageMetadata"] = usage
    response["modelVersion"] = finished.model or model
    if finished.response_id:
        response["responseId"] = finished.response_id
    return response


def write_whole(message: Message, finished: Finished, model: str) -> JsonObject:
    """An answer in one body."""
    writer = PartWriter(Losses())
    parts: list[Any] = []
    for part in message.parts:
        if not isinstance(part, ToolCall) or part.complete:
            parts += writer.write(part, "")
    content: JsonObject = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    return write_end(finished, model, content)
