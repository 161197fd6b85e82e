"""Streamed and whole answers as events."""

import msgspec

from toolwire.dialects import DecodeOptions
from toolwire.dialects.failures import unreadable
from toolwire.dialects.gemini.ends import AnswerEnd
from toolwire.dialects.gemini.errors import error_object, typed_error
from toolwire.dialects.gemini.media import read_media
from toolwire.dialects.gemini.shapes import (
    FILE,
    INLINE,
    NAME,
    NO_ARGS,
    UNREADABLE,
    Chunk,
    Enveloped,
    Part,
    PartialArgs,
    RawMembers,
    items,
    kept_members,
    members_or_none,
    response_objects,
    text_of,
    text_value,
    value,
)
from toolwire.errors import MalformedStream
from toolwire.events import (
    MediaAdded,
    ModelEvent,
    Notice,
    ServerBlockAdded,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ThinkingEnded,
    Usage,
)
from toolwire.messages import Kept, Origin, Seal, ServerBlock
from toolwire.request import JsonObject
from toolwire.wire.calls import ToolCallTracker
from toolwire.wire.json_access import dump, is_object
from toolwire.wire.sse import Frame
from toolwire.wire.surrogates import PairJoiner

_chunk = msgspec.json.Decoder(Chunk).decode
_enveloped = msgspec.json.Decoder(Enveloped).decode
_FROM_HERE = Kept(dialect=NAME)
"""On calls with an id of the vendor's, so that it is sent to this vendor only."""
_THOUGHT_CALL = Kept(dialect=NAME, fields='{"thought":true}')
_BARE_CALL = Kept(dialect=NAME, fields=dump({NO_ARGS: None}))
_BARE_THOUGHT_CALL = Kept(dialect=NAME, fields=dump({"thought": True, NO_ARGS: None}))
_NOTHING, _TEXT, _THINKING = 0, 1, 2
_TEXT_MEMBERS = frozenset({"text", "thought", "thoughtSignature"})
_ANSWER_MEMBERS = frozenset(
    {"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"}
)
_CALL_MEMBERS = frozenset({"id", "name", "args", "partialArgs", "willContinue"})


class _GrowingCall:
    """A call whose arguments arrive in pieces."""

    def __init__(
        self, handle: int, name: str, vendor_id: str, seal: Seal | None, kept: Kept | None
    ) -> None:
        self.handle = handle
        self.name = name
        self.vendor_id = vendor_id
        self.seal = seal
        self.kept = kept
        self.args = PartialArgs()

    def continues_with(self, name: str, vendor_id: str) -> bool:
        """Whether a piece with this name and id may belong to it."""
        if vendor_id and self.vendor_id:
            return vendor_id == self.vendor_id
        return not name or name == self.name


