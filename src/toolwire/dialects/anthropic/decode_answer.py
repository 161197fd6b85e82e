"""From frames or a whole body to events."""

from collections.abc import Iterator, Sequence

import msgspec

from toolwire.dialects import DecodeOptions
from toolwire.dialects.anthropic import errors
from toolwire.dialects.anthropic.ends import CUT, Ending
from toolwire.dialects.anthropic.media import citation_of
from toolwire.dialects.anthropic.shapes import (
    NAME,
    BlockDelta,
    BlockStart,
    BlockStop,
    CitationPiece,
    InputPiece,
    MessageStart,
    OpenBlock,
    SignaturePiece,
    TextPiece,
    ThinkingPiece,
    decode_event,
    parse_body,
    raw_input,
    raw_items,
    raw_members,
)
from toolwire.dialects.failures import unreadable
from toolwire.dialects.losses import keep
from toolwire.errors import BadInput, IncompleteStream
from toolwire.events import (
    CitationAdded,
    ModelEvent,
    Notice,
    ServerBlockAdded,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    Usage,
)
from toolwire.messages import Seal, ServerBlock
from toolwire.request import JsonObject
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.json_access import dump, is_object, parse, parse_object, text_or_empty
from toolwire.wire.sse import Frame
from toolwire.wire.surrogates import PairJoiner

_SECOND_START = Notice("second_start", "another message began inside the answer")
_TEXT_MEMBERS = frozenset({"type", "text", "citations"})
_THINKING_MEMBERS = frozenset({"type", "thinking", "signature"})
_CALL_MEMBERS = frozenset({"type", "id", "name", "input"})


