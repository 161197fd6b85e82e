"""Wire structs, constants and typed access to JSON that both directions share.

A chunk with an unknown member does not fit the structs and is read member by member instead, so
that nothing in it is lost.
"""

import re
from functools import cache
from typing import Any, TypeAlias, TypeGuard

import msgspec

from toolwire.messages import Role
from toolwire.request import Effort, JsonObject

NAME = "gemini"
"""The family's name in seals and kept members: Code Assist speaks the same in an envelope."""
DECLARATIONS = "functionDeclarations"
JSON_SCHEMA = "parametersJsonSchema"
OPENAPI = "parameters"
SIGNATURE = "thoughtSignature"
INLINE = "inlineData"
FILE = "fileData"
GENERATION = "generationConfig"
PLAIN = (
    ("temperature", "temperature", (int, float)),
    ("topP", "top_p", (int, float)),
    ("topK", "top_k", (int, float)),
    ("maxOutputTokens", "max_output_tokens", (int,)),
    ("frequencyPenalty", "frequency_penalty", (int, float)),
    ("presencePenalty", "presence_penalty", (int, float)),
    ("seed", "seed", (int,)),
)
"""Wire name, our name and the kinds of number it may be."""

MODES = {"AUTO": "auto", "VALIDATED": "auto", "ANY": "required", "NONE": "none"}
MODE_NUMBERS = (None, "AUTO", "ANY", "NONE", "VALIDATED")
LEVELS = {
    "MINIMAL": Effort.MINIMAL,
    "LOW": Effort.LOW,
    "MEDIUM": Effort.MEDIUM,
    "HIGH": Effort.HIGH,
}
JSON_TYPE = "application/json"
ANY_BUDGET = -1
"""The model decides how much it thinks."""
MODE_FOR = {"auto": "AUTO", "required": "ANY", "none": "NONE"}
_ROLES: dict[str, Role] = {"model": "assistant", "assistant": "assistant", "system": "system"}
USUAL_ROLE = {"user": "user", "assistant": "model", "system": "system"}


def is_object(value: Any) -> TypeGuard[JsonObject]:
    """Whether the value is an object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether the value is a list."""
    return isinstance(value, list)


def listed(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if is_list(value) else []


def whole_number(value: Any) -> int | None:
    """The value if it is a whole number; true and false are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


NOTHING = msgspec.Raw(b"")


class Call(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A whole call."""

    name: str
    args: msgspec.Raw = NOTHING
    id: str | None = None


class Part(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Text, thought or call, any of them signed."""

    text: str | None = None
    thought: bool | None = None
    functionCall: Call | None = None
    thoughtSignature: str | None = None


class Content(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """New parts."""

    parts: list[Part] | None = None
    role: str | None = None


class Candidate(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The answer; there is one unless more were asked for."""

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
"""What msgspec raises for bytes that are not the JSON asked for."""


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
    """The same, or None if there is no object."""
    if raw is None or bytes(raw)[:1] != b"{":
        return None
    return members(raw)


def items(raw: msgspec.Raw | None) -> list[msgspec.Raw]:
    """The items of a list; an object stands for a list of one, anything else for none."""
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
    """The value itself."""
    return None if raw is None else _any(raw)


def words(raw: msgspec.Raw | None) -> str | None:
    """The value if it is a string."""
    found = value(raw)
    return found if isinstance(found, str) else None


def text_of(raw: msgspec.Raw) -> str:
    """The JSON text as it came."""
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


def mode_of(word: Any) -> str | None:
    """Our mode for a wire mode in words or as a number; None for one we do not know."""
    if isinstance(word, int) and 0 <= word < len(MODE_NUMBERS):
        word = MODE_NUMBERS[word]
    return MODES.get(word.upper()) if isinstance(word, str) else None


def role_of(word: Any) -> Role:
    """Our role for a wire role; whatever is no model and no system is the user."""
    return _ROLES.get(word, "user") if isinstance(word, str) else "user"
