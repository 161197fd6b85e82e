"""What the Responses server rejects."""

from collections.abc import Iterator
from typing import Any

from toolwire.acceptance import limits
from toolwire.acceptance.openai_chat import (
    effort,
    mentions_json,
    output_schema,
    refused_settings,
    schema_of_tool,
    too_many_tools,
)
from toolwire.acceptance.violation import (
    Subject,
    Violation,
    is_data_url,
    is_number,
    member,
    numbered,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import list_or_empty, objects_in

_CALLS = {"function_call": "function", "custom_tool_call": "custom tool"}
_OUTPUTS = {"function_call_output": "function", "custom_tool_call_output": "custom tool"}
_PARTS = {
    "user": ("input_text", "input_image", "input_file", "input_audio"),
    "system": ("input_text",),
    "developer": ("input_text",),
    "assistant": ("output_text", "refusal"),
}
_STORED = frozenset({"previous_response_id", "conversation", "prompt"})
"""Members that name items which the server has."""
_ITEM_IDS = {"message": "msg", "function_call": "fc", "reasoning": "rs", "custom_tool_call": "ctc"}


def check(subject: Subject) -> Iterator[Violation]:
    """Yields why OpenAI would reject a request."""
    body = subject.body
    named = isinstance(body.get("model"), str) and body["model"]
    if not named and not subject.in_address and "prompt" not in body:
        words = "Missing required parameter: 'model'."
        yield Violation("model", words, code="missing_required_parameter")
    refused = subject.demands.refused_members | limits.CHAT_ONLY_MEMBERS
    unknown = body.keys() - (subject.facts.members or body.keys())
    for name in sorted(unknown | (refused & body.keys())):
        words = f"Unknown parameter: '{name}'."
        yield Violation(name, words, code="unknown_parameter", param=name)
    yield from _tools(body)
    given: Any = body.get("input")
    items = objects_in(given)
    stored = bool(body.keys() & _STORED) or any(
        item.get("type") == "item_reference" for item in items
    )
    if not isinstance(given, str):
        if not items and not stored:
            words = "Missing required parameter: 'input'."
            yield Violation("input", words, code="missing_required_parameter")
        for number, item in enumerate(items):
            yield from _item(item, f"input[{number}]", subject)
        yield from _pairs(items, stored)
        yield from _reasoning(items)
    yield from refused_settings(subject, "max_output_tokens")
    yield from _settings(subject)


def _tools(body: JsonObject) -> Iterator[Violation]:
    yield from too_many_tools(body.get("tools"), "openai-responses")
    for number, tool in numbered(body.get("tools")):
        name = tool.get("name")
        if tool.get("type") not in ("function", "custom"):
            continue
        place = f"tools[{number}].name"
        if not isinstance(name, str) or not limits.TOOL_NAME.fullmatch(name):
            words = f"Missing or invalid required parameter: '{place}'."
            yield Violation(place, words, param=place)
        yield from schema_of_tool(tool, f"tools[{number}]")


def _item(item: JsonObject, path: str, subject: Subject) -> Iterator[Violation]:
    kind = str(item.get("type", "message"))
    if kind == "message":
        yield from _message(item, path)
    elif kind in _CALLS or kind in _OUTPUTS:
        call_id = item.get("call_id")
        where = f"{path}.call_id"
        if not isinstance(call_id, str) or not call_id:
            yield Violation(where, f"Missing required parameter: '{where}'.", param=where)
        elif len(call_id) > limits.MAX_ID:
            words = f"Invalid '{where}': string too long."
            yield Violation(where, words, code="string_above_max_length")
    if kind == "function_call" and not isinstance(item.get("arguments"), str):
        words = f"Invalid type for '{path}.arguments': expected a string"
        yield Violation(f"{path}.arguments", words, code="invalid_type")
    if kind in _CALLS:
        name = item.get("name")
        if not isinstance(name, str) or not limits.TOOL_NAME.fullmatch(name):
            words = f"Invalid '{path}.name': does not match pattern '^[a-zA-Z0-9_-]+$'."
            yield Violation(f"{path}.name", words, code="invalid_value", param=f"{path}.name")
    if kind == "function_result":
        words = (
            f"Invalid value: '{kind}'. Supported values are: 'apply_patch_call', 'function_call', "
            "'function_call_output', 'message', …"
        )
        yield Violation(path, words, code="invalid_value", param=path)
    prefix = _ITEM_IDS.get(kind) if subject.facts.looks_up_items else None
    item_id = item.get("id")
    if prefix and isinstance(item_id, str) and not item_id.startswith(prefix):
        words = f"Invalid '{path}.id': '{item_id}'. Expected an ID that begins with '{prefix}'."
        yield Violation(f"{path}.id", words, code="invalid_value", param=f"{path}.id")


def _message(item: JsonObject, path: str) -> Iterator[Violation]:
    role = item.get("role")
    known = _PARTS.get(role) if isinstance(role, str) else None
    if known is None:
        words = f"Invalid value: '{role}'. Supported values are: 'assistant', 'user', …"
        yield Violation(path, words, param=path)
        return
    for number, part in numbered(item.get("content")):
        kind, where = part.get("type"), f"{path}.content[{number}]"
        if kind not in known:
            names = ", ".join(f"'{name}'" for name in known)
            words = f"Invalid value: '{kind}'. Supported values are: {names}."
            yield Violation(where, words, code="invalid_value", param=where)
        for name in ("image_url", "file_data"):
            data = part.get(name)
            if isinstance(data, str) and not is_data_url(data):
                words = f"Invalid '{where}.{name}'. Expected a base64-encoded data URL."
                yield Violation(f"{where}.{name}", words, code="invalid_value", param=where)


def _pairs(items: list[JsonObject], stored: bool) -> Iterator[Violation]:
    waiting: list[str] = []
    called: set[str] = set()
    answered: set[str] = set()
    for number, item in enumerate(items):
        kind, call_id = str(item.get("type")), str(item.get("call_id"))
        where = f"input[{number}]"
        if kind in _CALLS:
            if call_id in called:
                yield Violation(where, f"Duplicate item found with call_id {call_id}.")
            called.add(call_id)
            waiting.append(call_id)
        elif kind.endswith("_call"):
            called.add(call_id)
        elif kind in _OUTPUTS:
            what = _OUTPUTS[kind]
            if call_id in waiting:
                waiting.remove(call_id)
                answered.add(call_id)
            elif call_id in answered:
                yield Violation(where, f"Duplicate tool output found for call_id {call_id}.")
            elif call_id not in called and not stored:
                words = f"No tool call found for {what} call output with call_id {call_id}."
                yield Violation(where, words)
    if waiting:
        words = f"No tool output found for function call {waiting[0]}."
        yield Violation("input", words, param="input")


def _reasoning(items: list[JsonObject]) -> Iterator[Violation]:
    for number, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        where = f"input[{number}]"
        if not isinstance(item.get("summary"), list):
            yield Violation(where, f"Missing required parameter: '{where}.summary'.")
        following = items[number + 1] if number + 1 < len(items) else {"role": "user"}
        role, kind = following.get("role"), str(following.get("type", "message"))
        if role in ("user", "system", "developer") or kind.endswith("_output"):
            words = (
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required "
                "following item."
            )
            yield Violation(where, words, param="input")


def _settings(subject: Subject) -> Iterator[Violation]:
    body = subject.body
    most, least = body.get("max_output_tokens"), limits.MIN_OUTPUT_TOKENS
    if is_number(most) and most < least:
        words = (
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= "
            f"{least}, but got {most} instead."
        )
        name = "max_output_tokens"
        yield Violation(name, words, code="integer_below_min_value", param=name)
    encrypted = "reasoning.encrypted_content" in list_or_empty(body.get("include"))
    if encrypted and subject.facts.thinking is False:
        words = "Encrypted content is not supported with this model."
        yield Violation("include", words, param="include")
    yield from effort(subject, member(body, "reasoning", "effort"), "reasoning.effort")
    wanted = member(body, "text", "format")
    kind = member(wanted, "type")
    if kind == "json_schema":
        yield from output_schema(wanted, "text.format")
    if kind == "json_object" and not mentions_json([body.get("input"), body.get("instructions")]):
        words = (
            "Response input messages must contain the word 'json' in some form to use "
            "'text.format' of type 'json_object'."
        )
        yield Violation("text.format", words, param="input")
