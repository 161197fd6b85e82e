"""A client's request body, read into ours with everything needed to write it back."""

from typing import Any

from toolwire.dialects.gemini.config_in import read_generation, read_tool_choice
from toolwire.dialects.gemini.json_kinds import is_list, is_object
from toolwire.dialects.gemini.parts_in import OpenCalls, read_part, wire_ids
from toolwire.dialects.gemini.spelling import NAME, Members, Notes
from toolwire.dialects.gemini.tools_in import read_tools
from toolwire.errors import BadInput
from toolwire.messages import Kept, Message, Part, Role, Text
from toolwire.request import JsonObject, ModelRequest
from toolwire.wire.json_access import obj

_ROLES: dict[str, Role] = {"model": "assistant", "assistant": "assistant", "system": "system"}
USUAL_ROLE = {"user": "user", "assistant": "model", "system": "system"}


def role_of(word: Any) -> Role:
    """Our role for a wire role; whatever is no model and no system is the user."""
    return _ROLES.get(word, "user") if isinstance(word, str) else "user"


def read_request(body: JsonObject, model: str) -> ModelRequest:
    """The request of a `generateContent` body."""
    notes = Notes()
    members = Members(body, notes)
    wire_model = members.take_word("model")
    if wire_model:
        notes.form["model"] = wire_model
        notes.form["model_read"] = wire_model.removeprefix("models/")
    system = _read_system(members.take("systemInstruction"), notes)
    contents = _contents(members.take("contents"), notes)
    messages = _read_contents(contents)
    tools = read_tools(members.take("tools", list, dict), notes)
    choice = read_tool_choice(members.take("toolConfig", dict), notes)
    plain, reasoning, output = read_generation(members.take("generationConfig", dict), notes)
    members.close()
    return ModelRequest(
        model=model or wire_model.removeprefix("models/"),
        messages=messages,
        system=system,
        tools=tools,
        tool_choice=choice,
        reasoning=reasoning,
        output=output,
        kept=notes.kept() or Kept(dialect=NAME),
        **plain,
    )


def _contents(value: Any, notes: Notes) -> list[Any]:
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


def _read_contents(contents: list[Any]) -> tuple[Message, ...]:
    calls = OpenCalls(wire_ids(contents))
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
        read_part(part, f"{path}.parts[{number}]", calls) for number, part in enumerate(value)
    )


def _read_system(value: Any, notes: Notes) -> tuple[Text, ...]:
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
