"""What Gemini's servers reject, with and without the Code Assist envelope."""

import re

from msgspec.structs import replace

from toolwire.request import JsonObject
from toolwire.simulator.seals import call_content
from toolwire.simulator.vendor_rules.asked import Asked, member, numbered, objects, refuse

_FAMILY = "gemini"
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_SKIPS = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
_BODY = frozenset(
    {
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "safetySettings",
        "cachedContent",
        "labels",
        "serviceTier",
        "store",
        "continuationToken",
        "generationConfig",
        "model",
        "session_id",
    }
)
_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)


def check_envelope(asked: Asked) -> None:
    """Raises the error of a request that Code Assist would reject."""
    inner = asked.body.get("request")
    if not isinstance(inner, dict):
        refuse("Request contains an invalid argument.")
    if not asked.body.get("model"):
        refuse("Request contains an invalid argument: model")
    _check(replace(asked, body=inner), own_ids=False)


def check(asked: Asked) -> None:
    """Raises the error of a request that AI Studio or Vertex would reject."""
    _check(asked, own_ids=True)


def _check(asked: Asked, *, own_ids: bool) -> None:
    body = asked.body
    for name in sorted((body.keys() - _BODY) | (asked.demands.refused_members & body.keys())):
        refuse(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    contents = objects(body.get("contents"))
    if not contents:
        refuse("* GenerateContentRequest.contents: contents is not specified")
    _check_tools(body)
    for number, content in numbered(contents):
        if content.get("role", "user") not in ("user", "model"):
            refuse("Please use a valid role: user, model.")
        parts = objects(content.get("parts"))
        if not parts:
            refuse(f"* GenerateContentRequest.contents[{number}].parts: must not be empty.")
        for place, part in enumerate(parts):
            path = f"contents[{number}].parts[{place}]"
            _check_part(part, path, str(content.get("role", "user")), asked)
            if own_ids:
                _check_id(part, path, asked)
    _check_turns(contents)
    if "gemini-3" in asked.model:
        _check_signed(contents)


def _check_tools(body: JsonObject) -> None:
    for number, tool in numbered(body.get("tools")):
        for place, declared in numbered(tool.get("functionDeclarations")):
            path = f"tools[{number}].function_declarations[{place}]"
            name = declared.get("name")
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                refuse(f"* GenerateContentRequest.{path}.name: Invalid function name.")
            if "parameters" in declared and "parametersJsonSchema" in declared:
                refuse(f"* {path}: only one of parameters and parameters_json_schema may be set")
    thinking = ("generationConfig", "thinkingConfig")
    budget = member(body, *thinking, "thinkingBudget")
    if budget is not None and member(body, *thinking, "thinkingLevel") is not None:
        refuse("You can only set only one of thinking budget and thinking level.")


def _check_part(part: JsonObject, path: str, role: str, asked: Asked) -> None:
    found = [name for name in _DATA if name in part]
    if len(found) != 1:
        refuse(
            f"* GenerateContentRequest.{path}.data: required oneof field 'data' must have one "
            "initialized field"
        )
    call, response = part.get("functionCall"), part.get("functionResponse")
    if call is not None:
        if role != "model":
            refuse("Function call parts must be in a model turn.")
        if not member(call, "name"):
            refuse(f"* GenerateContentRequest.{path}.function_call.name: Name cannot be empty.")
    if response is not None:
        if role == "model":
            refuse("Function response parts must be in a user turn.")
        if not member(response, "name"):
            refuse(f"* GenerateContentRequest.{path}.function_response.name: Name cannot be empty.")
        if not isinstance(member(response, "response"), dict):
            refuse(f"Invalid value at '{path}.function_response.response' (Struct)")
        if member(response, "parts") and "gemini-3" not in asked.model:
            refuse("Multimodal function responses are not supported for this model.")
    _check_signature(part, path, asked)


def _check_signature(part: JsonObject, path: str, asked: Asked) -> None:
    signature = part.get("thoughtSignature")
    if signature is None or signature in _SKIPS:
        return
    call = part.get("functionCall")
    content = call_content(call["name"], call.get("args", {})) if call is not None else None
    # A field of bytes: Google's own SDK sends it back as URL-safe base64.
    token = str(signature).replace("-", "+").replace("_", "/")
    wrong = asked.seals.wrong(token, _FAMILY, asked.model, content)
    if wrong:
        refuse(f"{path}: Thought signature is not valid: {wrong}")


def _check_id(part: JsonObject, path: str, asked: Asked) -> None:
    call_id = member(part, "functionCall", "id")
    if call_id is not None and asked.seals.thoughts(str(call_id)) is None:
        refuse(f"{path}.function_call.id: no call of that id was made by this model")


def _check_turns(contents: list[JsonObject]) -> None:
    waiting: list[JsonObject] = []
    previous = ""
    for content in contents:
        parts = objects(content.get("parts"))
        role = str(content.get("role", "user"))
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if answers and not waiting:
            refuse(
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        if len(answers) != len(waiting):
            refuse(
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        for call, answer in zip(waiting, answers, strict=True):
            if call["name"] != answer["name"] or call.get("id") != answer.get("id"):
                refuse(
                    f"function response {answer['name']} ({answer.get('id')}) does not answer "
                    f"{call['name']} ({call.get('id')})"
                )
        if calls and previous != "user":
            refuse(
                "Please ensure that function call turn comes immediately after a user turn or "
                "after a function response turn."
            )
        waiting, previous = calls, role
    if waiting:
        refuse("Please ensure that function call turn is followed by a function response turn.")


def _check_signed(contents: list[JsonObject]) -> None:
    """Checks every step of the current turn: the one after the user's last message."""
    start = 0
    for number, content in enumerate(contents):
        words = any("text" in part for part in objects(content.get("parts")))
        if content.get("role", "user") == "user" and words:
            start = number
    for number, content in enumerate(contents[start:], start):
        calls = [part for part in objects(content.get("parts")) if "functionCall" in part]
        if calls and "thoughtSignature" not in calls[0]:
            refuse(
                "Function call is missing a thought_signature in functionCall parts. This is "
                "required for tools to work correctly. Additional data, function call "
                f"`default_api:{calls[0]['functionCall']['name']}`, position {number}."
            )
