"""Events → frames of a streamed answer, in the order of the server; a message → a whole answer."""

from collections.abc import Callable, Sequence

import msgspec
from msgspec.structs import replace

from toolwire.dialects import USUAL_ANSWER, AnswerOptions
from toolwire.dialects.openai_responses.ends import response_body
from toolwire.dialects.openai_responses.errors import error_body
from toolwire.dialects.openai_responses.items import (
    answered_call,
    answered_item,
    answered_message,
    answered_part,
    call_item,
    image_item,
    is_more,
    message_groups,
    reasoning_item,
)
from toolwire.dialects.openai_responses.media import annotation
from toolwire.dialects.openai_responses.shapes import NAME, OWN_ID
from toolwire.errors import ProviderError
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    Notice,
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
from toolwire.messages import (
    CallKind,
    Citation,
    Media,
    MediaKind,
    Message,
    Refusal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
)
from toolwire.wire.json_access import JsonObject, encode
from toolwire.wire.sse import Frame


def response_id(new_id: Callable[[], str]) -> str:
    """An id for an answer."""
    return f"resp_{OWN_ID}{new_id().removeprefix('call_')}"


class _OpenCall:
    __slots__ = ("arguments", "index", "item_id", "started")

    def __init__(self, started: ToolCallStarted, index: int, item_id: str) -> None:
        self.started = started
        self.index = index
        self.item_id = item_id
        self.arguments: list[str] = []

    def part(self, ended: ToolCallEnded | None) -> ToolCall:
        text = "".join(self.arguments)
        if ended is not None and ended.arguments is not None:
            text = ended.arguments
        return ToolCall(
            id=self.started.id,
            name=self.started.name,
            arguments=text,
            kind=self.started.kind,
            namespace=self.started.namespace,
            complete=ended is not None and ended.complete,
            seal=ended.seal if ended else None,
            kept=ended.kept if ended else None,
        )


class _OpenItem:
    """The message or reasoning item that receives text."""

    __slots__ = ("citations", "index", "item_id", "kind", "part_open", "parts", "text")

    def __init__(self, kind: str, index: int, item_id: str) -> None:
        self.kind = kind
        self.index = index
        self.item_id = item_id
        self.parts: list[Text | Refusal] = []
        self.part_open = ""
        self.text: list[str] = []
        self.citations: list[Citation] = []


