"""What Chat Completions servers reject."""

import re
from typing import Any

import msgspec

from toolwire.request import JsonObject
from toolwire.simulator.seals import call_content
from toolwire.simulator.vendor_rules.asked import Asked, member, numbered, objects, refuse

_FAMILY = "openai-chat"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_MAX_ID = 64
_arguments = msgspec.json.Decoder(dict[str, Any])


def check(asked: Asked) -> None:
    """Raises the error of a request that OpenAI or the server's demands would reject."""
    body = asked.body
    if not isinstance(body.get("model"), str) or not body["model"]:
        refuse("you must provide a model parameter")
    if not objects(body.get("messages")):
        refuse("Invalid 'messages': empty array. Expected an array with minimum length 1.")
    for name in sorted(asked.demands.refused_members & body.keys()):
        refuse(f"Unrecognized request argument supplied: {name}", param=name)
    _check_tools(asked)
    for number, message in numbered(body["messages"]):
        _check_message(message, f"messages.[{number}]", asked)
    _check_pairs(asked)


def _check_tools(asked: Asked) -> None:
    body = asked.body
    if "tools" in body and not objects(body["tools"]):
        refuse("Invalid 'tools': empty array. Expected an array with minimum length 1.")
    if "tools" not in body:
        for name in ("tool_choice", "parallel_tool_calls"):
            if name in body:
                refuse(f"'{name}' is only allowed when 'tools' are specified.", param=name)
    choices, choice = asked.demands.tool_choices, body.get("tool_choice")
    word = choice if isinstance(choice, str) else "named"
    if choices is not None and choice is not None and word not in choices:
        refuse(f"tool_choice {choice!r} is not supported", param="tool_choice")
    for number, tool in numbered(body.get("tools")):
        kind = tool.get("type")
        name = member(tool, kind, "name") if kind in ("function", "custom") else None
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            place = f"tools[{number}].{kind}.name"
            refuse(f"Invalid '{place}': does not match pattern '^[a-zA-Z0-9_-]+$'.", param=place)


def _check_message(message: JsonObject, path: str, asked: Asked) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        refuse(f"Invalid value: '{role}'. Supported values are: 'system', 'user', …", param=path)
    if role == "assistant":
        _check_assistant(message, path, asked)
        return
    if type(content) not in (str, list):
        refuse(f"Invalid type for '{path}.content': expected a string or a list", param=path)
    if role != "user" and any(part.get("type") != "text" for part in objects(content)):
        refuse(f"Invalid '{path}.content': {role} messages hold text only", param=path)


def _check_assistant(message: JsonObject, path: str, asked: Asked) -> None:
    calls = message.get("tool_calls")
    if "tool_calls" in message and not objects(calls):
        refuse(f"Invalid '{path}.tool_calls': empty array. Expected minimum length 1.", param=path)
    if message.get("content") is None and not calls and not message.get("refusal"):
        refuse(f"Invalid value for 'content': expected a string, got null. ({path})", param=path)
    for call in objects(calls):
        _check_call(call, path, asked)
    _check_thinking(message, path, asked)


def _check_call(call: JsonObject, path: str, asked: Asked) -> None:
    call_id, length = call.get("id"), asked.demands.id_length
    if not isinstance(call_id, str) or not call_id:
        refuse(f"Missing required parameter: '{path}.tool_calls[].id'.", param=path)
    if len(call_id) > _MAX_ID:
        refuse(f"Invalid '{path}.tool_calls[].id': string too long.", param=path)
    if length and not (len(call_id) == length and call_id.isascii() and call_id.isalnum()):
        refuse(
            f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of {length}.",
            code="invalid_function_call",
        )
    kind = call.get("type")
    if kind not in ("function", "custom"):
        refuse(f"Missing required parameter: '{path}.tool_calls[].type'.", param=path)
    name = member(call, kind, "name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        refuse(f"Invalid '{path}.tool_calls[].{kind}.name': {name!r}", param=path)
    if kind == "function":
        _check_arguments(member(call, kind, "arguments"), path)
    signature = member(call, "extra_content", "google", "thought_signature")
    if signature is not None:
        content = call_content(name, member(call, kind, "arguments"))
        wrong = asked.seals.wrong(signature, _FAMILY, asked.model, content)
        if wrong:
            refuse(f"{path}: thought signature is not valid: {wrong}", param=path)


def _check_arguments(arguments: object, path: str) -> None:
    if not isinstance(arguments, str):
        refuse(f"Invalid type for '{path}.tool_calls[].function.arguments': expected a string")
    try:
        _arguments.decode(arguments)
    except msgspec.DecodeError as error:
        # OpenAI itself accepts it; Mistral, Groq and vLLM do not.
        refuse(f"{path}: function.arguments is no JSON object: {error}", param=path)


def _check_thinking(message: JsonObject, path: str, asked: Asked) -> None:
    for detail in objects(message.get("reasoning_details")):
        seal, text = detail.get("data", detail.get("signature")), detail.get("text")
        wrong = asked.seals.wrong(str(seal), _FAMILY, asked.model, text) if seal else ""
        if wrong:
            refuse(f"{path}: reasoning_details could not be verified: {wrong}", param=path)
    calls = objects(message.get("tool_calls"))
    if not calls:
        return
    call_id = calls[0].get("id")
    issued = asked.seals.thoughts(call_id) if isinstance(call_id, str) else None
    sent = message.get("reasoning_content", message.get("reasoning"))
    if sent is None and asked.demands.thinking_back:
        refuse("The `reasoning_content` in the thinking mode must be passed back to the API.")
    if isinstance(sent, str) and issued is not None and sent != issued:
        refuse(f"{path}: reasoning_content is not what was sent beside {call_id}", param=path)


def _check_pairs(asked: Asked) -> None:
    waiting: list[str] = []
    previous = ""
    for number, message in numbered(asked.body["messages"]):
        role = message.get("role")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in waiting:
                refuse(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    f"preceding message with 'tool_calls'. ({call_id})",
                    param=f"messages.[{number}].role",
                )
            waiting.remove(call_id)
        else:
            _refuse_open(waiting, number)
            if previous == "tool" and role == "user" and not asked.demands.user_after_results:
                refuse("Unexpected role 'user' after role 'tool'")
            waiting = [call["id"] for call in objects(message.get("tool_calls"))]
        previous = str(role)
    _refuse_open(waiting, len(asked.body["messages"]))


def _refuse_open(waiting: list[str], number: int) -> None:
    if waiting:
        refuse(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(waiting),
            param=f"messages.[{number}].role",
        )
