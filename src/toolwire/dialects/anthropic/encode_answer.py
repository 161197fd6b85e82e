"""From events to frames or a whole body, as this vendor's server sends them."""

from collections.abc import Callable, Sequence

import msgspec

from toolwire.dialects import USUAL_ANSWER, AnswerOptions
from toolwire.dialects.anthropic import errors
from toolwire.dialects.anthropic.encode_messages import call_input, text_block, thinking_block
from toolwire.dialects.anthropic.ends import kept_members, stop_members, usage_members
from toolwire.dialects.anthropic.shapes import NAME, raw_members
from toolwire.dialects.losses import Losses, own_seal, restore
from toolwire.dialects.tools import FREEFORM_MEMBER
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
    Media,
    Message,
    Part,
    Refusal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, encode
from toolwire.wire.sse import Frame

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_STREAMED = ("server_tool_use", "mcp_tool_use")
"""Server-side blocks whose input is streamed."""
_PING = (Frame(b'{"type":"ping"}', "ping"),)
_INSIDE_DELTA = ("container", "stop_details")


class _Call:
    __slots__ = ("index", "kind", "pieces")

    def __init__(self, index: int, kind: CallKind) -> None:
        self.index = index
        self.kind = kind
        self.pieces: list[str] = []

    @property
    def whole(self) -> bool:
        """Whether the arguments are complete."""
        try:
            _object.decode("".join(self.pieces))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        return self.kind is CallKind.JSON


class Encoder:
    """Encodes one response. Blocks are sequential; only calls that are really interleaved are open
    at the same time.
    """

    def __init__(
        self, model: str, new_id: Callable[[], str], options: AnswerOptions = USUAL_ANSWER
    ) -> None:
        self._model = model
        self.response_id = message_id(new_id)
        self._options = options
        self._frames: list[Frame] = []
        self._started = False
        self._next = 0
        self._open = ""
        self._index = 0
        self._calls: dict[str, _Call] = {}

    def feed(self, event: ModelEvent) -> Sequence[Frame]:
        """The frames of one event."""
        if type(event) is TextDelta and event.text and self._open == "text":
            return (_delta(_TEXT, self._index, event.text),)
        self._frames = []
        if not self._started:
            self._start()
        match event:
            case TextDelta() | RefusalDelta():
                self._text(event.text)
            case ThinkingDelta():
                self._thinking(event.text)
            case ToolCallDelta():
                self._more_arguments(event)
            case ToolCallStarted():
                self._start_call(event)
            case ToolCallEnded():
                self._end_call(event)
            case TextEnded():
                self._close("text")
            case ThinkingEnded():
                self._end_thinking(event)
            case CitationAdded():
                self._cite(event)
            case ServerBlockAdded():
                self._server_block(event.block)
            case MediaAdded():
                self._text(event.media.placeholder)
            case Finished():
                self._finish(event)
            case Notice():
                pass
        return self._frames

    def close(self) -> Sequence[Frame]:
        """No frames: `Finished` ends the stream, and without it the stream stays incomplete."""
        return ()

    def beat(self) -> Sequence[Frame]:
        """A ping, which may also precede the opening."""
        return _PING

    def fail(self, error: ProviderError) -> Sequence[Frame]:
        """The frame that reports an error in the middle of a stream."""
        return (Frame(encode(errors.error_object(error)), "error"),)

    def _put(self, event: JsonObject) -> None:
        self._frames.append(Frame(encode(event), event["type"]))

    def _start(self) -> None:
        self._started = True
        message: JsonObject = {
            "id": self.response_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": self._options.input_tokens, "output_tokens": 0},
        }
        self._put({"type": "message_start", "message": message})

    def _open_block(self, block: JsonObject | dict[str, msgspec.Raw]) -> int:
        self._close()
        for call_id, call in list(self._calls.items()):
            if call.whole:
                self._stop(self._calls.pop(call_id).index)
        index = self._next
        self._next += 1
        self._put({"type": "content_block_start", "index": index, "content_block": block})
        return index

    def _stop(self, index: int) -> None:
        self._put({"type": "content_block_stop", "index": index})

    def _close(self, kind: str = "") -> None:
        if self._open and kind in ("", self._open):
            self._open = ""
            self._stop(self._index)

    def _text(self, text: str) -> None:
        if not text:
            return
        self._open_text()
        self._frames.append(_delta(_TEXT, self._index, text))

    def _open_text(self) -> None:
        if self._open != "text":
            self._index = self._open_block({"type": "text", "text": ""})
            self._open = "text"

    def _cite(self, event: CitationAdded) -> None:
        if event.citation.dialect != NAME:
            return
        self._open_text()
        source = msgspec.Raw(event.citation.data.encode())
        self._put_delta(self._index, {"type": "citations_delta", "citation": source})

    def _put_delta(self, index: int, delta: JsonObject) -> None:
        self._put({"type": "content_block_delta", "index": index, "delta": delta})

    def _open_thinking(self) -> None:
        if self._open != "thinking":
            block = {"type": "thinking", "thinking": "", "signature": ""}
            self._index = self._open_block(block)
            self._open = "thinking"

    def _thinking(self, text: str) -> None:
        if text:
            self._open_thinking()
            self._frames.append(_delta(_THINKING, self._index, text))

    def _end_thinking(self, event: ThinkingEnded) -> None:
        seal = own_seal(event.seal, NAME)
        if seal.get("type") == "redacted_thinking":
            self._stop(self._open_block(seal))
            return
        if "signature" in seal:
            self._open_thinking()
            self._put_delta(self._index, {"type": "signature_delta", **seal})
        self._close("thinking")

    def _start_call(self, event: ToolCallStarted) -> None:
        block: JsonObject = {
            "type": "tool_use",
            "id": event.id,
            "name": f"{event.namespace}__{event.name}" if event.namespace else event.name,
            "input": {},
        }
        index = self._open_block(restore(block, event.kept, NAME))
        self._calls[event.id] = _Call(index, event.kind)

    def _more_arguments(self, event: ToolCallDelta) -> None:
        call = self._calls.get(event.id)
        if call is None or not event.arguments:
            return
        call.pieces.append(event.arguments)
        if call.kind is CallKind.JSON:
            self._frames.append(_input(call.index, event.arguments))

    def _end_call(self, event: ToolCallEnded) -> None:
        call = self._calls.pop(event.id, None)
        if call is None:
            return
        streamed = "".join(call.pieces)
        text = streamed if event.arguments is None else event.arguments
        if call.kind is CallKind.FREEFORM:
            self._frames.append(_input(call.index, dump({FREEFORM_MEMBER: text})))
        elif text != streamed and text.startswith(streamed):
            self._frames.append(_input(call.index, text[len(streamed) :]))
        self._stop(call.index)

    def _server_block(self, block: ServerBlock) -> None:
        if block.origin.dialect != NAME:
            return
        members = raw_members(block.data)
        rest: JsonObject = {}
        if block.kind in _STREAMED and bytes(members.get("input", b"{}")) != b"{}":
            streamed = bytes(members["input"]).decode()
            rest = {"type": "input_json_delta", "partial_json": streamed}
            members["input"] = msgspec.Raw(b"{}")
        elif block.kind == "compaction":
            rest = {key: value for key, value in members.items() if key != "type"}
            members = {"type": members["type"], "content": msgspec.Raw(b"null")}
            rest = {"type": "compaction_delta", **rest}
        index = self._open_block(members)
        if rest:
            self._put_delta(index, rest)
        self._stop(index)

    def _finish(self, event: Finished) -> None:
        self._close()
        for call in self._calls.values():
            self._stop(call.index)
        self._calls.clear()
        kept = kept_members(event)
        usage = {**kept.pop("usage", {}), **usage_members(event)}
        delta = stop_members(event)
        delta |= {key: kept.pop(key) for key in _INSIDE_DELTA if key in kept}
        self._put({**kept, "type": "message_delta", "delta": delta, "usage": usage})
        self._put({"type": "message_stop"})


