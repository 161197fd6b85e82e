"""What Anthropic's server rejects."""

import re
from typing import Any, cast

from toolwire.request import JsonObject
from toolwire.simulator.vendor_rules.asked import Asked, member, numbered, objects, refuse

_FAMILY = "anthropic-messages"
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_THINKING = ("thinking", "redacted_thinking")
_MAX_MARKS = 4
_SPEAKERS = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}


def check(asked: Asked) -> None:
    """Raises the error of a request that Anthropic would reject."""
    body = asked.body
    on_platform = "rawPredict" in asked.path or "RawPredict" in asked.path
    if not on_platform:
        if "anthropic-version" not in asked.headers:
            refuse("anthropic-version: header is required")
        if not isinstance(body.get("model"), str) or not body["model"]:
            refuse("model: Field required")
    if not isinstance(body.get("max_tokens"), int):
        refuse("max_tokens: Field required")
    for name in sorted(asked.demands.refused_members & body.keys()):
        refuse(f"{name}: Extra inputs are not permitted")
    _check_tools(body)
    messages = objects(body.get("messages"))
    if not messages:
        refuse("messages: at least one message is required")
    turns = _merged(messages)
    if turns[0][0] != "user":
        refuse('messages: first message must use the "user" role')
    for number, (role, blocks) in enumerate(turns):
        for place, block in enumerate(blocks):
            _check_block(block, role, f"messages.{number}.content.{place}", asked)
    _check_pairs(turns)
    _check_last_thinking(turns, asked)
    _check_marks(body)


