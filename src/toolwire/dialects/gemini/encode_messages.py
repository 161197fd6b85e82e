"""Our messages as `contents` and `systemInstruction`."""

from collections.abc import Callable
from typing import Any, cast

import msgspec

from toolwire.dialects import arguments
from toolwire.dialects.gemini.media import write_media
from toolwire.dialects.gemini.shapes import NAME, SIGNATURE, USUAL_ROLE, is_object, role_of
from toolwire.dialects.gemini.spelling import Spelled
from toolwire.dialects.kept import own_seal
from toolwire.dialects.losses import Losses
from toolwire.errors import BadInput
from toolwire.messages import (
    CallKind,
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
from toolwire.request import JsonObject, ModelRequest
from toolwire.wire.json_access import parse, parse_object
from toolwire.wire.surrogates import whole_characters


class PartWriter:
    """Writes parts one by one. What cannot be carried goes into the losses."""

    def __init__(
        self,
        losses: Losses,
        *,
        exact: bool = False,
        wire_name: Callable[[ToolCall], str] = lambda call: call.name,
        sends_id: Callable[[ToolCall], bool] = lambda call: not call.made_id,
        media_in_results: bool = False,
    ) -> None:
        self._losses = losses
        self._exact = exact
        self._wire_name = wire_name
        self._sends_id = sends_id
        self._media_in_results = media_in_results
        self._calls: dict[str, ToolCall] = {}

    def write(self, part: Part, path: str) -> list[Any]:
        """The wire parts of one of ours: none, one, or a result followed by its media."""
        match part:
            case Text():
                return self._text(part, path)
            case Thinking():
                return self._thinking(part)
            case Refusal():
                self._losses.add(path, "refusal", "sent as plain text")
                return self._signed({"text": part.text}, part.seal, Spelled(None, exact=False))
            case Media():
                return self._media(part, path)
            case ToolCall():
                return [self._call(part, path)]
            case ToolResult():
                return self._result(part, path)
            case ServerBlock():
                if part.origin.dialect != NAME:
                    return []
                parse_object(part.data, path)
                return [msgspec.Raw(part.data.encode())]

    def _signed(self, body: JsonObject, seal: Seal | None, spelled: Spelled) -> list[Any]:
        body.update(own_seal(seal, NAME))
        written = spelled.write("", body)
        empty = written in ({}, {"text": ""})
        return [] if empty and not self._exact else [written]

    def _text(self, part: Text, path: str) -> list[Any]:
        self._tell_cache(part, path)
        for number, citation in enumerate(part.citations):
            why = "Gemini takes no citations back"
            self._losses.add(f"{path}.citations[{number}]", citation.url or "citation", why)
        spelled = Spelled(part.kept, exact=self._exact)
        if spelled.shape("shape") == "string":
            return [part.text]
        body = {} if spelled.absent("text") and not part.text else {"text": part.text}
        return self._signed(body, part.seal, spelled)

    def _thinking(self, part: Thinking) -> list[Any]:
        spelled = Spelled(part.kept, exact=self._exact)
        body: JsonObject = {} if spelled.absent("text") and not part.text else {"text": part.text}
        if not self._exact and not part.text and not own_seal(part.seal, NAME):
            return []
        return self._signed({**body, "thought": True}, part.seal, spelled)

    def _media(self, part: Media, path: str) -> list[Any]:
        self._tell_cache(part, path)
        spelled = Spelled(part.kept, exact=self._exact)
        body = write_media(part, path, spelled, self._losses)
        if body is None:
            return []
        body.update(own_seal(part.seal, NAME))
        return [spelled.write("", body)]

    def _call(self, call: ToolCall, path: str) -> JsonObject:
        self._tell_cache(call, path)
        self._calls[call.id] = call
        spelled = Spelled(call.kept, exact=self._exact)
        body: JsonObject = {"id": call.id} if self._sends_id(call) else {}
        if call.name or not spelled.absent("name"):
            body["name"] = self._wire_name(call)
        if not spelled.absent("args") or call.arguments != "{}":
            body["args"] = self._arguments(call, path)
        part = {"functionCall": spelled.write("functionCall.", body), **own_seal(call.seal, NAME)}
        return spelled.write("", part)

    def _arguments(self, call: ToolCall, path: str) -> Any:
        found = arguments.parsed(call)
        if call.kind is CallKind.JSON and found and _is_utf8(call.arguments):
            return msgspec.Raw(whole_characters(call.arguments.encode()))
        if found is None and self._exact:
            return parse(call.arguments, f"{path}.arguments")
        return arguments.as_object(call, path, self._losses)

    def _result(self, result: ToolResult, path: str) -> list[Any]:
        self._tell_cache(result, path)
        spelled = Spelled(result.kept, exact=self._exact)
        call = self._calls.get(result.call_id)
        body: JsonObject = {}
        wire_id = self._result_id(result, call, spelled)
        if wire_id:
            body["id"] = wire_id
        if result.name or not (self._exact and spelled.absent("name")):
            body["name"] = self._result_name(result, call, spelled)
        if not spelled.absent("response") or result.text:
            body["response"] = _response(result, spelled)
        inside, beside = self._attached(result, path, spelled)
        if inside or spelled.shape("parts"):
            body["parts"] = inside
        part = {"functionResponse": spelled.write("functionResponse.", body)}
        return [spelled.write("", part), *beside]

    def _result_id(self, result: ToolResult, call: ToolCall | None, spelled: Spelled) -> str:
        if call is not None and not (self._exact and spelled.own):
            return call.id if self._sends_id(call) else ""
        return spelled.form.get("id") or ""

    def _result_name(self, result: ToolResult, call: ToolCall | None, spelled: Spelled) -> str:
        if call is None or (self._exact and spelled.own):
            return result.name or result.call_id
        return self._wire_name(call)

    def _attached(
        self, result: ToolResult, path: str, spelled: Spelled
    ) -> tuple[list[Any], list[Any]]:
        """Media inside the response where the model takes it, else beside it."""
        inside: list[Any] = []
        beside: list[Any] = []
        native = self._media_in_results or bool(spelled.form.get("parts"))
        for number, part in enumerate(result.parts):
            inner_path = f"{path}.parts[{number}]"
            if isinstance(part, Text):
                self._tell_cache(part, inner_path)
                continue
            written = self.write(part, inner_path)
            if native or isinstance(part, ServerBlock):
                inside += written
            else:
                beside += written
        return inside, beside

    def _tell_cache(self, part: Text | Media | ToolCall | ToolResult, path: str) -> None:
        if part.cache is not None:
            self._losses.add(f"{path}.cache", "cache mark", "Gemini caches by itself")


def _response(result: ToolResult, spelled: Spelled) -> Any:
    words = result.text
    written = spelled.form.get("response")
    if written == "string" and spelled.exact:
        return words
    if written == "json":
        try:
            value = parse(words, "response")
        except BadInput:
            value = None
        if is_object(value) or spelled.exact:
            return value
    return {"error" if result.is_error else "output": words}


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def exact_contents(request: ModelRequest, spelled: Spelled, writer: PartWriter) -> Any:
    """The contents as they were written, message by message."""
    contents = [_exact_content(message, number, writer) for number, message in _counted(request)]
    shape = spelled.shape("contents")
    if shape in ("string", "object") and len(contents) == 1:
        return contents[0]
    return contents


def _counted(request: ModelRequest) -> list[tuple[int, Message]]:
    return list(enumerate(request.messages))


def _exact_content(message: Message, number: int, writer: PartWriter) -> Any:
    spelled = Spelled(message.kept, exact=True)
    parts: Any = [
        written
        for place, part in enumerate(message.parts)
        for written in writer.write(part, f"messages[{number}].parts[{place}]")
    ]
    if spelled.shape("shape") == "string" and len(parts) == 1:
        return message.text
    if spelled.shape("parts") == "object" and len(parts) == 1:
        parts = parts[0]
    body: JsonObject = {}
    role = spelled.form.get("role", USUAL_ROLE[message.role])
    if "role" in spelled.form and role_of(role) != message.role:
        role = USUAL_ROLE[message.role]
    if role is not None:
        body["role"] = role
    if parts or not spelled.absent("parts"):
        body["parts"] = parts
    return spelled.write("", body)


class Turn:
    """One content while it grows: results in the order of their calls, each with what follows it in
    its message, then the rest.
    """

    def __init__(self, role: str, order: dict[str, int]) -> None:
        self.role = role
        self.members: JsonObject = {}
        self._order = order
        self._results: list[tuple[int, list[Any]]] = []
        self._others: list[Any] = []
        self._last = self._others
        self._spoken = False

    def begin(self) -> None:
        """A message begins; one that does not begin with a result says everything after them."""
        self._last = self._others
        self._spoken = False

    def add(self, part: object, written: list[Any]) -> None:
        """The wire parts of one of ours."""
        if isinstance(part, ToolResult):
            place = self._order.get(part.call_id, len(self._order))
            self._results.append((place, [*written]))
            if not self._spoken:
                self._last = self._results[-1][1]
        else:
            self._spoken = self._spoken or self._last is self._others
            self._last += written

    def content(self) -> JsonObject | None:
        """The finished content; None if nothing is in it."""
        self._results.sort(key=lambda result: result[0])
        parts = [part for _, written in self._results for part in written] + self._others
        if not parts and not self.members:
            return None
        return {**self.members, "role": self.role, "parts": parts}


class ContentsWriter:
    """Writes a conversation for a reader that wants roles in turn and answers together."""

    def __init__(self, writer: PartWriter, losses: Losses, sentinel: str) -> None:
        self._writer = writer
        self._losses = losses
        self._sentinel = sentinel
        self._turns: list[Turn] = []
        self._order: dict[str, int] = {}

    def write(self, messages: list[tuple[int, Message]]) -> list[JsonObject]:
        """The contents of these messages, numbered as they stand in the request."""
        for number, message in messages:
            self._add(number, message)
        contents = [turn.content() for turn in self._turns]
        return [content for content in contents if content is not None]

    def _add(self, number: int, message: Message) -> None:
        path = f"messages[{number}]"
        if message.role == "system":
            self._losses.add(path, "system role", "sent as the user's words")
        role = "model" if message.role == "assistant" else "user"
        members = Spelled(message.kept, exact=False).write("", {})
        turn = self._turn(role, members)
        if role == "model":
            self._order = {call.id: place for place, call in enumerate(message.calls)}
        turn.begin()
        signed = False
        for place, part in enumerate(message.parts):
            written = self._writer.write(part, f"{path}.parts[{place}]")
            if isinstance(part, Thinking) and not own_seal(part.seal, NAME):
                # A foreign seal is told of where it is dropped.
                if part.text and part.seal is None:
                    why = "Gemini takes back only what it signed"
                    self._losses.add(f"{path}.parts[{place}]", "thinking", why)
                continue
            if isinstance(part, ToolCall):
                if self._sentinel and not signed and SIGNATURE not in written[0]:
                    written[0][SIGNATURE] = self._sentinel
                signed = True
            turn.add(part, written)

    def _turn(self, role: str, members: JsonObject) -> Turn:
        last = self._turns[-1] if self._turns else None
        if last is None or last.role != role or members or last.members:
            last = Turn(role, self._order)
            last.members = members
            self._turns.append(last)
        return last


def split_system(
    request: ModelRequest, losses: Losses
) -> tuple[list[tuple[str, Text]], list[tuple[int, Message]]]:
    """The instructions (those before the first word of the conversation too) and the rest."""
    texts = [(f"system[{number}]", part) for number, part in enumerate(request.system)]
    messages = _counted(request)
    while messages and messages[0][1].role == "system":
        number, message = messages.pop(0)
        for place, part in enumerate(message.parts):
            path = f"messages[{number}].parts[{place}]"
            if isinstance(part, Text):
                texts.append((path, part))
            else:
                losses.add(path, type(part).__name__.lower(), "instructions are text only")
    return texts, messages


def system_instruction(texts: list[tuple[str, Text]], spelled: Spelled, writer: PartWriter) -> Any:
    """The instructions as a content, or as they were written; None if there are none."""
    outline = spelled.shape("system")
    parts: list[Any] = [part for path, text in texts for part in writer.write(text, path)]
    others = spelled.fields.get("systemInstruction.parts")
    if isinstance(others, dict):
        del spelled.fields["systemInstruction.parts"]
        for number, part in sorted(
            cast(JsonObject, others).items(), key=lambda other: int(other[0])
        ):
            parts.insert(int(number), part)
    if not isinstance(outline, dict):
        members = spelled.write("systemInstruction.", {})
        return {**members, "role": "user", "parts": parts} if parts else None
    return _outlined(cast(JsonObject, outline), parts, spelled)


def _outlined(outline: JsonObject, parts: list[Any], spelled: Spelled) -> Any:
    if outline.get("shape") == "string" and len(parts) == 1:
        return parts[0]["text"]
    form: JsonObject = outline.get("form") or {}
    body: JsonObject = {}
    if "role" in outline:
        body["role"] = outline["role"]
    if form.get("parts") == "object" and len(parts) == 1:
        body["parts"] = parts[0]
    elif parts or "parts" not in form.get("absent", ()):
        body["parts"] = parts
    return spelled.write("systemInstruction.", body)