class AnswerEncoder:
    """One per answer. Item ids are our own: those of the vendor arrive only when an item ends."""

    def __init__(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER
    ) -> None:
        self._model = model
        self.response_id = response_id(new_id)
        self._options = options
        self._begun = False
        self._number = 0
        self._frames: list[Frame] = []
        self._output: list[object] = []
        self._open: _OpenItem | None = None
        self._calls: dict[str, _OpenCall] = {}
        self._refused = False
        self._finished = False

    def feed(self, event: ModelEvent) -> Sequence[Frame]:
        """The frames of one event."""
        if self._finished:
            return ()
        if not self._begun:
            self._begin()
        match event:
            case TextDelta() | RefusalDelta():
                self._text_delta(event)
            case ThinkingDelta():
                self._reasoning_delta(event.text)
            case ToolCallDelta():
                self._arguments_delta(event)
            case TextEnded():
                self._end_text(event)
            case ThinkingEnded():
                self._end_thinking(event)
            case ToolCallStarted():
                self._start_call(event)
            case ToolCallEnded():
                self._end_call(event)
            case CitationAdded():
                self._cite(event.citation)
            case MediaAdded():
                self._add_media(event.media)
            case ServerBlockAdded():
                self._add_block(event.block)
            case Notice():
                pass
            case Finished():
                self._finish(event)
        frames, self._frames = self._frames, []
        return frames

    def close(self) -> Sequence[Frame]:
        """No frames: the last event has ended the answer."""
        return ()

    def beat(self) -> Sequence[Frame]:
        """The opening, then that the answer is in progress: clients do not count comments."""
        if self._finished:
            return ()
        if self._begun:
            self._send("response.in_progress", {"response": self._response((), None)})
        else:
            self._begin()
        frames, self._frames = self._frames, []
        return frames

    def fail(self, error: ProviderError) -> Sequence[Frame]:
        """The error event, then the failed response."""
        if self._finished:
            return ()
        if not self._begun:
            self._begin()
        self._finished = True
        body = error_body(error)
        details = {"code": body["code"], "message": body["message"], "param": body["param"]}
        self._send("error", details)
        response = self._response(self._items(), None)
        failure = {"code": body["code"], "message": body["message"]}
        response |= {"status": "failed", "error": failure}
        self._send("response.failed", {"response": response})
        frames, self._frames = self._frames, []
        return frames

    def _send(self, kind: str, body: JsonObject) -> None:
        data = {"type": kind, "sequence_number": self._number, **body}
        self._number += 1
        self._frames.append(Frame(encode(data), kind))

    def _begin(self) -> None:
        self._begun = True
        response = self._response((), None)
        self._send("response.created", {"response": response})
        self._send("response.in_progress", {"response": response})

    def _response(self, output: Sequence[object], end: Finished | None) -> JsonObject:
        model = self._model if end is None else end.model or self._model
        body = response_body(self.response_id, model, output, end, refused=self._refused)
        return body | _requested(self._options)

    def _items(self) -> list[object]:
        return [item for item in self._output if item is not None]

    def _reserve(self, prefix: str) -> tuple[int, str]:
        index = len(self._output)
        self._output.append(None)
        return index, f"{prefix}_{self.response_id.removeprefix('resp_')}_{index}"

    def _item_added(self, index: int, item: JsonObject) -> None:
        self._send("response.output_item.added", {"output_index": index, "item": item})

    def _item_done(self, index: int, item: JsonObject) -> None:
        self._output[index] = item
        self._send("response.output_item.done", {"output_index": index, "item": item})

    def _opened(self, kind: str) -> _OpenItem:
        """The open item of that kind; another one is closed first."""
        if self._open is not None and self._open.kind == kind:
            return self._open
        self._close_open()
        index, item_id = self._reserve("msg" if kind == "message" else "rs")
        self._open = _OpenItem(kind, index, item_id)
        item: JsonObject = {"id": item_id, "type": kind}
        if kind == "message":
            item |= {"status": "in_progress", "content": [], "role": "assistant"}
        else:
            item["summary"] = []
        self._item_added(index, item)
        return self._open

    def _close_open(self) -> None:
        if self._open is None:
            return
        if self._open.kind == "message":
            self._end_text(TextEnded())
        else:
            self._end_thinking(ThinkingEnded())

    def _text_delta(self, event: TextDelta | RefusalDelta) -> None:
        kind = "output_text" if isinstance(event, TextDelta) else "refusal"
        item = self._opened("message")
        if item.part_open and item.part_open != kind:
            self._end_text(TextEnded())
            item = self._opened("message")
        self._open_part(item, kind)
        item.text.append(event.text)
        body: JsonObject = {"delta": event.text}
        if kind == "output_text":
            body["logprobs"] = []
        self._send(f"response.{kind}.delta", {**_within(item), **body})

    def _open_part(self, item: _OpenItem, kind: str) -> None:
        if item.part_open:
            return
        item.part_open = kind
        self._refused = self._refused or kind == "refusal"
        part: JsonObject = {"type": "refusal", "refusal": ""}
        if kind == "output_text":
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        self._send("response.content_part.added", {**_within(item), "part": part})

    def _cite(self, source: Citation) -> None:
        found = annotation(source)
        if found is None:
            return
        item = self._opened("message")
        if item.part_open == "refusal":
            self._end_text(TextEnded())
            item = self._opened("message")
        self._open_part(item, "output_text")
        number = len(item.citations)
        item.citations.append(source)
        body = {"annotation_index": number, "annotation": found}
        self._send("response.output_text.annotation.added", {**_within(item), **body})

    def _end_text(self, event: TextEnded) -> None:
        item = self._opened("message")
        self._open_part(item, "output_text")
        text = "".join(item.text) if event.text is None else event.text
        if item.part_open == "refusal":
            part: Text | Refusal = Refusal(text, event.seal, event.kept)
        else:
            part = Text(text, tuple(item.citations), seal=event.seal, kept=event.kept)
        self._end_part(item, part)
        item.parts.append(part)
        item.part_open = ""
        item.text.clear()
        item.citations.clear()
        if not is_more(event.kept):
            self._item_done(item.index, {**answered_message(item.parts), "id": item.item_id})
            self._open = None

    def _end_part(self, item: _OpenItem, part: Text | Refusal) -> None:
        if isinstance(part, Refusal):
            self._send("response.refusal.done", {**_within(item), "refusal": part.text})
        else:
            body: JsonObject = {"text": part.text, "logprobs": []}
            self._send("response.output_text.done", {**_within(item), **body})
        self._send("response.content_part.done", {**_within(item), "part": answered_part(part)})

    def _reasoning_delta(self, text: str) -> None:
        item = self._opened("reasoning")
        where = _summary(item)
        if not item.part_open:
            item.part_open = "summary"
            part = {"type": "summary_text", "text": ""}
            self._send("response.reasoning_summary_part.added", {**where, "part": part})
        item.text.append(text)
        self._send("response.reasoning_summary_text.delta", {**where, "delta": text})

    def _end_thinking(self, event: ThinkingEnded) -> None:
        item = self._opened("reasoning")
        text = "".join(item.text)
        if item.part_open:
            where = _summary(item)
            part = {"type": "summary_text", "text": text}
            self._send("response.reasoning_summary_text.done", {**where, "text": text})
            self._send("response.reasoning_summary_part.done", {**where, "part": part})
        thought = Thinking(text, event.seal, event.kept)
        self._item_done(item.index, {**reasoning_item(thought), "id": item.item_id})
        self._open = None

    def _start_call(self, event: ToolCallStarted) -> None:
        self._close_open()
        freeform = event.kind is CallKind.FREEFORM
        index, item_id = self._reserve("ctc" if freeform else "fc")
        call = self._calls[event.id] = _OpenCall(event, index, item_id)
        item = call_item(call.part(None), event.name, "")
        self._item_added(index, {**item, "id": item_id, "status": "in_progress"})

    def _arguments_delta(self, event: ToolCallDelta) -> None:
        call = self._calls.get(event.id)
        if call is None:
            return
        call.arguments.append(event.arguments)
        where = {"item_id": call.item_id, "output_index": call.index}
        self._send(f"response.{_member(call)}.delta", {**where, "delta": event.arguments})

    def _end_call(self, event: ToolCallEnded) -> None:
        call = self._calls.pop(event.id, None)
        if call is None:
            return
        part = call.part(event)
        where = {"item_id": call.item_id, "output_index": call.index}
        freeform = part.kind is CallKind.FREEFORM
        text = {"input" if freeform else "arguments": part.arguments}
        self._send(f"response.{_member(call)}.done", {**where, **text})
        self._item_done(call.index, {**answered_call(part), "id": call.item_id})

    def _add_media(self, media: Media) -> None:
        if media.kind is not MediaKind.IMAGE or not media.base64:
            return
        self._close_open()
        index, item_id = self._reserve("ig")
        item = {**image_item(media), "id": item_id}
        self._item_added(index, {**item, "status": "in_progress", "result": None})
        self._item_done(index, item)

    def _add_block(self, block: ServerBlock) -> None:
        if block.origin.dialect != NAME:
            return
        self._close_open()
        index, _ = self._reserve("item")
        # Sent byte for byte.
        item = msgspec.Raw(block.data.encode())
        self._output[index] = item
        for kind in ("response.output_item.added", "response.output_item.done"):
            self._send(kind, {"output_index": index, "item": item})

    def _finish(self, event: Finished) -> None:
        self._close_open()
        for call_id in list(self._calls):
            self._end_call(ToolCallEnded(call_id, complete=False))
        self._finished = True
        response = self._response(self._items(), event)
        status = response["status"]
        ended = status if status in ("completed", "failed") else "incomplete"
        self._send(f"response.{ended}", {"response": response})