class Decoder:
    """Decodes one response. `ToolCallEnded` is emitted when the next block or the end of the answer
    shows that no length stop cut the call.
    """

    def __init__(self, options: DecodeOptions) -> None:
        self._origin = options.origin
        self._calls = ToolCallTracker(options.new_id, options.names)
        self._append = self._calls.append
        self._ending = Ending()
        self._blocks: dict[int, OpenBlock] = {}
        self._call: int | None = None
        self._stopped_calls: list[int] = []
        self._last_index = -1
        self._start_index = -1
        """The last block that came with the start."""
        self._in_text = False
        self._new_text = False
        self._finished = False
        self._spliced = False
        self._restarted = False
        self._halves = PairJoiner()

    def feed(self, frame: Frame) -> Sequence[ModelEvent]:
        """The events of one frame; raises the error that it reports."""
        if self._finished:
            return ()
        if self._halves.cut is not None:
            return self._halves.resume(self.feed, frame)
        try:
            event = decode_event(frame.data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self._feed_other(frame)
        if type(event) is BlockDelta:
            delta = event.delta
            if type(delta) is TextPiece:
                text = delta.text
                if self._new_text or not text:
                    return self._add_text(text)
                self._in_text = True
                return (TextDelta(text),)
            if type(delta) is InputPiece:
                if event.index == self._call:
                    return self._append(event.index, delta.partial_json)
                return self._add_input(event.index, delta.partial_json)
            return self._add_rare(event.index, delta)
        if type(event) is BlockStop:
            return self._stop(event.index)
        if type(event) is BlockStart:
            try:
                return self._start(event.index, bytes(event.content_block))
            except (BadInput, UnicodeDecodeError) as error:
                raise unreadable(frame, error, "content block") from error
        if type(event) is MessageStart:
            try:
                message = parse(bytes(event.message), "message")
            except (BadInput, UnicodeDecodeError):
                return self._feed_other(frame)
            return self._feed_other(frame) if event.error else self._begin(message, frame)
        return ()

    def close(self) -> Sequence[ModelEvent]:
        """The last events; raises IncompleteStream without an end mark."""
        if self._finished:
            return ()
        if not self._ending.stop_reason:
            raise IncompleteStream("the stream ended without message_stop")
        return self.finish()

    def pending(self) -> Sequence[ModelEvent]:
        """Input received whole with its start, and the ends of calls whose input is complete."""
        events = self._halves.mark()
        for index, block in self._blocks.items():
            if block.kind == "tool_use" and block.input:
                events += self._append(index, block.input)
        for index in self._stopped_calls:
            # Without a stop reason, only complete JSON proves that the call was not cut.
            if self._calls.is_whole(index):
                events += self._calls.end(index)
        self._stopped_calls.clear()
        return events

    def usage(self) -> Usage | None:
        """The counts read so far: the input at the start, the output at the end."""
        return self._ending.usage()

    def read_message(self, body: bytes | str, message: JsonObject) -> list[ModelEvent]:
        """The events of a message received whole."""
        self._ending.message(message)
        events: list[ModelEvent] = []
        content = message.get("content")
        if isinstance(content, str):
            events += self._add_text(content)
        elif content and isinstance(content, list):
            for index, block in enumerate(raw_items(bytes(raw_members(body)["content"]))):
                if block[:1] == b"{":
                    events += self._start(index, block)
                    events += self._stop(index)
        return events

    def _add_text(self, text: str) -> Sequence[ModelEvent]:
        if not text:
            return ()
        if self._new_text:
            self._new_text = False
            return (TextEnded(), TextDelta(text))
        self._in_text = True
        return (TextDelta(text),)

    def _add_input(self, index: int, text: str) -> Sequence[ModelEvent]:
        block = self._blocks.get(index)
        if block is None or not text:
            return ()
        if block.kind != "tool_use":
            block.pieces.append(text)
            return ()
        block.input = ""
        return self._append(index, text)

    def _add_rare(self, index: int, delta: object) -> Sequence[ModelEvent]:
        if isinstance(delta, ThinkingPiece):
            return (ThinkingDelta(delta.thinking),) if delta.thinking else ()
        if isinstance(delta, SignaturePiece):
            block = self._blocks.get(index)
            if block is not None:
                block.signature = delta.signature
        elif isinstance(delta, CitationPiece):
            return self._add_citation(bytes(delta.citation))
        return ()

    def _add_citation(self, raw: bytes) -> Sequence[ModelEvent]:
        try:
            citation = citation_of(raw)
        except (BadInput, UnicodeDecodeError):
            return ()
        opened: tuple[ModelEvent, ...] = (TextEnded(),) if self._new_text else ()
        self._new_text = False
        self._in_text = True
        return (*opened, CitationAdded(citation))

    def _start(self, index: int, raw: bytes) -> list[ModelEvent]:
        block = parse_object(raw, "content block")
        before = self._blocks.get(index)
        if before is not None and before.kind == "tool_use" and before.raw == raw:
            return []
        # The index is reused; in an answer spliced into this one, the earlier block was cut.
        events = self._stop(index, cut=self._spliced) if before is not None else []
        events += self._release()
        kind = block.get("type")
        opened = self._blocks[index] = OpenBlock(kind if isinstance(kind, str) else "", raw)
        self._last_index = index
        if kind == "text":
            self._new_text = self._in_text
            events += self._start_text(opened, block)
            return events
        self._in_text = self._new_text = False
        if kind == "thinking":
            opened.kept = keep(NAME, block, _THINKING_MEMBERS)
            opened.signature = text_or_empty(block.get("signature"))
            if text_or_empty(block.get("thinking")):
                events.append(ThinkingDelta(text_or_empty(block["thinking"])))
        elif kind == "tool_use":
            events += self._start_call(index, opened, block)
        elif kind == "fallback":
            to = block.get("to")
            if is_object(to):
                self._ending.model = text_or_empty(to.get("model")) or self._ending.model
        return events

    def _start_text(self, opened: OpenBlock, block: JsonObject) -> list[ModelEvent]:
        opened.kept = keep(NAME, block, _TEXT_MEMBERS)
        events = list(self._add_text(text_or_empty(block.get("text"))))
        if isinstance(block.get("citations"), list) and block["citations"]:
            for citation in raw_items(bytes(raw_members(opened.raw)["citations"])):
                events += self._add_citation(citation)
        return events

    def _start_call(self, index: int, opened: OpenBlock, block: JsonObject) -> list[ModelEvent]:
        given = block.get("input")
        if given:
            opened.input = given if isinstance(given, str) else raw_input(opened.raw)
        else:
            self._call = index
        return self._calls.start(
            index,
            text_or_empty(block.get("name")),
            text_or_empty(block.get("id")),
            kept=keep(NAME, block, _CALL_MEMBERS),
        )

    def _stop(self, index: int, *, cut: bool = False) -> list[ModelEvent]:
        block = self._blocks.pop(index, None)
        if block is None:
            return []
        match block.kind:
            case "text":
                if block.kept is None or not self._in_text:
                    return []
                self._in_text = self._new_text = False
                return [TextEnded(kept=block.kept)]
            case "thinking":
                signed = dump({"signature": block.signature}) if block.signature else ""
                return [ThinkingEnded(self._seal(signed) if signed else None, block.kept)]
            case "redacted_thinking":
                return [ThinkingEnded(self._seal(block.raw.decode()))]
            case "tool_use":
                return self._stop_call(index, block, cut)
            case kind:
                server_block = ServerBlock(origin=self._origin, kind=kind, data=block.merged())
                return [ServerBlockAdded(server_block)]

    def _stop_call(self, index: int, block: OpenBlock, cut: bool) -> list[ModelEvent]:
        if index == self._call:
            self._call = None
        events = self._append(index, block.input) if block.input else []
        if cut:
            events += self._calls.end(index, complete=False)
        else:
            self._stopped_calls.append(index)
        return events

    def _release(self) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for index in self._stopped_calls:
            events += self._calls.end(index)
        self._stopped_calls.clear()
        return events

    def finish(self) -> list[ModelEvent]:
        """The last events of an answer that ended."""
        self._finished = True
        events = self._halves.mark()
        for index in list(self._blocks):
            events += self._stop(index)
        reason = self._ending.reason(len(self._calls) > 0)
        events += self._calls.end_all(cut=reason in CUT)
        events.append(self._ending.finished(len(self._calls) > 0))
        return events

    def _seal(self, data: str) -> Seal:
        return Seal(origin=self._origin, data=data)

    def _feed_other(self, frame: Frame) -> Sequence[ModelEvent]:
        data = frame.data.strip()
        if not data or data.startswith(b"[DONE]"):
            return ()
        try:
            event = parse_object(data, "event")
            return self._read_event(frame, event)
        except (BadInput, UnicodeDecodeError) as error:
            streamed = b'_delta"' in data
            repaired = self._halves.repaired(self.feed, frame, streamed=streamed)
            if repaired is not None:
                return repaired
            raise unreadable(frame, error, "event") from error

    def _read_event(self, frame: Frame, event: JsonObject) -> Sequence[ModelEvent]:
        kind = event.get("type") or frame.event
        if kind == "error" or event.get("error"):
            raise errors.of_body(None, event, frame.data.decode())
        match kind:
            case "message_start":
                return self._begin(event.get("message"), frame)
            case "message_delta":
                self._ending.delta(event)
            case "message_stop":
                return self.finish()
            case "message":
                # A server that answers a streaming request with a whole body.
                return [*self.read_message(frame.data, event), *self.finish()]
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._read_block_event(str(kind), event)
            case _:
                pass
        return ()

    def _begin(self, message: object, frame: Frame) -> Sequence[ModelEvent]:
        if not is_object(message):
            return ()
        if self._last_index >= 0:
            # Sent twice, or an answer spliced into another: its blocks were already decoded.
            self._spliced = True
            self._ending.message(message)
            if self._last_index == self._start_index or self._restarted:
                return ()
            self._restarted = True
            return (_SECOND_START,)
        # Usually empty; only then are its bytes not needed.
        body = bytes(raw_members(frame.data)["message"]) if message.get("content") else b""
        events = self.read_message(body, message)
        self._start_index = self._last_index
        return events

    def _read_block_event(self, kind: str, event: JsonObject) -> Sequence[ModelEvent]:
        """The events of a known kind of event with undocumented members."""
        given = event.get("index")
        index = given if type(given) is int else None
        if kind == "content_block_start":
            block = event.get("content_block")
            if not isinstance(block, dict):
                return ()
            at = self._last_index + 1 if index is None else index
            return self._start(at, dump(block).encode())
        at = self._last_index if index is None else index
        if kind == "content_block_stop":
            return self._stop(at)
        delta = event.get("delta")
        return self._read_delta(at, delta) if is_object(delta) else ()

    def _read_delta(self, index: int, delta: JsonObject) -> Sequence[ModelEvent]:
        match delta.get("type"):
            case "text_delta":
                return self._add_text(text_or_empty(delta.get("text")))
            case "thinking_delta":
                return self._add_rare(index, ThinkingPiece(text_or_empty(delta.get("thinking"))))
            case "input_json_delta":
                return self._add_input(index, _json_text(delta.get("partial_json")))
            case "citations_delta":
                return self._add_citation(dump(delta.get("citation")).encode())
            case "signature_delta":
                return ()
            case _:
                return self._add_unknown(index, delta)

    def _add_unknown(self, index: int, delta: JsonObject) -> Sequence[ModelEvent]:
        """Merges the members of `compaction_delta` and unknown deltas into the block."""
        block = self._blocks.get(index)
        if block is not None and block.kind not in ("text", "thinking", "tool_use"):
            members = {key: value for key, value in delta.items() if key != "type"}
            block.raw = dump({**raw_members(block.raw), **members}).encode()
        return ()


def decode_whole(body: bytes, options: DecodeOptions) -> Iterator[ModelEvent]:
    """The events of an answer that was not streamed."""
    answer, body = parse_body(body, "answer")
    failed = answer.get("error") or ("content" not in answer and answer.get("message"))
    if answer.get("type") == "error" or failed:
        raise errors.of_body(None, answer, body.decode("utf-8", "replace"))
    if "content" not in answer:
        raise BadInput("the answer has no content")
    decoder = Decoder(options)
    try:
        yield from decoder.read_message(body, answer)
    except UnicodeDecodeError as error:
        raise BadInput(f"answer is not UTF-8: {error}") from error
    yield from decoder.finish()


def _json_text(value: object) -> str:
    """JSON text, or the text of an object sent in its place."""
    return dump(value) if isinstance(value, dict) else text_or_empty(value)
