"""Chat answers, streamed or whole, as OpenAI's server would write them."""

from collections.abc import Callable, Sequence

from msgspec import Raw

from toolwire.dialects import USUAL_ANSWER, AnswerOptions
from toolwire.dialects.losses import kept_member, own_seal
from toolwire.dialects.openai_chat.encode_messages import write_thinking
from toolwire.dialects.openai_chat.ends import (
    write_reason,
    write_usage,
)
from toolwire.dialects.openai_chat.errors import error_body
from toolwire.dialects.openai_chat.media import with_index, write_citation, write_image
from toolwire.dialects.openai_chat.shapes import (
    NAME,
)
from toolwire.errors import ProviderError
from toolwire.events import (
    CitationAdded,
    Finished,
    MediaAdded,
    ModelEvent,
    RefusalDelta,
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
    Media,
    MediaKind,
    Message,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import encode
from toolwire.wire.sse import Frame

_NO_FRAMES: tuple[Frame, ...] = ()
_TAIL = b',"logprobs":null,"finish_reason":null}]}'


class _Call:
    __slots__ = ("freeform", "index", "sent")

    def __init__(self, index: int, freeform: bool) -> None:
        self.index = index
        self.freeform = freeform
        self.sent: list[str] = []


class ChatEncoder:
    """One per response. The role precedes the first event, usage follows the finish."""

    def __init__(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER
    ) -> None:
        self.response_id = _answer_id(new_id)
        self._options = options
        head = {
            "id": self.response_id,
            "object": "chat.completion.chunk",
            "created": options.created,
            "model": model,
        }
        self._head = encode(head)[:-1]
        self._start = self._head + b',"choices":[{"index":0,"delta":'
        self._calls: dict[str, _Call] = {}
        self._listed: dict[str, int] = {}
        self._begun = False
        self._refused = False
        self._finished = False

    def feed(self, event: ModelEvent) -> Sequence[Frame]:
        """The frames of one event."""
        match event:
            case TextDelta():
                delta = {"content": event.text}
            case ToolCallDelta():
                delta = self._more(event.id, event.arguments)
            case ThinkingDelta():
                delta = {"reasoning_content": event.text}
            case RefusalDelta():
                self._refused = True
                delta = {"refusal": event.text}
            case ToolCallStarted():
                delta = self._call(event)
            case ToolCallEnded():
                delta = self._call_end(event)
            case CitationAdded():
                cited = write_citation(event.citation)
                delta = self._entries("annotations", [cited]) if cited else None
            case ThinkingEnded():
                # The text was sent with the deltas; only the details are left.
                details = own_seal(event.seal, NAME).get("reasoning_details")
                delta = self._entries("reasoning_details", details) if details else None
            case TextEnded():
                delta = own_seal(event.seal, NAME)
            case MediaAdded():
                delta = self._media(event.media)
            case Finished():
                return self._finish(event)
            case _:
                return _NO_FRAMES
        return self._frames(delta) if delta else _NO_FRAMES

    def close(self) -> Sequence[Frame]:
        """The end mark; none for an answer that did not finish."""
        return (Frame(b"[DONE]"),) if self._finished else _NO_FRAMES

    def beat(self) -> Sequence[Frame]:
        """The opening chunk, then empty ones."""
        return self._frames({}) if self._begun else self._begin()

    def fail(self, error: ProviderError) -> Sequence[Frame]:
        """The frame of an error in the middle of a stream."""
        return (Frame(encode(error_body(error))),)

    def _frames(self, delta: JsonObject) -> Sequence[Frame]:
        frame = Frame(b"%b%b%b" % (self._start, encode(delta), _TAIL))
        if self._begun:
            return (frame,)
        return self._begin(frame)

    def _begin(self, *frames: Frame) -> Sequence[Frame]:
        if self._begun:
            return frames
        self._begun = True
        role = encode({"role": "assistant", "content": "", "refusal": None})
        return (Frame(b"%b%b%b" % (self._start, role, _TAIL)), *frames)

    def _call(self, event: ToolCallStarted) -> JsonObject:
        call = _Call(len(self._calls), event.kind is CallKind.FREEFORM)
        self._calls[event.id] = call
        name = f"{event.namespace}__{event.name}" if event.namespace else event.name
        entry: JsonObject = {"index": call.index, "id": event.id}
        if call.freeform:
            entry |= {"type": "custom", "custom": {"name": name, "input": ""}}
        else:
            entry |= {"type": "function", "function": {"name": name, "arguments": ""}}
        return {"tool_calls": [entry]}

    def _more(self, call_id: str, text: str) -> JsonObject | None:
        call = self._calls.get(call_id)
        if call is None or not text:
            return None
        call.sent.append(text)
        return _more_of(call, text)

    def _call_end(self, event: ToolCallEnded) -> JsonObject | None:
        call = self._calls.get(event.id)
        if call is None:
            return None
        delta: JsonObject | None = None
        if event.arguments is not None:
            # What was sent cannot be changed; what is missing can follow.
            sent = "".join(call.sent)
            if event.arguments.startswith(sent):
                delta = self._more(event.id, event.arguments[len(sent) :])
        extra = own_seal(event.seal, NAME)
        if extra:
            # OpenAI's SDK requires the function in every delta of a call.
            delta = delta or _more_of(call, "")
            delta["tool_calls"][0].update(extra)
        return delta

    def _entries(self, name: str, entries: Sequence[Raw | JsonObject]) -> JsonObject:
        first = self._listed.get(name, 0)
        self._listed[name] = first + len(entries)
        if name == "reasoning_details" and not first:
            # The vendor gets them back as they were; one list needs no index.
            return {name: entries}
        return {name: [with_index(entry, first + n) for n, entry in enumerate(entries)]}

    def _media(self, media: Media) -> JsonObject | None:
        if media.kind is MediaKind.IMAGE and (media.base64 or media.url):
            return self._entries("images", [write_image(media)])
        if media.kind is MediaKind.AUDIO and media.base64:
            return {"audio": _write_audio(media)}
        return None

    def _finish(self, event: Finished) -> Sequence[Frame]:
        self._finished = True
        word = encode(write_reason(event.reason, refused=self._refused))
        frames = [Frame(b'%b{},"logprobs":null,"finish_reason":%b}]}' % (self._start, word))]
        usage = write_usage(event.usage)
        if usage is not None and self._options.usage_chunk:
            frames.append(Frame(b'%b,"choices":[],"usage":%b}' % (self._head, encode(usage))))
        return self._begin(*frames)


def _more_of(call: _Call, text: str) -> JsonObject:
    more = {"custom": {"input": text}} if call.freeform else {"function": {"arguments": text}}
    return {"tool_calls": [{"index": call.index, **more}]}


def encode_whole(
    message: Message,
    finished: Finished,
    model: str,
    new_id: Callable[[], str],
    options: AnswerOptions = USUAL_ANSWER,
) -> bytes:
    """The body of a whole answer."""
    written = _write_message(message)
    refused = written["refusal"] is not None
    body: JsonObject = {
        "id": finished.response_id or _answer_id(new_id),
        "object": "chat.completion",
        "created": options.created,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": written,
                "logprobs": None,
                "finish_reason": write_reason(finished.reason, refused=refused),
            }
        ],
    }
    usage = write_usage(finished.usage)
    if usage is not None:
        body["usage"] = usage
    return encode(body)


