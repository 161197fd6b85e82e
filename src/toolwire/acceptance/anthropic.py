"""What Anthropic's server rejects."""

from collections.abc import Iterator
from typing import Any

from toolwire.acceptance import limits
from toolwire.acceptance.schemas import anthropic_output, anthropic_tool
from toolwire.acceptance.violation import (
    Subject,
    Violation,
    is_base64,
    is_number,
    member,
    numbered,
    outside,
)
from toolwire.request import JsonObject
from toolwire.wire.json_access import (
    is_list,
    is_object,
    list_or_empty,
    object_or_empty,
    objects_in,
)

_THINKING = ("thinking", "redacted_thinking")
_SPEAKERS = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
    "image": "user",
    "document": "user",
}
Turn = tuple[str, list[JsonObject]]
"""A role and its blocks."""


def check(subject: Subject) -> Iterator[Violation]:
    """Yields why Anthropic would reject a request."""
    body = subject.body
    if not subject.in_address and (not isinstance(body.get("model"), str) or not body["model"]):
        yield Violation("model", "model: Field required")
    yield from _max_tokens(subject)
    unknown = body.keys() - limits.ANTHROPIC_MEMBERS
    for name in sorted(unknown | (subject.demands.refused_members & body.keys())):
        yield Violation(name, f"{name}: Extra inputs are not permitted")
    yield from _tools(body)
    yield from _thinking(subject)
    messages = objects_in(body.get("messages"))
    if not messages:
        yield Violation("messages", "messages: at least one message is required")
        return
    yield from _roles(messages)
    turns = merged(messages)
    if turns and turns[0][0] != "user":
        yield Violation("messages", 'messages: first message must use the "user" role')
    for number, (role, blocks) in enumerate(turns):
        for place, block in enumerate(blocks):
            yield from _block(block, role, f"messages.{number}.content.{place}")
    yield from _pairs(turns)
    yield from _last_turn(turns, subject)
    yield from _marks(body)
    yield from _settings(subject)


def _max_tokens(subject: Subject) -> Iterator[Violation]:
    value, most = subject.body.get("max_tokens"), subject.facts.output
    if not isinstance(value, int) or isinstance(value, bool):
        yield Violation("max_tokens", "max_tokens: Field required")
    elif value < 0:
        words = "max_tokens: Input should be greater than or equal to 1"
        yield Violation("max_tokens", words)
    elif most and value > most:
        words = (
            f"max_tokens: {value} > {most}, which is the maximum allowed number of output tokens "
            f"for {subject.model}"
        )
        yield Violation("max_tokens", words)


def _roles(messages: list[JsonObject]) -> Iterator[Violation]:
    for number, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant", "system"):
            words = f'messages.{number}.role: Input should be "user" or "assistant"'
            yield Violation(f"messages.{number}", words)
        filled = (isinstance(content, str) and content) or objects_in(content)
        last = number == len(messages) - 1
        if not filled and not (last and role == "assistant"):
            words = f"messages.{number}: all messages must have non-empty content"
            yield Violation(f"messages.{number}", words)


def merged(messages: list[JsonObject]) -> list[Turn]:
    """Returns the turns: consecutive messages of one role are merged."""
    turns: list[Turn] = []
    for message in messages:
        role, content = message.get("role"), message.get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        blocks = objects_in(content)
        if role == "system":
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((str(role), blocks))
    return turns


def _tools(body: JsonObject) -> Iterator[Violation]:
    names: set[object] = set()
    for number, tool in numbered(body.get("tools")):
        name, place = tool.get("name"), f"tools.{number}.custom"
        custom = tool.get("type", "custom") == "custom"
        if custom and (not isinstance(name, str) or not limits.TOOL_NAME.fullmatch(name)):
            words = f"{place}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
            yield Violation(f"tools.{number}.name", words)
        if isinstance(name, str) and name in names:
            yield Violation(f"tools.{number}.name", "tools: Tool names must be unique.")
        names.add(name if isinstance(name, str) else None)
        if not custom:
            continue
        schema = tool.get("input_schema")
        wrong = anthropic_tool(schema)
        if not wrong and tool.get("strict") is True:
            wrong = anthropic_output(schema)
        if wrong:
            yield Violation(f"tools.{number}.input_schema", f"{place}.input_schema.{wrong}")
    if body.get("tool_choice") and not body.get("tools"):
        words = "tool_choice may only be specified while providing tools."
        yield Violation("tool_choice", words)