def _within(item: _OpenItem) -> JsonObject:
    return {
        "item_id": item.item_id,
        "output_index": item.index,
        "content_index": len(item.parts),
    }


def _summary(item: _OpenItem) -> JsonObject:
    return {"item_id": item.item_id, "output_index": item.index, "summary_index": 0}


def _member(call: _OpenCall) -> str:
    freeform = call.started.kind is CallKind.FREEFORM
    return "custom_tool_call_input" if freeform else "function_call_arguments"


def _requested(options: AnswerOptions) -> JsonObject:
    """The members of a response that repeat its request."""
    return {
        "created_at": options.created,
        "previous_response_id": options.previous_response_id or None,
        "store": options.store,
    }


def whole_answer(
    message: Message,
    finished: Finished,
    model: str,
    new_id: Callable[[], str],
    options: AnswerOptions = USUAL_ANSWER,
) -> bytes:
    """A response object with everything in it."""
    name = response_id(new_id)
    output: list[object] = []
    refused = False
    for group in message_groups(message.parts):
        tail = f"{name.removeprefix('resp_')}_{len(output)}"
        if isinstance(group, list):
            refused = refused or any(isinstance(part, Refusal) for part in group)
            output.append({"id": f"msg_{tail}", **answered_message(group)})
            continue
        found = answered_item(group, tail)
        if found is not None:
            output.append(found)
    end = replace(finished, model=finished.model or model)
    body = response_body(finished.response_id or name, end.model, output, end, refused=refused)
    return encode(body | _requested(options))
