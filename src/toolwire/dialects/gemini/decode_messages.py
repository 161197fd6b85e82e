"""The contents of a client's request as messages; calls and responses are paired on the way."""

from typing import Any

from msgspec.structs import replace

from toolwire.dialects.gemini.media import read_media
from toolwire.dialects.gemini.shapes import (
    CALL,
    FILE,
    INLINE,
    NAME,
    NO_ARGS,
    RESPONSE,
    SIGNATURE,
    SYSTEM,
    Members,
    camel_case,
    is_list,
    kept_members,
    member,
    role_of,
)
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
from toolwire.request import JsonObject, Source
from toolwire.wire.json_access import dump, is_object, obj

ORIGIN = Origin(NAME)
_OUTPUT, _ERROR = "output", "error"
_SIGNED = frozenset({"thought", SIGNATURE})
"""Members of a part that holds nothing but a signature."""


class _OpenCalls:
    """The calls of the last model turn without a response, and ids for calls that have none."""

    def __init__(self, ids: set[str]) -> None:
        self._ids = ids
        self._count = 0
        self._waiting: list[ToolCall] = []

    def begin_turn(self) -> None:
        """Forget the calls of the turn before."""
        self._waiting.clear()

    def new_id(self) -> str:
        """A positional id that no call of this request has."""
        while True:
            self._count += 1
            made = f"call_{self._count}"
            if made not in self._ids:
                return made

    def add(self, call: ToolCall) -> None:
        """One more call that waits for its response."""
        self._waiting.append(call)

    def answered(self, wire_id: str, name: str) -> ToolCall | None:
        """The call that a response belongs to: by id, else the first of its name, else None."""
        found = next((call for call in self._waiting if wire_id and call.id == wire_id), None)
        if found is None:
            found = next((call for call in self._waiting if call.name == name), None)
        if found is not None:
            self._waiting.remove(found)
        return found


def read_contents(value: Any, source: Source) -> tuple[Message, ...]:
    """The messages of `contents`: a list, one content, or a string."""
    if value is None:
        return ()
    if not is_list(value):
        if not isinstance(value, str | dict):
            raise BadInput("contents: expected a list")
        value = [value]
    reader = _ContentReader(source, _wire_ids(value))
    return tuple(
        reader.content(content, f"contents[{number}]") for number, content in enumerate(value)
    )