def _thinking(subject: Subject) -> Iterator[Violation]:
    body = subject.body
    kind = member(body, "thinking", "type")
    if kind not in ("enabled", "adaptive"):
        return
    if subject.facts.thinking is False:
        yield Violation("thinking", f"'{subject.model}' does not support thinking.")
    temperature, top_p = body.get("temperature"), body.get("top_p")
    if is_number(temperature) and temperature != 1:
        words = "`temperature` may only be set to 1 when thinking is enabled."
        yield Violation("temperature", words)
    if is_number(top_p) and top_p < limits.MIN_TOP_P_THINKING:
        words = "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."
        yield Violation("top_p", words)
    if body.get("top_k") is not None:
        yield Violation("top_k", "`top_k` must be unset when thinking is enabled.")
    if kind == "adaptive":
        return
    if member(body, "tool_choice", "type") in ("any", "tool"):
        words = "Thinking may not be enabled when tool_choice forces tool use."
        yield Violation("tool_choice", words)
    budget, most = member(body, "thinking", "budget_tokens"), body.get("max_tokens")
    if not isinstance(budget, int) or budget < limits.MIN_THINKING_BUDGET:
        words = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        yield Violation("thinking.budget_tokens", words)
    elif isinstance(most, int) and budget >= most:
        words = "`max_tokens` must be greater than `thinking.budget_tokens`"
        yield Violation("thinking.budget_tokens", words)


def _block(block: JsonObject, role: str, path: str) -> Iterator[Violation]:
    kind = block.get("type")
    match kind:
        case "text":
            text = block.get("text")
            if not isinstance(text, str) or not text:
                yield Violation(path, "messages: text content blocks must be non-empty")
            elif not text.strip():
                words = "messages: text content blocks must contain non-whitespace text"
                yield Violation(path, words)
        case "tool_use":
            yield from _call(block, path)
        case "thinking":
            if not isinstance(block.get("signature"), str):
                yield Violation(path, f"{path}.thinking.signature: Field required")
            elif not isinstance(block.get("thinking"), str):
                yield Violation(path, f"{path}.thinking.thinking: Field required")
        case "image" | "document":
            yield from _media(block, path)
        case "tool_result":
            for number, inner in numbered(block.get("content")):
                where = f"{path}.content.{number}"
                if inner.get("type") == "text" and not inner.get("text"):
                    yield Violation(where, "messages: text content blocks must be non-empty")
                yield from _media(inner, where)
        case _:
            pass
    if _SPEAKERS.get(str(kind), role) != role:
        words = f"{path}: `{kind}` blocks can only be in `{_SPEAKERS[str(kind)]}` messages"
        yield Violation(path, words)


def _media(block: JsonObject, path: str) -> Iterator[Violation]:
    kind, source = block.get("type"), block.get("source")
    if kind not in ("image", "document") or member(source, "type") != "base64":
        return
    where = f"{path}.{kind}.source.base64"
    known = limits.ANTHROPIC_IMAGES if kind == "image" else {"application/pdf"}
    if str(member(source, "media_type")) not in known:
        names = ", ".join(f"'{name}'" for name in sorted(known))
        yield Violation(path, f"{where}.media_type: Input should be {names}")
    if not is_base64(member(source, "data")):
        yield Violation(path, f"{where}.data: Invalid base64 data")


def _call(block: JsonObject, path: str) -> Iterator[Violation]:
    call_id, name = block.get("id"), block.get("name")
    if not isinstance(call_id, str) or not limits.ANTHROPIC_ID.fullmatch(call_id):
        words = f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        yield Violation(path, words)
    if not isinstance(name, str) or not limits.TOOL_NAME.fullmatch(name):
        words = f"{path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        yield Violation(path, words)
    if not isinstance(block.get("input"), dict):
        yield Violation(path, f"{path}.tool_use.input: Input should be a valid dictionary")


def _pairs(turns: list[Turn]) -> Iterator[Violation]:
    seen: set[str] = set()
    waiting: list[str] = []
    for number, (_, blocks) in enumerate(turns):
        where = f"messages.{number}"
        results = [block for block in blocks if block.get("type") == "tool_result"]
        answered = [str(block.get("tool_use_id")) for block in results]
        for call_id in dict.fromkeys(answered):
            if answered.count(call_id) > 1:
                words = (
                    f"{where}: each tool_use must have a single result. Found multiple "
                    f"`tool_result` blocks with id: {call_id}"
                )
                yield Violation(where, words)
            if call_id not in waiting:
                words = (
                    f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{call_id}. Each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message."
                )
                yield Violation(where, words)
        # A result after other content does not count.
        leading = {str(block.get("tool_use_id")) for block in leading_results(blocks)}
        yield from _missing([one for one in waiting if one not in leading], number - 1)
        waiting = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        if seen & set(waiting) or len(set(waiting)) < len(waiting):
            yield Violation(where, f"{where}: `tool_use` ids must be unique")
        seen |= set(waiting)
        kinds = [block.get("type") for block in blocks]
        if waiting and "text" in kinds[kinds.index("tool_use") :]:
            # Text after a call counts as something between the call and its result.
            yield from _missing(waiting, number)
    yield from _missing(waiting, len(turns) - 1)