def _merged(messages: list[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Returns the turns: consecutive messages of one role are merged."""
    turns: list[tuple[str, list[JsonObject]]] = []
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            refuse(f'messages.{number}.role: Input should be "user" or "assistant"')
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = objects(content)
        last = number == len(messages) - 1
        if not blocks and not (last and role == "assistant"):
            refuse(f"messages.{number}: all messages must have non-empty content")
        if role == "system":
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((str(role), blocks))
    return turns


def _check_tools(body: JsonObject) -> None:
    for number, tool in numbered(body.get("tools")):
        name = tool.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            refuse(
                f"tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
            )
        custom = tool.get("type", "custom") == "custom"
        if custom and member(tool, "input_schema", "type") != "object":
            refuse(f"tools.{number}.custom.input_schema.type: Field required")
    kind = member(body, "thinking", "type")
    choice = member(body, "tool_choice", "type")
    if kind in ("enabled", "adaptive") and choice in ("any", "tool"):
        refuse("Thinking may not be enabled when tool_choice forces tool use.")
    budget = member(body, "thinking", "budget_tokens")
    if kind == "enabled" and (not isinstance(budget, int) or budget < 1024):
        refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if kind == "enabled" and budget >= body["max_tokens"]:
        refuse("`max_tokens` must be greater than `thinking.budget_tokens`")


def _check_block(block: JsonObject, role: str, path: str, asked: Asked) -> None:
    kind = block.get("type")
    match kind:
        case "text":
            text = block.get("text")
            if not isinstance(text, str) or not text:
                refuse("messages: text content blocks must be non-empty")
            if not text.strip():
                refuse("messages: text content blocks must contain non-whitespace text")
        case "tool_use":
            _check_call(block, path)
        case "thinking":
            _check_signature(block, path, asked)
        case "redacted_thinking":
            wrong = asked.seals.wrong(str(block.get("data")), _FAMILY, asked.model)
            if wrong:
                refuse(f"{path}: Invalid `data` in `redacted_thinking` block: {wrong}")
        case _:
            pass
    if _SPEAKERS.get(str(kind), role) != role:
        refuse(f"{path}: `{kind}` blocks can only be in `{_SPEAKERS[str(kind)]}` messages")


def _check_call(block: JsonObject, path: str) -> None:
    call_id = block.get("id")
    if not isinstance(call_id, str) or not _ID.fullmatch(call_id):
        refuse(f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
    name = block.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        refuse(f"{path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    if not isinstance(block.get("input"), dict):
        refuse(f"{path}.tool_use.input: Input should be a valid dictionary")


def _check_signature(block: JsonObject, path: str, asked: Asked) -> None:
    signature, text = block.get("signature"), block.get("thinking")
    if not isinstance(signature, str):
        refuse(f"{path}.thinking.signature: Field required")
    if not isinstance(text, str):
        refuse(f"{path}.thinking.thinking: Field required")
    wrong = asked.seals.wrong(signature, _FAMILY, asked.model, text)
    if wrong:
        refuse(f"{path}: Invalid `signature` in `thinking` block: {wrong}")


def _check_pairs(turns: list[tuple[str, list[JsonObject]]]) -> None:
    seen: set[str] = set()
    waiting: list[str] = []
    for number, (_, blocks) in enumerate(turns):
        results = [block for block in blocks if block.get("type") == "tool_result"]
        answered = [str(block.get("tool_use_id")) for block in results]
        for call_id in answered:
            if answered.count(call_id) > 1:
                refuse(
                    f"messages.{number}: each tool_use must have a single result. Found multiple "
                    f"`tool_result` blocks with id: {call_id}"
                )
            if call_id not in waiting:
                refuse(
                    f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{call_id}. Each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message."
                )
        # A result after other content does not count.
        leading = {str(block.get("tool_use_id")) for block in _leading_results(blocks)}
        _refuse_missing([call_id for call_id in waiting if call_id not in leading], number - 1)
        waiting = [str(b["id"]) for b in blocks if b.get("type") == "tool_use"]
        if seen & set(waiting) or len(set(waiting)) < len(waiting):
            refuse(f"messages.{number}: `tool_use` ids must be unique")
        seen |= set(waiting)
    _refuse_missing(waiting, len(turns) - 1)


def _leading_results(blocks: list[JsonObject]) -> list[JsonObject]:
    leading: list[JsonObject] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            break
        leading.append(block)
    return leading


def _refuse_missing(missing: list[str], number: int) -> None:
    if missing:
        refuse(
            f"messages.{number}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )


def _check_last_thinking(turns: list[tuple[str, list[JsonObject]]], asked: Asked) -> None:
    """Checks that in a tool loop the newest assistant turn has its thinking."""
    mode = member(asked.body, "thinking", "type")
    newest = next((blocks for role, blocks in reversed(turns) if role == "assistant"), None)
    answered = turns[-1][0] == "user" and _leading_results(turns[-1][1])
    if newest is None or not answered or mode == "disabled":
        return
    calls = [block for block in newest if block.get("type") == "tool_use"]
    there = [block.get("signature", block.get("data")) for block in newest]
    for call in calls:
        if any(seal not in there for seal in asked.seals.beside(str(call["id"]))):
            refuse(
                "messages: `thinking` or `redacted_thinking` blocks in the latest assistant "
                "message cannot be modified. These blocks must remain as they were in the "
                "original response."
            )
    if mode == "enabled" and newest[0].get("type") not in _THINKING:
        refuse(
            "messages: Expected `thinking` or `redacted_thinking`, but found "
            f"`{newest[0].get('type')}`. When `thinking` is enabled, a final `assistant` message "
            "must start with a thinking block (preceeding the lastmost set of `tool_use` and "
            "`tool_result` blocks)."
        )


def _check_marks(body: JsonObject) -> None:
    count = _marks(body.get("tools")) + _marks(body.get("system")) + _marks(body.get("messages"))
    if count > _MAX_MARKS:
        refuse(
            f"A maximum of {_MAX_MARKS} blocks with cache_control may be provided. Found {count}."
        )


def _marks(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_marks, cast(list[Any], value)))
    if not isinstance(value, dict):
        return 0
    block = cast(JsonObject, value)
    return bool(block.get("cache_control")) + _marks(block.get("content"))
