"""Parts of a client's request, read into ours; calls and answers are paired on the way."""

from typing import Any

from toolwire.dialects.gemini.media import read_media
from toolwire.dialects.gemini.shapes import (
    FILE,
    INLINE,
    NAME,
    USUAL_ROLE,
    camel_case,
    is_list,
    is_object,
    role_of,
)
from toolwire.dialects.gemini.spelling import Members, Notes
from toolwire.errors import BadInput
from toolwire.messages import (
    Media,
    Message,
    Origin,
    Part,
    ResultPart,
    Seal,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, obj

ORIGIN = Origin(NAME)
_OUTPUT, _ERROR = "output", "error"


class OpenCalls:
    """The calls of the last model turn that wait for an answer, and ids for those without one."""

    def __init__(self, ids: set[str]) -> None:
        self._ids = ids
        self._count = 0
        self._waiting: list[ToolCall] = []

    def begin_turn(self) -> None:
        """The model speaks again: what was not answered stays so."""
        self._waiting.clear()

    def new_id(self) -> str:
        """A positional id that no call of this request has."""
        while True:
            self._count += 1
            made = f"call_{self._count}"
            if made not in self._ids:
                return made

    def add(self, call: ToolCall) -> None:
        """One more waits."""
        self._waiting.append(call)

    def answered(self, wire_id: str, name: str) -> ToolCall | None:
        """The call that this answer is for: by id, else the first of its name, else none."""
        found = next((call for call in self._waiting if wire_id and call.id == wire_id), None)
        if found is None:
            found = next((call for call in self._waiting if call.name == name), None)
        if found is not None:
            self._waiting.remove(found)
        return found


def content_list(value: Any, notes: Notes) -> list[Any]:
    """The `contents` as a list, whatever shape they have."""
    if value is None:
        notes.mark_absent("contents")
        return []
    if isinstance(value, str):
        notes.form["contents"] = "string"
        return [value]
    if is_object(value):
        notes.form["contents"] = "object"
        return [value]
    if is_list(value):
        return value
    raise BadInput("contents: expected a list")


def read_contents(contents: list[Any]) -> tuple[Message, ...]:
    """The messages of a list of contents."""
    calls = OpenCalls(_wire_ids(contents))
    messages: list[Message] = []
    for number, content in enumerate(contents):
        message = _read_content(content, f"contents[{number}]", calls, messages)
        messages.append(message)
    return tuple(messages)


def _read_content(value: Any, path: str, calls: OpenCalls, before: list[Message]) -> Message:
    notes = Notes()
    if isinstance(value, str):
        notes.form["shape"] = "string"
        return Message(role="user", parts=(Text(value),), kept=notes.kept())
    members = Members(obj(value, path), notes)
    word = members.take("role", str)
    role = role_of(word)
    if word != USUAL_ROLE[role]:
        notes.form["role"] = word
    if role == "assistant" and before and before[-1].role != "assistant":
        calls.begin_turn()
    parts = _read_parts(members.take("parts"), path, notes, calls)
    members.close()
    return Message(role=role, parts=parts, kept=notes.kept())


def _read_parts(value: Any, path: str, notes: Notes, calls: OpenCalls) -> tuple[Part, ...]:
    if value is None:
        notes.mark_absent("parts")
        return ()
    if is_object(value):
        notes.form["parts"] = "object"
        value = [value]
    if not is_list(value):
        raise BadInput(f"{path}.parts: expected a list")
    return tuple(
        _read_part(part, f"{path}.parts[{number}]", calls) for number, part in enumerate(value)
    )


def read_system(value: Any, notes: Notes) -> tuple[Text, ...]:
    """The instructions: a string, a content, or a content whose parts are one part."""
    if value is None:
        return ()
    if isinstance(value, str):
        notes.form["system"] = {"shape": "string"}
        return (Text(value),)
    inner = Notes()
    members = Members(obj(value, "systemInstruction"), inner)
    shape: JsonObject = {}
    role = members.take("role", str)
    if role is not None:
        shape["role"] = role
    nothing = OpenCalls(set())
    parts = _read_parts(members.take("parts"), "systemInstruction", inner, nothing)
    if inner.form:
        shape["form"] = inner.form
    members.close()
    texts: list[Text] = []
    others: JsonObject = {}
    for number, part in enumerate(parts):
        if isinstance(part, Text):
            texts.append(part)
        else:
            others[str(number)] = _raw_part(value, number)
    if others:
        inner.fields["parts"] = others
    notes.form["system"] = shape
    for key, left in inner.fields.items():
        notes.fields[f"systemInstruction.{key}"] = left
    return tuple(texts)


def _raw_part(system: JsonObject, number: int) -> Any:
    parts = system["parts"]
    return parts[number] if is_list(parts) else parts


def _read_part(value: Any, path: str, calls: OpenCalls) -> Part:
    """One part of a content."""
    notes = Notes()
    if isinstance(value, str):
        notes.form["shape"] = "string"
        return Text(value, kept=notes.kept())
    part = obj(value, path)
    members = Members(part, notes)
    for member, read in (("functionCall", _read_call), ("functionResponse", _read_result)):
        data = members.take(member, dict)
        if data is not None:
            return read(data, members, notes, calls, path)
    media = _media(members, notes)
    if media is not None:
        return media
    return _read_text(part, members, notes)


def _media(members: Members, notes: Notes) -> Media | None:
    for member in (INLINE, FILE):
        data = members.take(member, dict)
        if data is not None:
            media = read_media(member, data, notes, _seal(members))
            members.close()
            return _with(media, notes)
    return None


def _with(media: Media, notes: Notes) -> Media:
    return Media(
        kind=media.kind,
        mime=media.mime,
        base64=media.base64,
        url=media.url,
        file_id=media.file_id,
        name=media.name,
        seal=media.seal,
        kept=notes.kept(),
    )


def _read_text(part: JsonObject, members: Members, notes: Notes) -> Part:
    words = members.take("text", str)
    seal = _seal(members)
    if words is None and seal is None:
        kind = next((camel_case(key) for key, value in part.items() if value is not None), "")
        return ServerBlock(origin=ORIGIN, kind=kind or "empty", data=dump(part))
    if words is None:
        notes.mark_absent("text")
    if part.get("thought") is True:
        members.take("thought")
        members.close()
        return Thinking(words or "", seal, notes.kept())
    members.close()
    return Text(words or "", seal=seal, kept=notes.kept())


def _seal(members: Members) -> Seal | None:
    signature = members.take("thoughtSignature", str)
    if signature is None:
        return None
    return Seal(origin=ORIGIN, data=dump({"thoughtSignature": signature}))


def _read_call(
    data: JsonObject, outer: Members, notes: Notes, calls: OpenCalls, path: str
) -> ToolCall:
    members = Members(data, notes, "functionCall.")
    wire_id = members.take_word("id")
    name = members.take_word("name")
    if not name:
        notes.mark_absent("name")
    args = members.take("args")
    if args is None:
        notes.mark_absent("args")
    members.close()
    seal = _seal(outer)
    outer.close()
    call = ToolCall(
        id=wire_id or calls.new_id(),
        name=name,
        arguments="{}" if args is None else dump(args),
        made_id=not wire_id,
        seal=seal,
        kept=notes.kept(),
    )
    calls.add(call)
    return call


def _read_result(
    data: JsonObject, outer: Members, notes: Notes, calls: OpenCalls, path: str
) -> ToolResult:
    members = Members(data, notes, "functionResponse.")
    wire_id = members.take_word("id")
    name = members.take_word("name")
    if not name:
        notes.mark_absent("name")
    call = calls.answered(wire_id, name)
    call_id = call.id if call is not None else wire_id or calls.new_id()
    notes.form["id"] = wire_id
    parts, is_error = _read_response(members.take("response"), notes)
    attached = members.take("parts", list)
    if attached is not None:
        notes.form["parts"] = True
        inner_path = f"{path}.functionResponse.parts"
        parts += [
            _read_attached(item, f"{inner_path}[{number}]") for number, item in enumerate(attached)
        ]
    members.close()
    outer.close()
    return ToolResult(
        call_id=call_id, name=name, parts=tuple(parts), is_error=is_error, kept=notes.kept()
    )


def _read_response(response: Any, notes: Notes) -> tuple[list[ResultPart], bool]:
    """The words of an answer; an object that is more than its `output` or `error` stays JSON."""
    if response is None:
        notes.mark_absent("response")
        return [], False
    if isinstance(response, str):
        notes.form["response"] = "string"
        return [Text(response)], False
    if is_object(response) and len(response) == 1:
        for key in (_OUTPUT, _ERROR):
            if isinstance(response.get(key), str):
                return [Text(response[key])], key == _ERROR
    notes.form["response"] = "json"
    failed = is_object(response) and bool(response.get(_ERROR)) and _OUTPUT not in response
    return [Text(dump(response))], failed


def _read_attached(value: Any, path: str) -> ResultPart:
    notes = Notes()
    part = obj(value, path)
    members = Members(part, notes)
    media = _media(members, notes)
    if media is not None:
        return media
    kind = next((camel_case(key) for key in part), "")
    return ServerBlock(origin=ORIGIN, kind=kind or "empty", data=dump(part))


def _wire_ids(contents: list[Any]) -> set[str]:
    """Every call id the request speaks of, so that none of ours is one of them."""
    found: set[str] = set()
    for content in contents:
        parts = content.get("parts") if is_object(content) else None
        for part in parts if is_list(parts) else [parts]:
            if not is_object(part):
                continue
            for member in (
                "functionCall",
                "function_call",
                "functionResponse",
                "function_response",
            ):
                data = part.get(member)
                if is_object(data) and isinstance(data.get("id"), str):
                    found.add(data["id"])
    return found