def leading_results(blocks: list[JsonObject]) -> list[JsonObject]:
    """Returns the results at the beginning of a turn."""
    leading: list[JsonObject] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            break
        leading.append(block)
    return leading


def _missing(missing: list[str], number: int) -> Iterator[Violation]:
    if missing:
        words = (
            f"messages.{number}: `tool_use` ids were found without `tool_result` blocks "
            f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
            "corresponding `tool_result` block in the next message."
        )
        yield Violation(f"messages.{number}", words)


def _last_turn(turns: list[Turn], subject: Subject) -> Iterator[Violation]:
    """Checks the newest assistant turn: its thinking in a tool loop, and an answer begun for it."""
    if not turns:
        return
    mode = member(subject.body, "thinking", "type")
    newest = next((blocks for role, blocks in reversed(turns) if role == "assistant"), None)
    role, last = turns[-1]
    if newest and role == "user" and leading_results(last) and mode == "enabled":
        kind = newest[0].get("type")
        if kind not in _THINKING:
            words = (
                f"messages: Expected `thinking` or `redacted_thinking`, but found `{kind}`. When "
                "`thinking` is enabled, a final `assistant` message must start with a thinking "
                "block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
            )
            yield Violation("messages", words)
    if role != "assistant" or not last:
        return
    text = last[-1].get("text")
    if isinstance(text, str) and text != text.rstrip():
        words = "messages: final assistant content cannot end with trailing whitespace"
        yield Violation("messages", words)
    server_side = any(str(block.get("type")).startswith("server_tool") for block in last)
    if "prefill" in subject.facts.refused and not server_side:
        words = (
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message."
        )
        yield Violation("messages", words)


def _marks(body: JsonObject) -> Iterator[Violation]:
    count = _count(body.get("tools")) + _count(body.get("system")) + _count(body.get("messages"))
    most = limits.MAX_CACHE_MARKS
    if count > most:
        words = f"A maximum of {most} blocks with cache_control may be provided. Found {count}."
        yield Violation("messages", words)


def _count(value: Any) -> int:
    if is_list(value):
        return sum(map(_count, value))
    if not is_object(value):
        return 0
    return bool(value.get("cache_control")) + _count(value.get("content"))


def _settings(subject: Subject) -> Iterator[Violation]:
    body, facts = subject.body, subject.facts
    for name in ("temperature", "top_p", "top_k"):
        if (
            not facts.sampling
            and body.get(name) is not None
            and (name, body[name]) != ("temperature", 1)
        ):
            yield Violation(name, f"`{name}` is deprecated for this model.")
    for name, value, bound in outside(body, limits.ANTHROPIC_BOUNDS):
        side = "less than" if value > bound else "greater than"
        yield Violation(name, f"{name}: Input should be {side} or equal to {bound:g}")
    both = body.get("temperature") is not None and body.get("top_p") is not None
    if both and "temperature+top_p" in facts.refused:
        words = "`temperature` and `top_p` cannot both be specified for this model."
        yield Violation("top_p", words)
    for number, word in enumerate(list_or_empty(body.get("stop_sequences"))):
        if not str(word).strip():
            words = "stop_sequences: each stop sequence must contain non-whitespace"
            yield Violation(f"stop_sequences.{number}", words)
    for name in object_or_empty(body.get("metadata")).keys() - {"user_id"}:
        yield Violation(f"metadata.{name}", f"metadata.{name}: Extra inputs are not permitted")
    for number, block in numbered(body.get("system")):
        if not block.get("text"):
            yield Violation(f"system.{number}", "system: text content blocks must be non-empty")
    yield from _output(subject)


def _output(subject: Subject) -> Iterator[Violation]:
    config = subject.body.get("output_config")
    wanted = member(config, "format") or subject.body.get("output_format")
    if member(wanted, "type") == "json_schema":
        wrong = anthropic_output(member(wanted, "schema"))
        if wrong:
            yield Violation("output_config.format", f"output_config.format.{wrong}")
    effort, known = member(config, "effort"), subject.facts.efforts
    if effort is not None and known is not None and str(effort) not in known:
        names = ", ".join(sorted(known))
        words = f"This model does not support effort level '{effort}'. Supported levels: {names}."
        yield Violation("output_config.effort", words)
