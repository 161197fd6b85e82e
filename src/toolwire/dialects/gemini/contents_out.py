"""Our messages as `contents` and `systemInstruction`."""

from typing import Any, cast

from toolwire.dialects.gemini.parts_out import SIGNATURE, PartWriter
from toolwire.dialects.gemini.request_in import USUAL_ROLE, role_of
from toolwire.dialects.gemini.spelling import NAME, Spelled
from toolwire.dialects.kept import own_seal
from toolwire.dialects.losses import Losses
from toolwire.messages import Message, Text, Thinking, ToolCall, ToolResult
from toolwire.request import JsonObject, ModelRequest


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