def _answer_id(new_id: Callable[[], str]) -> str:
    """A new id with the usual prefix."""
    return f"chatcmpl-{new_id().removeprefix('call_')}"


def _write_message(message: Message) -> JsonObject:
    texts: list[str] = []
    refusals: list[str] = []
    calls: list[JsonObject] = []
    written: JsonObject = {"role": "assistant", "content": None, "refusal": None}
    for part in message.parts:
        match part:
            case Text():
                texts.append(part.text)
                written.update(own_seal(part.seal, NAME))
                if part.citations:
                    citations = filter(None, map(write_citation, part.citations))
                    written.setdefault("annotations", []).extend(citations)
            case Thinking():
                write_thinking(written, part)
            case Refusal():
                refusals.append(part.text)
            case ToolCall():
                calls.append(_write_call(part))
            case Media():
                _write_media(written, part)
            case _:
                pass
    if texts:
        written["content"] = "".join(texts)
    if refusals:
        written["refusal"] = "".join(refusals)
    if calls:
        written["tool_calls"] = calls
    return written


def _write_call(call: ToolCall) -> JsonObject:
    name = f"{call.namespace}__{call.name}" if call.namespace else call.name
    written: JsonObject = {"id": call.id}
    if call.kind is CallKind.FREEFORM:
        written |= {"type": "custom", "custom": {"name": name, "input": call.arguments}}
    else:
        written |= {"type": "function", "function": {"name": name, "arguments": call.arguments}}
    return written | own_seal(call.seal, NAME)


def _write_media(message: JsonObject, media: Media) -> None:
    if media.kind is MediaKind.IMAGE and (media.base64 or media.url):
        message.setdefault("images", []).append(write_image(media))
    elif media.kind is MediaKind.AUDIO and media.base64:
        message["audio"] = _write_audio(media)


def _write_audio(media: Media) -> JsonObject:
    """Spoken output; clients expect an expiry even where none is known."""
    return {
        "id": media.file_id,
        "data": media.base64,
        "expires_at": kept_member(media.kept, NAME, "expires_at") or 0,
        "transcript": kept_member(media.kept, NAME, "transcript") or "",
    }
