"""Wire structs, constants, typed access to JSON, and arguments that stream by JSON path.

A chunk with an unknown member does not fit the structs and is read member by member instead, so
that nothing in it is lost.
"""

import re
from functools import cache
from itertools import pairwise
from typing import Any, TypeAlias, TypeGuard, cast

import msgspec

from toolwire.errors import MalformedStream
from toolwire.messages import Kept, Role
from toolwire.request import Effort, JsonObject
from toolwire.wire.json_access import dump, parse_object

NAME = "gemini"
"""The family's name in seals and kept members: Code Assist has the same format in an envelope."""
FAMILY = (NAME, "code-assist")
"""Formats whose requests are the same but for the envelope."""
DECLARATIONS = "functionDeclarations"
JSON_SCHEMA = "parametersJsonSchema"
OPENAPI = "parameters"
SIGNATURE = "thoughtSignature"
INLINE = "inlineData"
FILE = "fileData"
CALL = "functionCall"
RESPONSE = "functionResponse"
SYSTEM = "systemInstruction"
CHOICE = "toolConfig"
CALLING = "functionCallingConfig"
GENERATION = "generationConfig"
ENVELOPE = "codeAssist."
"""Before stored members of Code Assist's envelope, as opposed to the request inside."""
_INNER = (
    *(f"{name}." for name in (CALL, RESPONSE, INLINE, FILE, SYSTEM, CHOICE, GENERATION)),
    ENVELOPE,
)
"""Before stored members of an inner object."""
NUMBERS = (
    ("temperature", "temperature", (int, float)),
    ("topP", "top_p", (int, float)),
    ("topK", "top_k", (int, float)),
    ("maxOutputTokens", "max_output_tokens", (int,)),
    ("frequencyPenalty", "frequency_penalty", (int, float)),
    ("presencePenalty", "presence_penalty", (int, float)),
    ("seed", "seed", (int,)),
)
"""Wire name, our name and the kinds of number it may be."""

MODE_NUMBERS = (None, "AUTO", "ANY", "NONE", "VALIDATED")
LEVELS = {
    "MINIMAL": Effort.MINIMAL,
    "LOW": Effort.LOW,
    "MEDIUM": Effort.MEDIUM,
    "HIGH": Effort.HIGH,
}
OUTPUT_TYPE = "responseMimeType"
OUTPUT_JSON_SCHEMA = "responseJsonSchema"
OUTPUT_OPENAPI = "responseSchema"
JSON_TYPE = "application/json"
ANY_BUDGET = -1
"""The model decides how much it thinks."""
MODE_FOR = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
MODES = {wire: mode for mode, wire in MODE_FOR.items()}
_ROLES: dict[str, Role] = {"model": "assistant", "assistant": "assistant", "system": "system"}


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether the value is a list."""
    return isinstance(value, list)


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if is_list(value) else []


def whole_number(value: Any) -> int | None:
    """The value if it is a whole number; not a boolean."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


NOTHING = msgspec.Raw(b"")