def read_system(value: Any, source: Source, left: JsonObject) -> tuple[Text, ...]:
    """The texts of `systemInstruction`, a content or a string; anything else goes into `left`."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (Text(value),)
    members = Members(obj(value, SYSTEM), left, f"{SYSTEM}.")
    members.take("role", str)
    wire = members.take("parts")
    parts = _ContentReader(source, set()).parts(wire, SYSTEM)
    members.close()
    others = {
        str(number): wire[number] if is_list(wire) else wire
        for number, part in enumerate(parts)
        if not isinstance(part, Text)
    }
    if others:
        left[f"{SYSTEM}.parts"] = others
    return tuple(part for part in parts if isinstance(part, Text))


class _ContentReader:
    """Reads contents in order. The wire object of each message and part goes into the source."""

    def __init__(self, source: Source, ids: set[str]) -> None:
        self._source = source
        self._calls = _OpenCalls(ids)
        self._in_model_turn = True

    def content(self, value: Any, path: str) -> Message:
        """One message."""
        if isinstance(value, str):
            message = Message(role="user", parts=(Text(value),))
            self._in_model_turn = False
        else:
            left: JsonObject = {}
            members = Members(obj(value, path), left)
            role = role_of(members.take("role", str))
            if role == "assistant" and not self._in_model_turn:
                self._calls.begin_turn()
            self._in_model_turn = role == "assistant"
            parts = self.parts(members.take("parts"), path)
            members.close()
            message = Message(role=role, parts=parts, kept=kept_members(left))
        self._source.add(message, value)
        return message

    def parts(self, value: Any, path: str) -> tuple[Part, ...]:
        """The parts of a content: a list, or one part."""
        if value is None:
            return ()
        if is_object(value):
            value = [value]
        if not is_list(value):
            raise BadInput(f"{path}.parts: expected a list")
        parts: list[Part] = []
        for number, wire in enumerate(value):
            part = self._part(wire, f"{path}.parts[{number}]")
            self._source.add(part, wire)
            parts.append(part)
        return tuple(parts)

    def _part(self, value: Any, path: str) -> Part:
        if isinstance(value, str):
            return Text(value)
        left: JsonObject = {}
        part = obj(value, path)
        members = Members(part, left)
        call = members.take(CALL, dict)
        if call is not None:
            return self._call(call, members, left)
        response = members.take(RESPONSE, dict)
        if response is not None:
            return self._result(response, members, left, path)
        return _read_media(members, left) or _read_text(part, members, left)

    def _call(self, data: JsonObject, outer: Members, left: JsonObject) -> ToolCall:
        members = Members(data, left, f"{CALL}.")
        wire_id = members.take_text("id")
        name = members.take_text("name")
        args = members.take("args")
        if args is None:
            left[NO_ARGS] = None
        members.close()
        seal = _seal(outer)
        outer.close()
        call = ToolCall(
            id=wire_id or self._calls.new_id(),
            name=name,
            arguments="{}" if args is None else dump(args),
            made_id=not wire_id,
            seal=seal,
            kept=kept_members(left),
        )
        self._calls.add(call)
        return call

    def _result(self, data: JsonObject, outer: Members, left: JsonObject, path: str) -> ToolResult:
        members = Members(data, left, f"{RESPONSE}.")
        wire_id = members.take_text("id")
        name = members.take_text("name")
        call = self._calls.answered(wire_id, name)
        call_id = call.id if call is not None else wire_id or self._calls.new_id()
        parts, is_error = _read_response(members.take("response"))
        for number, item in enumerate(members.take("parts", list) or ()):
            attached = _read_attached(item, f"{path}.{RESPONSE}.parts[{number}]")
            self._source.add(attached, item)
            parts.append(attached)
        members.close()
        outer.close()
        return ToolResult(
            call_id=call_id,
            name=name,
            parts=tuple(parts),
            is_error=is_error,
            kept=kept_members(left),
        )


def _read_media(members: Members, left: JsonObject) -> Media | None:
    for name in (INLINE, FILE):
        data = members.take(name, dict)
        if data is not None:
            media = read_media(name, data, left, _seal(members))
            members.close()
            return replace(media, kept=kept_members(left))
    return None


def _read_text(part: JsonObject, members: Members, left: JsonObject) -> Part:
    text = members.take("text", str)
    seal = _seal(members)
    if text is None:
        given = [camel_case(key) for key, value in part.items() if value is not None]
        kind = next((key for key in given if key not in _SIGNED), "" if seal else "empty")
        if kind:
            # A part of the server's, signed or not.
            return ServerBlock(origin=ORIGIN, kind=kind, data=dump(part))
    thought = part.get("thought") is True
    if thought:
        members.take("thought")
    members.close()
    if thought:
        return Thinking(text or "", seal, kept_members(left))
    return Text(text or "", seal=seal, kept=kept_members(left))


def _seal(members: Members) -> Seal | None:
    signature = members.take(SIGNATURE, str)
    if signature is None:
        return None
    return Seal(origin=ORIGIN, data=dump({SIGNATURE: signature}))


def _read_response(response: Any) -> tuple[list[ResultPart], bool]:
    """The text of a response; an object that is more than its `output` or `error` stays JSON."""
    if response is None:
        return [], False
    if isinstance(response, str):
        return [Text(response)], False
    if is_object(response) and len(response) == 1:
        for key in (_OUTPUT, _ERROR):
            if isinstance(response.get(key), str):
                return [Text(response[key])], key == _ERROR
    failed = is_object(response) and bool(response.get(_ERROR)) and _OUTPUT not in response
    return [Text(dump(response))], failed


def _read_attached(value: Any, path: str) -> ResultPart:
    left: JsonObject = {}
    part = obj(value, path)
    media = _read_media(Members(part, left), left)
    if media is not None:
        return media
    kind = next((camel_case(key) for key in part), "")
    return ServerBlock(origin=ORIGIN, kind=kind or "empty", data=dump(part))


def _wire_ids(contents: list[Any]) -> set[str]:
    """Every call id in the request, so that none of ours is one of them."""
    found: set[str] = set()
    for content in contents:
        parts = content.get("parts") if is_object(content) else None
        for part in parts if is_list(parts) else [parts]:
            if not is_object(part):
                continue
            for name in (CALL, RESPONSE):
                data = member(part, name)
                if is_object(data) and isinstance(data.get("id"), str):
                    found.add(data["id"])
    return found
