"""Our messages as `contents` and `systemInstruction`."""

from collections.abc import Callable
from typing import Any

import msgspec

from toolwire.dialects import tools
from toolwire.dialects.gemini.media import write_media
from toolwire.dialects.gemini.shapes import (
    CALL,
    INLINE,
    NAME,
    RESPONSE,
    SIGNATURE,
    SYSTEM,
    has_no_args,
    is_from_here,
    member,
    with_kept,
)
from toolwire.dialects.losses import Losses, kept_member, own_seal
from toolwire.messages import (
    CallKind,
    Kept,
    Media,
    Message,
    Part,
    Refusal,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import NO_SOURCE, JsonObject, ModelRequest, Source
from toolwire.wire.json_access import is_object, parse_object, text_or_empty
from toolwire.wire.surrogates import whole_characters

DONE = "Tool execution succeeded."
"""The output of a result whose blocks follow it."""


class PartWriter:
    """Writes parts one by one. What cannot be carried goes into the losses."""

    def __init__(
        self,
        losses: Losses,
        *,
        wire_name: Callable[[ToolCall], str] = lambda call: call.name,
        sends_id: Callable[[ToolCall], bool] = lambda call: not call.made_id,
        media_in_results: bool = False,
        source: Source = NO_SOURCE,
    ) -> None:
        self._losses = losses
        self._wire_name = wire_name
        self._sends_id = sends_id
        self._media_in_results = media_in_results
        self._source = source
        self._calls: dict[str, ToolCall] = {}

    def add_calls(self, message: Message) -> None:
        """Calls that are written elsewhere, to be found by their results."""
        self._calls.update({call.id: call for call in message.calls})

    def write(self, part: Part, path: str) -> list[Any]:
        """The wire parts of one of ours: none, one, or a result followed by its media."""
        match part:
            case Text():
                return self._text(part, path)
            case Thinking():
                if not part.text and not own_seal(part.seal, NAME):
                    return []
                return _signed({"text": part.text, "thought": True}, part.seal, part.kept)
            case Refusal():
                self._losses.add(path, "refusal", "sent as plain text")
                return _signed({"text": part.text}, part.seal, None)
            case Media():
                return [self._media(part, path) or {"text": part.placeholder}]
            case ToolCall():
                return [self._call(part, path)]
            case ToolResult():
                return self._result(part, path)
            case ServerBlock():
                if part.origin.dialect != NAME:
                    return []
                parse_object(part.data, path)
                return [msgspec.Raw(part.data.encode())]

    def _text(self, part: Text, path: str) -> list[Any]:
        self._report_cache(part, path)
        for number, citation in enumerate(part.citations):
            why = "Gemini takes no citations back"
            self._losses.add(f"{path}.citations[{number}]", citation.url or "citation", why)
        return _signed({"text": part.text}, part.seal, part.kept)

    def _media(self, part: Media, path: str) -> JsonObject | None:
        """The wire part; None for media that cannot be sent."""
        self._report_cache(part, path)
        wire = self._source.wire(part)
        inline = member(wire, INLINE) if is_object(wire) else None
        return write_media(
            part,
            path,
            self._losses,
            own=is_from_here(part.kept) or wire is not None,
            data=text_or_empty(inline.get("data")) if is_object(inline) else "",
        )

    def _call(self, call: ToolCall, path: str) -> JsonObject:
        self._report_cache(call, path)
        self._calls[call.id] = call
        body: JsonObject = {"id": call.id} if self._sends_id(call) else {}
        body["name"] = self._wire_name(call)
        body["args"] = self._arguments(call, path)
        written = with_kept(body, call.kept, f"{CALL}.")
        if has_no_args(call.kept) and body["args"] == {}:
            del written["args"]
        part = {CALL: written, **own_seal(call.seal, NAME)}
        return with_kept(part, call.kept)

    def _arguments(self, call: ToolCall, path: str) -> Any:
        found = tools.parsed(call)
        if call.kind is CallKind.JSON and found and _is_utf8(call.arguments):
            return msgspec.Raw(whole_characters(call.arguments.encode()))
        return tools.as_object(call, path, self._losses)

    def _result(self, result: ToolResult, path: str) -> list[Any]:
        self._report_cache(result, path)
        call = self._calls.get(result.call_id)
        wire = self._given(result)
        body: JsonObject = {}
        wire_id = wire.get("id") if call is None else self._sends_id(call) and call.id
        if wire_id:
            body["id"] = wire_id
        body["name"] = result.name or result.call_id if call is None else self._wire_name(call)
        response = wire.get("response")
        if result.blocks and not result.is_error and not is_object(response):
            body["response"] = {"output": DONE}
            written = (self.write(part, f"{path}.parts") for part in result.parts)
            part = {RESPONSE: with_kept(body, result.kept, f"{RESPONSE}.")}
            return [with_kept(part, result.kept), *(one for each in written for one in each)]
        inside, beside, notes = self._attached(result, path, inside="parts" in wire)
        if not is_object(response):
            text = "\n".join([*([result.text] if result.text else ()), *notes])
            response = {"error" if result.is_error else "output": text}
        body["response"] = response
        if inside:
            body["parts"] = inside
        part = {RESPONSE: with_kept(body, result.kept, f"{RESPONSE}.")}
        return [with_kept(part, result.kept), *beside]

    def _given(self, result: ToolResult) -> JsonObject:
        """The response that the result was decoded from; empty for one from elsewhere."""
        wire = self._source.wire(result)
        found = member(wire, RESPONSE) if is_object(wire) else None
        return found if is_object(found) else {}

    def _attached(
        self, result: ToolResult, path: str, *, inside: bool
    ) -> tuple[list[Any], list[Any], list[str]]:
        """Media inside the response where the model takes it, else beside it; and notes."""
        within: list[Any] = []
        beside: list[Any] = []
        notes: list[str] = []
        for number, part in enumerate(result.parts):
            inner_path = f"{path}.parts[{number}]"
            if isinstance(part, Text):
                self._report_cache(part, inner_path)
                continue
            if isinstance(part, ServerBlock):
                within += self.write(part, inner_path)
                continue
            written = self._media(part, inner_path)
            if written is None:
                notes.append(part.placeholder)
            else:
                (within if inside or self._media_in_results else beside).append(written)
        return within, beside, notes

    def _report_cache(self, part: Text | Media | ToolCall | ToolResult, path: str) -> None:
        if part.cache is not None:
            self._losses.add(f"{path}.cache", "cache mark", "Gemini caches by itself")


def _signed(body: JsonObject, seal: Seal | None, kept: Kept | None) -> list[Any]:
    written = with_kept({**body, **own_seal(seal, NAME)}, kept)
    return [] if written == {"text": ""} else [written]


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Turn:
    """One content while it grows: results in the order of their calls, each with what follows it,
    then the rest. What follows only the last of several results is the user's, and of the rest.
    """

    def __init__(self, role: str, order: dict[str, int], members: JsonObject) -> None:
        self.role = role
        self.members = members
        self._order = order
        self._results: list[tuple[int, list[Any]]] = []
        self._others: list[Any] = []
        self._after: list[Any] | None = None
        """What follows the last result so far; None where other parts come first."""
        self._beside = False
        """Whether something follows an earlier result."""
        self._new = True

    def begin(self) -> None:
        """Begin a message; one that does not begin with a result goes behind all results."""
        self._new = True

    def add(self, part: object, written: list[Any]) -> None:
        """Add the wire parts of one of ours."""
        if isinstance(part, ToolResult):
            self._beside = self._beside or bool(self._after)
            self._settle()
            if self._after is not None or self._new:
                self._after = []
            position = self._order.get(part.call_id, len(self._order))
            self._results.append((position, [*written]))
        elif self._after is None or self._new:
            self._settle()
            self._others += written
            self._after = None
        else:
            self._after += written
        self._new = False

    def _settle(self) -> None:
        if self._after:
            (self._results[-1][1] if self._beside else self._others).extend(self._after)
            self._after.clear()

    def content(self) -> JsonObject | None:
        """The finished content; None if nothing is in it."""
        self._settle()
        self._results.sort(key=lambda result: result[0])
        parts = [part for _, written in self._results for part in written] + self._others
        if not parts and not self.members:
            return None
        return {**self.members, "role": self.role, "parts": parts}


class ContentsWriter:
    """Writes a conversation for a reader that wants roles in turn and results together.

    `given` returns the content that a message was decoded from, where it may be sent again.
    """

    def __init__(
        self,
        writer: PartWriter,
        losses: Losses,
        sentinel: str,
        given: Callable[[Message], JsonObject | None],
    ) -> None:
        self._writer = writer
        self._losses = losses
        self._sentinel = sentinel
        self._given = given
        self._turns: list[Turn | JsonObject] = []
        self._order: dict[str, int] = {}

    def write(self, messages: list[tuple[int, Message]]) -> list[JsonObject]:
        """The contents of these messages, numbered as in the request."""
        for number, message in messages:
            if message.role == "assistant":
                self._order = {call.id: position for position, call in enumerate(message.calls)}
            given = self._given(message)
            if given is None:
                self._add(number, message)
            else:
                self._writer.add_calls(message)
                self._turns.append(given)
        contents = [turn.content() if isinstance(turn, Turn) else turn for turn in self._turns]
        return [content for content in contents if content is not None]

    def _add(self, number: int, message: Message) -> None:
        path = f"messages[{number}]"
        if message.role == "system":
            self._losses.add(path, "system role", "sent as the user's words")
        role = "model" if message.role == "assistant" else "user"
        turn = self._turn(role, with_kept({}, message.kept))
        turn.begin()
        signed = False
        for position, part in enumerate(message.parts):
            written = self._writer.write(part, f"{path}.parts[{position}]")
            if isinstance(part, Thinking) and not own_seal(part.seal, NAME):
                # A foreign seal is reported where it is dropped.
                if part.text and part.seal is None:
                    why = "Gemini takes back only what it signed"
                    self._losses.add(f"{path}.parts[{position}]", "thinking", why)
                continue
            if isinstance(part, ToolCall):
                if self._sentinel and not signed and SIGNATURE not in written[0]:
                    written[0][SIGNATURE] = self._sentinel
                signed = True
            turn.add(part, written)

    def _turn(self, role: str, members: JsonObject) -> Turn:
        last = self._turns[-1] if self._turns else None
        if isinstance(last, Turn) and last.role == role and not members and not last.members:
            return last
        turn = Turn(role, self._order, members)
        self._turns.append(turn)
        return turn


def split_system(
    request: ModelRequest, losses: Losses, given: Callable[[Message], JsonObject | None]
) -> tuple[list[tuple[str, Text]], list[tuple[int, Message]]]:
    """The instructions (leading system messages too) and the rest of the conversation."""
    texts = [(f"system[{number}]", part) for number, part in enumerate(request.system)]
    messages = list(enumerate(request.messages))
    while messages and messages[0][1].role == "system" and given(messages[0][1]) is None:
        number, message = messages.pop(0)
        for position, part in enumerate(message.parts):
            path = f"messages[{number}].parts[{position}]"
            if isinstance(part, Text):
                texts.append((path, part))
            else:
                losses.add(path, type(part).__name__.lower(), "instructions are text only")
    return texts, messages


def system_instruction(
    texts: list[tuple[str, Text]], kept: Kept | None, writer: PartWriter
) -> JsonObject | None:
    """The instructions as a content; None if there are none."""
    parts: list[Any] = [part for path, text in texts for part in writer.write(text, path)]
    others = kept_member(kept, NAME, f"{SYSTEM}.parts")
    if is_object(others):
        for number, part in sorted(others.items(), key=lambda other: int(other[0])):
            parts.insert(int(number), part)
    if not parts:
        return None
    return {**with_kept({}, kept, f"{SYSTEM}."), "role": "user", "parts": parts}
