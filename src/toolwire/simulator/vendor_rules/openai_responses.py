"""What the Responses server rejects."""

import re
from typing import Any

from toolwire.request import JsonObject
from toolwire.simulator.vendor_rules.asked import Asked, numbered, objects, refuse

_FAMILY = "openai-responses"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALLS = {"function_call": "function", "custom_tool_call": "custom tool"}
_OUTPUTS = {"function_call_output": "function", "custom_tool_call_output": "custom tool"}
_PARTS = {
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text",),
    "developer": ("input_text",),
    "assistant": ("output_text", "refusal"),
}
_MAX_ID = 64


def check(asked: Asked) -> None:
    """Raises the error of a request that OpenAI would reject."""
    body = asked.body
    if not isinstance(body.get("model"), str) or not body["model"]:
        refuse("Missing required parameter: 'model'.", code="missing_required_parameter")
    for name in sorted(asked.demands.refused_members & body.keys()):
        refuse(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    _check_tools(body)
    given: Any = body.get("input")
    if isinstance(given, str):
        return
    items = objects(given)
    if not items:
        refuse("Missing required parameter: 'input'.", code="missing_required_parameter")
    for number, item in numbered(items):
        _check_item(item, f"input[{number}]", asked)
    _check_pairs(items)
    _check_reasoning(items, asked)


def _check_tools(body: JsonObject) -> None:
    for number, tool in numbered(body.get("tools")):
        name = tool.get("name")
        if tool.get("type") in ("function", "custom") and (
            not isinstance(name, str) or not _NAME.fullmatch(name)
        ):
            place = f"tools[{number}].name"
            refuse(f"Missing or invalid required parameter: '{place}'.", param=place)


def _check_item(item: JsonObject, path: str, asked: Asked) -> None:
    kind = item.get("type", "message")
    if kind == "message":
        _check_message(item, path)
    elif kind in _CALLS or kind in _OUTPUTS:
        call_id = item.get("call_id")
        if not isinstance(call_id, str) or not call_id:
            refuse(f"Missing required parameter: '{path}.call_id'.", param=f"{path}.call_id")
        if len(call_id) > _MAX_ID:
            refuse(f"Invalid '{path}.call_id': string too long.", code="string_above_max_length")
    if kind == "function_call" and not isinstance(item.get("arguments"), str):
        refuse(f"Invalid type for '{path}.arguments': expected a string", code="invalid_type")
    if kind == "function_result":
        refuse(
            f"Invalid value: '{kind}'. Supported values are: 'apply_patch_call', 'function_call', "
            "'function_call_output', 'message', …",
            code="invalid_value",
            param=path,
        )


def _check_message(item: JsonObject, path: str) -> None:
    role = item.get("role")
    known = _PARTS.get(role) if isinstance(role, str) else None
    if known is None:
        refuse(f"Invalid value: '{role}'. Supported values are: 'assistant', 'user', …", param=path)
    for number, part in numbered(item.get("content")):
        kind = part.get("type")
        if kind not in known:
            names = ", ".join(f"'{name}'" for name in known)
            refuse(
                f"Invalid value: '{kind}'. Supported values are: {names}.",
                code="invalid_value",
                param=f"{path}.content[{number}]",
            )


def _check_pairs(items: list[JsonObject]) -> None:
    waiting: list[str] = []
    called: set[str] = set()
    for item in items:
        kind, call_id = item.get("type"), str(item.get("call_id"))
        if kind in _CALLS:
            if call_id in called:
                refuse(f"Duplicate item found with call_id {call_id}.")
            called.add(call_id)
            waiting.append(call_id)
        elif kind in _OUTPUTS:
            if call_id not in called:
                what = _OUTPUTS[str(kind)]
                refuse(f"No tool call found for {what} call output with call_id {call_id}.")
            if call_id not in waiting:
                refuse(f"Duplicate tool output found for call_id {call_id}.")
            waiting.remove(call_id)
        elif item.get("role") == "user":
            _refuse_open(waiting)
    _refuse_open(waiting)


def _refuse_open(waiting: list[str]) -> None:
    if waiting:
        refuse(f"No tool output found for function call {waiting[0]}.", param="input")


def _check_reasoning(items: list[JsonObject], asked: Asked) -> None:
    present: set[str] = set()
    for number, item in enumerate(items):
        kind, item_id = item.get("type", "message"), item.get("id")
        if kind == "reasoning":
            _check_seal(item, number, asked)
            following = items[number + 1] if number + 1 < len(items) else {}
            mine = following.get("role") == "assistant" or following.get("type") in _CALLS
            if not mine and following.get("type") != "reasoning":
                refuse(
                    f"Item '{item_id}' of type 'reasoning' was provided without its required "
                    "following item.",
                    param="input",
                )
            present.add(str(item.get("encrypted_content")))
        elif kind in _CALLS and item_id is not None:
            # A call that names its item is looked up, and its reasoning with it.
            for seal in asked.seals.beside(str(item.get("call_id"))):
                if seal not in present:
                    refuse(
                        f"Item '{item_id}' of type '{kind}' was provided without its required "
                        "'reasoning' item.",
                        param="input",
                    )


def _check_seal(item: JsonObject, number: int, asked: Asked) -> None:
    data, item_id = item.get("encrypted_content"), item.get("id")
    if not isinstance(item.get("summary"), list):
        refuse(f"Missing required parameter: 'input[{number}].summary'.")
    if not isinstance(data, str):
        refuse(
            f"Item with id '{item_id}' not found. Items are not persisted when `store` is set to "
            "false. Try again with `store` set to true, or remove this item from your input.",
            status=404,
            param="input",
        )
    text = "".join(str(part.get("text", "")) for part in objects(item["summary"]))
    wrong = asked.seals.wrong(data, _FAMILY, asked.model, text)
    if wrong:
        refuse(
            f"The encrypted content for item {item_id} could not be verified. Reason: {wrong}.",
            code="invalid_encrypted_content",
        )
