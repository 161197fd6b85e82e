"""What Gemini's servers reject, with and without the Code Assist envelope."""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolwire.acceptance import limits
from toolwire.acceptance.schemas import gemini_openapi
from toolwire.acceptance.violation import (
    Subject,
    Violation,
    is_number,
    member,
    numbered,
    outside,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import is_list, is_object, list_or_empty, objects_in

_OPAQUE = frozenset({"args", "response", "parametersJsonSchema", "responseJsonSchema", "labels"})
"""Members whose own keys are data."""
_NAMED = frozenset({"properties", "$defs", "defs"})
_DEPTH = 100
"""How deep a request is read."""


def check_envelope(subject: Subject) -> Iterator[Violation]:
    """Yields why Code Assist would reject a request."""
    inner = subject.body.get("request")
    if not is_object(inner):
        yield Violation("request", "Request contains an invalid argument.")
        return
    if not subject.body.get("model"):
        yield Violation("model", "Request contains an invalid argument: model")
    yield from check(msgspec.structs.replace(subject, body=inner))


def check(subject: Subject) -> Iterator[Violation]:
    """Yields why AI Studio or Vertex would reject a request."""
    body = camel_case(subject.body)
    refused = subject.demands.refused_members & body.keys()
    for name in sorted((body.keys() - limits.GEMINI_MEMBERS) | refused):
        words = f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
        yield Violation(name, words)
    contents = contents_of(body)
    if not contents:
        words = "* GenerateContentRequest.contents: contents is not specified"
        yield Violation("contents", words)
    yield from _tools(body, subject)
    for number, content in enumerate(contents):
        yield from _content(content, number, subject)
    yield from _turns(contents)
    if "unsigned" in subject.facts.refused or "gemini-3" in subject.model:
        yield from _signed(contents)
    yield from _config(body, subject)


def camel_case(value: Any, depth: int = _DEPTH) -> Any:
    """Returns the request with names as in the reference; the server takes snake_case too."""
    if depth and is_list(value):
        return [camel_case(item, depth - 1) for item in value]
    if not depth or not is_object(value):
        return value
    found: JsonObject = {}
    for key, item in value.items():
        head, *rest = key.split("_")
        name = key if key == "session_id" else head + "".join(part.title() for part in rest)
        if name in _NAMED and is_object(item):
            found[name] = {inner: camel_case(node, depth - 1) for inner, node in item.items()}
        else:
            found[name] = item if name in _OPAQUE else camel_case(item, depth - 1)
    return found


def contents_of(body: JsonObject) -> list[JsonObject]:
    """Returns the turns; a single one need not be in a list."""
    contents = body.get("contents")
    return [contents] if is_object(contents) else objects_in(contents)


def parts_of(content: JsonObject) -> list[JsonObject]:
    """Returns the parts of a turn; a single one need not be in a list."""
    parts = content.get("parts")
    return [parts] if is_object(parts) else objects_in(parts)


def _tools(body: JsonObject, subject: Subject) -> Iterator[Violation]:
    names: list[str] = []
    tools = body.get("tools")
    for number, tool in numbered([tools] if is_object(tools) else tools):
        for place, declared in numbered(tool.get("functionDeclarations")):
            path = f"tools[{number}].function_declarations[{place}]"
            name = declared.get("name")
            if not isinstance(name, str) or not limits.GEMINI_NAME.fullmatch(name):
                words = f"* GenerateContentRequest.{path}.name: Invalid function name."
                yield Violation(path, words)
            elif name in names:
                yield Violation(path, f"Duplicate function declaration found: {name}")
            names.append(str(name))
            if "parameters" in declared and "parametersJsonSchema" in declared:
                words = f"* {path}: only one of parameters and parameters_json_schema may be set"
                yield Violation(path, words)
            if declared.get("parameters") is not None:
                wrong = gemini_openapi(declared["parameters"], f"{path}.parameters")
                if wrong:
                    yield Violation(f"{path}.parameters", wrong)
    if len(names) > limits.MAX_TOOLS["gemini"]:
        words = f"at most {limits.MAX_TOOLS['gemini']} function declarations are supported"
        yield Violation("tools", words)
    calling = member(body, "toolConfig", "functionCallingConfig")
    mode = str(member(calling, "mode") or "AUTO").upper()
    if member(calling, "allowedFunctionNames") and mode not in ("ANY", "VALIDATED"):
        words = "allowed_function_names should only be set when the mode is ANY or VALIDATED"
        yield Violation("toolConfig", words)


def _content(content: JsonObject, number: int, subject: Subject) -> Iterator[Violation]:
    role = content.get("role", "user") or "user"
    if role not in ("user", "model", "function"):
        yield Violation(f"contents[{number}]", "Please use a valid role: user, model.")
    parts = parts_of(content)
    if not parts:
        words = f"* GenerateContentRequest.contents[{number}].parts: must not be empty."
        yield Violation(f"contents[{number}]", words)
    for place, part in enumerate(parts):
        yield from _part(part, f"contents[{number}].parts[{place}]", str(role), subject)


def _part(part: JsonObject, path: str, role: str, subject: Subject) -> Iterator[Violation]:
    found = sum(name in part for name in limits.GEMINI_DATA)
    if found != 1 and not (found == 0 and "thoughtSignature" in part):
        words = (
            f"* GenerateContentRequest.{path}.data: required oneof field 'data' must have one "
            "initialized field"
        )
        yield Violation(path, words)
    call, response = part.get("functionCall"), part.get("functionResponse")
    if call is not None:
        if role != "model":
            yield Violation(path, "Function call parts must be in a model turn.")
        if not member(call, "name"):
            words = f"* GenerateContentRequest.{path}.function_call.name: Name cannot be empty."
            yield Violation(path, words)
    if response is not None:
        if role == "model":
            yield Violation(path, "Function response parts must be in a user turn.")
        if not member(response, "name"):
            words = f"* GenerateContentRequest.{path}.function_response.name: Name cannot be empty."
            yield Violation(path, words)
        if not is_object(member(response, "response")):
            words = f"Invalid value at '{path}.function_response.response' (Struct)"
            yield Violation(path, words)
        if member(response, "parts") and "media" in subject.facts.refused:
            words = "Multimodal function responses are not supported for this model."
            yield Violation(path, words)
    for kind in ("inlineData", "fileData"):
        if is_object(part.get(kind)) and not part[kind].get("mimeType") and kind == "inlineData":
            yield Violation(path, f"{path}.inline_data.mime_type: must be specified")


def _turns(contents: list[JsonObject]) -> Iterator[Violation]:
    waiting: list[JsonObject] = []
    previous = ""
    for number, (role, parts) in enumerate(_merged(contents)):
        where = f"contents[{number}]"
        calls = [part["functionCall"] for part in parts if is_object(part.get("functionCall"))]
        answers = [
            part["functionResponse"] for part in parts if is_object(part.get("functionResponse"))
        ]
        yield from _answers(waiting, answers, where)
        if calls and previous != "user":
            words = (
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
            yield Violation(where, words)
        waiting, previous = calls, role
    if waiting:
        words = "Please ensure that function call turn is followed by a function response turn."
        yield Violation("contents", words)


def _merged(contents: list[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Returns the turns: consecutive contents of one role are merged."""
    turns: list[tuple[str, list[JsonObject]]] = []
    for content in contents:
        role = "model" if content.get("role") == "model" else "user"
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(parts_of(content))
        else:
            turns.append((role, list(parts_of(content))))
    return turns


def _answers(
    waiting: list[JsonObject], answers: list[JsonObject], where: str
) -> Iterator[Violation]:
    if answers and not waiting:
        words = (
            "Please ensure that function response turn comes immediately after a function call "
            "turn."
        )
        yield Violation(where, words)
    elif len(answers) != len(waiting):
        words = (
            "Please ensure that the number of function response parts is equal to the number of "
            "function call parts of the function call turn."
        )
        yield Violation(where, words)
    else:
        for call, answer in zip(waiting, answers, strict=True):
            named, given = (
                (call.get("name"), call.get("id")),
                (answer.get("name"), answer.get("id")),
            )
            if named != given:
                words = (
                    f"function response {given[0]} ({given[1]}) does not answer "
                    f"{named[0]} ({named[1]})"
                )
                yield Violation(where, words)


def _signed(contents: list[JsonObject]) -> Iterator[Violation]:
    """Checks every step of the current turn: the one after the user's last message."""
    start = 0
    for number, content in enumerate(contents):
        words = any("text" in part for part in parts_of(content))
        if content.get("role", "user") == "user" and words:
            start = number
    for number, content in enumerate(contents[start:], start):
        calls = [part for part in parts_of(content) if is_object(part.get("functionCall"))]
        if calls and "thoughtSignature" not in calls[0]:
            yield Violation(
                f"contents[{number}]",
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly. Additional data, function call "
                f"`default_api:{calls[0]['functionCall'].get('name')}`, position {number}.",
            )


def _config(body: JsonObject, subject: Subject) -> Iterator[Violation]:
    config, facts = body.get("generationConfig"), subject.facts
    if not is_object(config):
        return
    thinking = config.get("thinkingConfig")
    budget, level = member(thinking, "thinkingBudget"), member(thinking, "thinkingLevel")
    if budget is not None and level is not None:
        words = "You can only set only one of thinking budget and thinking level."
        yield Violation("generationConfig.thinkingConfig", words)
    if facts.thinking is False and (budget or level):
        words = "Thinking is not enabled for this model."
        yield Violation("generationConfig.thinkingConfig", words)
    stops, most = len(list_or_empty(config.get("stopSequences"))), limits.MAX_STOPS["gemini"]
    if stops > most:
        words = f"The number of stop sequences must be at most {most}, got {stops}."
        yield Violation("generationConfig.stopSequences", words)
    for name, value, _ in outside(config, limits.GEMINI_BOUNDS):
        words = f"* GenerateContentRequest.generation_config.{name}: {value} is out of range"
        yield Violation(f"generationConfig.{name}", words)
    output = config.get("maxOutputTokens")
    if is_number(output) and (output < 1 or (facts.output and output > facts.output)):
        place = "* GenerateContentRequest.generation_config.max_output_tokens"
        yield Violation("generationConfig.maxOutputTokens", f"{place}: {output} is out of range")
    yield from _output(body, config, subject)


def _output(body: JsonObject, config: JsonObject, subject: Subject) -> Iterator[Violation]:
    schema = config.get("responseSchema")
    if schema is not None and config.get("responseJsonSchema") is not None:
        words = "only one of response_schema and response_json_schema may be set"
        yield Violation("generationConfig.responseSchema", words)
    if schema is not None:
        wrong = gemini_openapi(schema, "generation_config.response_schema")
        if wrong:
            yield Violation("generationConfig.responseSchema", wrong)
    kind = config.get("responseMimeType")
    declared = any(tool.get("functionDeclarations") for tool in objects_in(body.get("tools")))
    if kind == "application/json" and declared and "tools+json" in subject.facts.refused:
        words = f"Function calling with a response mime type: '{kind}' is unsupported"
        yield Violation("generationConfig.responseMimeType", words)