class FunctionCall(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A whole call."""

    name: str
    args: msgspec.Raw = NOTHING
    id: str | None = None


class Part(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Text, thought or call, any of them signed."""

    text: str | None = None
    thought: bool | None = None
    functionCall: FunctionCall | None = None
    thoughtSignature: str | None = None


class Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """New parts."""

    parts: list[Part] | None = None
    role: str | None = None


class Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One answer; the first is the one that is read."""

    content: Content | None = None
    finishReason: str | None = None
    index: int | None = None


class Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """One streamed response object."""

    candidates: list[Candidate]
    usageMetadata: msgspec.Raw = NOTHING
    modelVersion: str | None = None
    responseId: str | None = None
    createTime: str | None = None


class Enveloped(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Code Assist's envelope around it."""

    response: Chunk
    traceId: str | None = None


RawMembers: TypeAlias = dict[str, msgspec.Raw]

_members = msgspec.json.Decoder(RawMembers).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_any = msgspec.json.Decoder().decode
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What msgspec raises for bytes that are not the expected JSON."""


def response_objects(data: bytes) -> list[RawMembers]:
    """The response objects of a frame: one, those of a list, each without its envelope."""
    if data.lstrip()[:1] == b"[":
        return [_bare(members(item)) for item in _items(data)]
    return [_bare(members(data))]


def _bare(found: RawMembers) -> RawMembers:
    if "response" in found and "candidates" not in found:
        return members_or_none(found["response"]) or {}
    return found


def members(raw: bytes | msgspec.Raw) -> RawMembers:
    """The members of an object in camelCase, without those that are null."""
    found = _members(raw)
    return {camel_case(key): value for key, value in found.items() if bytes(value) != b"null"}


def members_or_none(raw: msgspec.Raw | None) -> RawMembers | None:
    """The same, or None if it is not an object."""
    if raw is None or bytes(raw)[:1] != b"{":
        return None
    return members(raw)


def items(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The items of a list; an object counts as a list of one, any other value as none."""
    if raw is None:
        return []
    match bytes(raw)[:1]:
        case b"[":
            return _items(raw)
        case b"{" | b'"':
            return [raw]
        case _:
            return []


def value(raw: msgspec.Raw | None) -> Any:
    """The decoded value."""
    return None if raw is None else _any(raw)


def text_value(raw: msgspec.Raw | None) -> str | None:
    """The value if it is a string."""
    found = value(raw)
    return found if isinstance(found, str) else None


def text_of(raw: msgspec.Raw) -> str:
    """The JSON text, unchanged."""
    return bytes(raw).decode()


@cache
def snake_case(name: str) -> str:
    """`functionCall` as `function_call`."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def camel_case(name: str) -> str:
    """`function_call` as `functionCall`."""
    if "_" not in name:
        return name
    head, *tail = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def mode_name(wire: Any) -> str:
    """The name of a wire mode, a name or a number; empty for one that is unspecified."""
    if isinstance(wire, int) and 0 <= wire < len(MODE_NUMBERS):
        wire = MODE_NUMBERS[wire]
    name = str(wire or "").upper()
    return "" if name == "MODE_UNSPECIFIED" else name


def role_of(wire: Any) -> Role:
    """Our role for a wire role; all but `model` and `system` are the user."""
    return _ROLES.get(wire, "user") if isinstance(wire, str) else "user"


class Members:
    """A wire object whose members are taken one by one, in either spelling.

    `close` puts the others into `left`, those of an inner object flat, as
    `functionCall.willContinue`.
    """

    def __init__(self, wire: JsonObject, left: JsonObject, path: str = "") -> None:
        self._rest = dict(wire)
        self._left = left
        self._path = path

    def take(self, name: str, *kinds: type) -> Any:
        """The member if it is of one of these kinds; null and any other value is left."""
        for key in (name, snake_case(name)):
            value = self._rest.get(key)
            if value is not None and (not kinds or type(value) in kinds):
                return self._rest.pop(key)
        return None

    def take_text(self, name: str) -> str:
        """The member if it is a string that is not empty; an empty one is left."""
        if member(self._rest, name) == "":
            return ""
        return self.take(name, str) or ""

    def take_texts(self, name: str) -> tuple[str, ...]:
        """The member if it is a list of strings that is not empty; any other is left."""
        found = listed(member(self._rest, name))
        if not found or not all(isinstance(text, str) for text in found):
            return ()
        return tuple(self.take(name, list) or ())

    def close(self) -> None:
        """Leave what was not taken."""
        for key, value in self._rest.items():
            self._left[self._path + key] = value


def member(wire: JsonObject, name: str) -> Any:
    """The member in either spelling, or None."""
    found = wire.get(name)
    return wire.get(snake_case(name)) if found is None else found


def kept_members(left: JsonObject) -> Kept | None:
    """The members to store on the value, or None if there are none."""
    return Kept(dialect=NAME, fields=dump(left)) if left else None


NO_ARGS = f"{CALL}.args"
"""Stored as null on a call that was received without arguments."""


def has_no_args(kept: Kept | None) -> bool:
    """Whether the call was received without arguments."""
    return kept is not None and kept.dialect == NAME and f'"{NO_ARGS}":null' in kept.fields


def is_from_here(kept: Kept | None) -> bool:
    """Whether the value comes from this format."""
    return kept is not None and kept.dialect == NAME


def with_kept(wire: JsonObject, kept: Kept | None, path: str = "") -> JsonObject:
    """The wire object with its stored members put back, those of the inner object at `path`."""
    if kept is None or kept.dialect != NAME or kept.fields == "{}":
        return wire
    fields = parse_object(kept.fields, "kept members")
    if path:
        found = {key[len(path) :]: fields[key] for key in fields if key.startswith(path)}
    else:
        found = {key: fields[key] for key in fields if not key.startswith(_INNER)}
    return {**found, **wire}


_STEP = re.compile(
    r"""\.?(?P<name>[^.\[\]'"]+)|\[(?P<index>\d+)\]|\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]"""
)
_MOST_ITEMS = 100_000
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArgs:
    """Builds the argument object; `text` is its JSON."""

    def __init__(self) -> None:
        self._root: JsonObject = {}
        self._growing: tuple[str, list[str]] | None = None

    @property
    def text(self) -> str:
        """The arguments so far, as JSON."""
        self._finish_string()
        return dump(self._root)

    def merge(self, args: JsonObject) -> None:
        """Add whole members."""
        self._root.update(args)

    def add(self, piece: JsonObject) -> None:
        """Add one piece: a value, or more of an unfinished string."""
        path = piece.get("jsonPath")
        name = next((name for name in _VALUES if name in piece), None)
        if not isinstance(path, str) or name is None:
            return
        value = None if name == "nullValue" else piece[name]
        growing = self._growing
        if isinstance(value, str):
            if growing is not None and growing[0] == path:
                growing[1].append(value)
            else:
                self._finish_string()
                growing = self._growing = (path, [value])
            if piece.get("willContinue") is not True:
                self._finish_string()
            return
        self._finish_string()
        self._put(path, value)

    def _finish_string(self) -> None:
        if self._growing is not None:
            path, pieces = self._growing
            self._growing = None
            self._put(path, "".join(pieces))

    def _put(self, path: str, value: Any) -> None:
        steps = _steps(path)
        holder: Any = self._root
        for step, following in pairwise(steps):
            empty: Any = [] if isinstance(following, int) else {}
            holder = _child(holder, step, empty)
        _set(holder, steps[-1], value)


def _steps(path: str) -> list[str | int]:
    steps: list[str | int] = []
    for found in _STEP.finditer(path.removeprefix("$")):
        index = found["index"]
        steps.append(int(index[:9]) if index else found["name"] or found["quoted"] or "")
    if not steps or isinstance(steps[0], int):
        return [path]
    return steps


def _child(holder: Any, step: str | int, empty: Any) -> Any:
    found = _get(holder, step)
    if not isinstance(found, type(empty)):
        _set(holder, step, empty)
        return empty
    return found


def _get(holder: Any, step: str | int) -> Any:
    if isinstance(holder, list):
        items = cast(list[Any], holder)
        return items[step] if isinstance(step, int) and step < len(items) else None
    return holder.get(str(step))


def _set(holder: Any, step: str | int, value: Any) -> None:
    if isinstance(holder, dict):
        holder[str(step)] = value
        return
    items = cast(list[Any], holder)
    if not isinstance(step, int) or step > _MOST_ITEMS:
        raise MalformedStream(f"streamed arguments name the item {step} of a list")
    items.extend([None] * (step + 1 - len(items)))
    items[step] = value