def message_id(new_id: Callable[[], str]) -> str:
    """A new id in the vendor's format."""
    return f"msg_{new_id().rpartition('_')[2]}"


def _delta_form(kind: str, member: str) -> bytes:
    """The data of a frame without its index and text: most frames differ in nothing else."""
    delta = f'{{"type":"{kind}","{member}":%b}}'
    return f'{{"type":"content_block_delta","index":%d,"delta":{delta}}}'.encode()


_TEXT = _delta_form("text_delta", "text")
_THINKING = _delta_form("thinking_delta", "thinking")
_INPUT = _delta_form("input_json_delta", "partial_json")


def _delta(form: bytes, index: int, text: str) -> Frame:
    return Frame(form % (index, encode(text)), "content_block_delta")


def _input(index: int, text: str) -> Frame:
    return _delta(_INPUT, index, text)


def encode_whole(
    message: Message, finished: Finished, model: str, new_id: Callable[[], str]
) -> bytes:
    """The body of a whole answer."""
    blocks = (_block(part) for part in message.parts)
    kept = kept_members(finished)
    body: JsonObject = {
        "id": finished.response_id or message_id(new_id),
        "type": "message",
        "role": "assistant",
        "model": model or finished.model,
        "content": [block for block in blocks if block is not None],
        **stop_members(finished),
        **kept,
        "usage": {**kept.get("usage", {}), **usage_members(finished)},
    }
    return encode(body)


def _block(part: Part) -> JsonObject | None:
    unreported = Losses()
    match part:
        case Text():
            return text_block(part, "", unreported) if part.text or part.citations else None
        case Refusal():
            return {"type": "text", "text": part.text} if part.text else None
        case Thinking():
            block = thinking_block(part)
            if block is None and part.text:
                # Made elsewhere: the client may show it, the vendor never accepts it.
                block = {"type": "thinking", "thinking": part.text, "signature": ""}
            return restore(block, part.kept, NAME) if block else None
        case ToolCall():
            return _call(part, unreported)
        case Media():
            return {"type": "text", "text": part.placeholder}
        case ServerBlock():
            return raw_members(part.data) if part.origin.dialect == NAME else None
        case ToolResult():
            return None


def _call(call: ToolCall, losses: Losses) -> JsonObject:
    block: JsonObject = {
        "type": "tool_use",
        "id": call.id,
        "name": f"{call.namespace}__{call.name}" if call.namespace else call.name,
        "input": call_input(call, "", losses),
    }
    return restore(block, call.kept, NAME)