class GeminiDecoder:
    """One per answer. Common chunks are decoded into structs, others member by member."""

    def __init__(
        self, options: DecodeOptions, *, enveloped: bool = False, whole: bool = False
    ) -> None:
        self._enveloped = enveloped
        self._origin = Origin(NAME, options.origin.provider, options.origin.model)
        self._calls = ToolCallTracker(options.new_id, options.names)
        self._count = 0
        self._open = _NOTHING
        self._growing: list[_GrowingCall] = []
        self._whole = whole
        self._end = AnswerEnd(whole=whole)
        self._has_content = False
        self._has_output = False
        """Whether text, media or a server-side block arrived; open text counts too."""
        self._cut = False
        self._others_reported = False
        self._pairs = PairJoiner()

    def feed(self, frame: Frame) -> list[ModelEvent] | tuple[ModelEvent, ...]:
        """The events of one chunk; raises the vendor's error if it carries one."""
        if self._pairs.cut is not None:
            return list(self._pairs.resume(self.feed, frame))
        if frame.cut:
            self._cut = True
        try:
            chunk = _enveloped(frame.data).response if self._enveloped else _chunk(frame.data)
            candidate = chunk.candidates[0]
        except (*UNREADABLE, IndexError):
            return self._feed_members(frame)
        if candidate.index or len(chunk.candidates) > 1:
            return self._feed_members(frame)
        end = self._end
        # Nothing and null are shorter than any usage. The last one counts.
        if len(chunk.usageMetadata) > 4:
            end.usage = chunk.usageMetadata
        if chunk.modelVersion:
            end.model = chunk.modelVersion
        if chunk.responseId:
            end.response_id = chunk.responseId
        if chunk.createTime is not None:
            end.vertex = True
        if candidate.finishReason is not None:
            end.finish(candidate.finishReason)
        content = candidate.content
        parts = content.parts if content is not None else None
        if not parts:
            return ()
        part = parts[0]
        if len(parts) == 1 and part.text and part.functionCall is part.thoughtSignature is None:
            if part.thought:
                if self._open == _TEXT:
                    self._has_output = True
                self._open = _THINKING
                return (ThinkingDelta(part.text),)
            self._open = _TEXT
            return (TextDelta(part.text),)
        try:
            call = part.functionCall
            if call is not None and len(parts) == 1 and call.args:
                args = str(call.args, "utf-8")
                bare = part.text is part.thought is part.thoughtSignature is call.id is None
                if bare and args[0] == "{":
                    handle = self._count
                    self._count = handle + 1
                    self._open = _NOTHING
                    return self._calls.whole(handle, call.name, None, args)
            events: list[ModelEvent] = []
            for part in parts:
                self._part(part, events)
        except UnicodeDecodeError as error:
            raise unreadable(frame, error, "chunk") from error
        return events

    def close(self) -> list[ModelEvent]:
        """The last events; raises IncompleteStream if the answer is not whole."""
        text_open = self._open == _TEXT
        ending = self._end.close(
            calls=len(self._calls),
            has_content=self._has_content or self._open != _NOTHING,
            text_open=text_open,
            whole=not (self._growing or self._cut)
            and (len(self._calls) > 0 or self._has_output or text_open),
        )
        return [*self.pending(), *ending]

    def pending(self) -> list[ModelEvent]:
        """The calls whose arguments are still incomplete, as far as they arrived."""
        events = self._pairs.mark()
        for growing in list(self._growing):
            self._end_growing(growing, events, complete=False)
        return events

    def usage(self) -> Usage | None:
        """The counts of the last chunk that has them."""
        return self._end.counts() if self._end.usage else None

    def _part(self, part: Part, events: list[ModelEvent]) -> None:
        signature = part.thoughtSignature
        seal = None if signature is None else self._seal(signature)
        call = part.functionCall
        if call is not None:
            if part.text:
                self._add_text(_THINKING if part.thought else _TEXT, part.text, None, None, events)
            growing = None if call.args else self._find_growing({}, call.name, call.id or "")
            if growing is not None:
                self._grow(growing, {}, seal, events)
                return
            args = bytes(call.args).decode() or "null"
            if args == "null":
                kept = _BARE_THOUGHT_CALL if part.thought else _BARE_CALL
            else:
                kept = _THOUGHT_CALL if part.thought else None
            self._whole_call(call.name, args, call.id, seal, kept, events)
        elif part.text is not None or seal is not None:
            kind = _THINKING if part.thought else _TEXT
            self._add_text(kind, part.text or "", seal, None, events)

    def _seal(self, signature: str) -> Seal:
        return Seal(origin=self._origin, data=dump({"thoughtSignature": signature}))

    def _add_text(
        self, kind: int, text: str, seal: Seal | None, kept: Kept | None, events: list[ModelEvent]
    ) -> None:
        """Text or thinking; a part with a seal neither continues another nor is continued."""
        closed = seal is not None or kept is not None
        if self._open == _TEXT or (kind == _TEXT and text):
            self._has_output = True
        if closed and self._open == kind:
            events.append(TextEnded() if kind == _TEXT else ThinkingEnded())
        if text:
            events.append(TextDelta(text) if kind == _TEXT else ThinkingDelta(text))
            self._open = kind
        if closed:
            events.append(TextEnded(seal, kept) if kind == _TEXT else ThinkingEnded(seal, kept))
            self._open = _NOTHING
            self._has_content = True

    def _whole_call(
        self,
        name: str,
        args: str,
        vendor_id: str | None,
        seal: Seal | None,
        kept: Kept | None,
        events: list[ModelEvent],
    ) -> None:
        handle = self._count
        self._count = handle + 1
        self._open = _NOTHING
        if kept is None and vendor_id:
            kept = _FROM_HERE
        if args == "null":
            args = "{}"
        elif args[0] == '"':
            # Arguments as a string, as in other formats.
            args = text_value(msgspec.Raw(args.encode())) or "{}"
        events += self._calls.whole(handle, name, vendor_id, args, seal=seal, kept=kept)

    def _feed_members(self, frame: Frame) -> list[ModelEvent]:
        """The events of a chunk that is not of the common shape."""
        events: list[ModelEvent] = []
        if frame.data.strip() in (b"", b"[DONE]") and not self._whole:
            return events
        try:
            responses = response_objects(frame.data)
            if self._whole and not responses:
                raise MalformedStream("the answer is an empty list")
            for response in responses:
                self._response(response, frame, events)
        except UNREADABLE as error:
            # A call comes whole: only text can go on in the next chunk.
            streamed = not self._whole and b'"functionCall"' not in frame.data
            repaired = self._pairs.repaired(self.feed, frame, streamed=streamed)
            if repaired is not None:
                return list(repaired)
            raise unreadable(frame, error, "chunk") from error
        return events

    def _response(self, response: RawMembers, frame: Frame, events: list[ModelEvent]) -> None:
        end = self._end
        end.note(
            response.get("usageMetadata"),
            text_value(response.get("modelVersion")),
            text_value(response.get("responseId")),
        )
        if "error" in response and "candidates" not in response:
            error = error_object({"error": value(response["error"])}) or {}
            raise typed_error(error, None, frame.data.decode("utf-8", "replace"))
        if "createTime" in response:
            end.vertex = True
        if "promptFeedback" in response:
            end.prompt_feedback(value(response["promptFeedback"]))
        if self._whole and response and response.keys().isdisjoint(_ANSWER_MEMBERS):
            raise MalformedStream("the answer has no candidates")
        found = [members_or_none(raw) or {} for raw in items(response.get("candidates"))]
        first = next((one for one in found if not value(one.get("index"))), None)
        if first is not None:
            self._candidate(first, events)
        if len(found) > (first is not None):
            self._report_others(events)

    def _report_others(self, events: list[ModelEvent]) -> None:
        if not self._others_reported:
            self._others_reported = True
            events.append(Notice("dropped_choice", "only the first candidate is read"))

    def _candidate(self, candidate: RawMembers, events: list[ModelEvent]) -> None:
        self._end.candidate(candidate)
        content = members_or_none(candidate.get("content")) or {}
        for raw in items(content.get("parts")):
            text = text_value(raw)
            if text is not None:
                self._add_text(_TEXT, text, None, None, events)
                continue
            part = members_or_none(raw)
            if part is not None:
                self._part_members(part, raw, events)

    def _part_members(self, part: RawMembers, raw: msgspec.Raw, events: list[ModelEvent]) -> None:
        signature = text_value(part.get("thoughtSignature"))
        seal = None if signature is None else self._seal(signature)
        call = members_or_none(part.get("functionCall"))
        text = text_value(part.get("text"))
        kind = _THINKING if value(part.get("thought")) is True else _TEXT
        if call is not None:
            if text:
                self._add_text(kind, text, None, None, events)
            self._call_members(call, part, seal, events)
        elif INLINE in part or FILE in part:
            self._media(part, seal, events)
        elif text is not None or (seal is not None and part.keys() <= _TEXT_MEMBERS):
            rest = {key: value(raw) for key, raw in part.items() if key not in _TEXT_MEMBERS}
            kept = Kept(dialect=NAME, fields=dump(rest)) if rest else None
            self._add_text(kind, text or "", seal, kept, events)
        elif not part.keys() <= _TEXT_MEMBERS:
            kind = next(key for key in part if key not in _TEXT_MEMBERS)
            block = ServerBlock(origin=self._origin, kind=kind, data=text_of(raw))
            self._open = _NOTHING
            self._has_content = self._has_output = True
            events.append(ServerBlockAdded(block))

    def _media(self, part: RawMembers, seal: Seal | None, events: list[ModelEvent]) -> None:
        member = INLINE if INLINE in part else FILE
        data = value(part[member])
        if not is_object(data):
            return
        left: JsonObject = {}
        media = read_media(member, data, left, seal)
        known = {member, "thoughtSignature"}
        left.update({key: value(raw) for key, raw in part.items() if key not in known})
        # The mark of this format: without a type it goes back as is, not with a guess.
        kept = kept_members(left) or (None if media.mime else _FROM_HERE)
        self._open = _NOTHING
        self._has_content = self._has_output = True
        events.append(MediaAdded(msgspec.structs.replace(media, kept=kept)))

    def _call_members(
        self, call: RawMembers, part: RawMembers, seal: Seal | None, events: list[ModelEvent]
    ) -> None:
        name = text_value(call.get("name"))
        vendor_id = text_value(call.get("id"))
        pieces = items(call.get("partialArgs"))
        continues = value(call.get("willContinue")) is True
        growing = self._find_growing(call, name or "", vendor_id or "")
        if growing is not None:
            self._grow(growing, call, seal, events)
            return
        if not name and not vendor_id and "args" not in call and not pieces:
            events.append(Notice("nameless_call", "a call without a name was left out"))
            return
        kept = _kept_of_call(call, part)
        if not continues and not pieces:
            args = text_of(call["args"]) if "args" in call else "{}"
            self._whole_call(name or "", args, vendor_id, seal, kept, events)
            return
        handle = self._count
        self._count = handle + 1
        self._open = _NOTHING
        events += self._calls.start(handle, name or "", vendor_id)
        if kept is None and vendor_id:
            kept = _FROM_HERE
        growing = _GrowingCall(handle, name or "", vendor_id or "", seal, kept)
        self._growing.append(growing)
        self._grow(growing, call, None, events)

    def _find_growing(self, call: RawMembers, name: str, vendor_id: str) -> _GrowingCall | None:
        if name and "args" in call:
            return None
        for growing in reversed(self._growing):
            if growing.continues_with(name, vendor_id):
                return growing
        return None

    def _grow(
        self,
        growing: _GrowingCall,
        call: RawMembers,
        seal: Seal | None,
        events: list[ModelEvent],
    ) -> None:
        args = value(call.get("args"))
        if is_object(args):
            growing.args.merge(args)
        for raw in items(call.get("partialArgs")):
            piece = members_or_none(raw)
            if piece is not None:
                growing.args.add({key: value(member) for key, member in piece.items()})
        growing.seal = seal or growing.seal
        if value(call.get("willContinue")) is not True:
            self._end_growing(growing, events, complete=True)

    def _end_growing(
        self, growing: _GrowingCall, events: list[ModelEvent], *, complete: bool
    ) -> None:
        self._growing.remove(growing)
        events += self._calls.append(growing.handle, growing.args.text)
        events += self._calls.end(
            growing.handle, complete=complete, seal=growing.seal, kept=growing.kept
        )


def _kept_of_call(call: RawMembers, part: RawMembers) -> Kept | None:
    known = {"functionCall", "thoughtSignature", "text"}
    fields = {key: value(raw) for key, raw in part.items() if key not in known}
    for key, raw in call.items():
        if key not in _CALL_MEMBERS:
            fields[f"functionCall.{key}"] = value(raw)
    if call.keys().isdisjoint(("args", "partialArgs", "willContinue")):
        fields[NO_ARGS] = None
    return Kept(dialect=NAME, fields=dump(fields)) if fields else None
