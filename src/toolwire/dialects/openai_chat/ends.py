"""Stop reasons and token counts of a chat answer, both ways."""

from typing import Any

from toolwire.events import StopReason, Usage
from toolwire.request import JsonObject
from toolwire.wire.json_access import object_or_empty

_REASONS = {
    "stop": StopReason.END,
    "length": StopReason.LENGTH,
    "tool_calls": StopReason.TOOL_CALLS,
    "function_call": StopReason.TOOL_CALLS,
    "content_filter": StopReason.CONTENT_FILTER,
}
# Values of compatible servers; repeated in the detail.
_OTHER_REASONS = {
    "max_tokens": StopReason.LENGTH,
    "model_length": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "tool_use": StopReason.TOOL_CALLS,
    "safety": StopReason.CONTENT_FILTER,
    "sensitive": StopReason.CONTENT_FILTER,
    "recitation": StopReason.CONTENT_FILTER,
    "refusal": StopReason.REFUSAL,
    "malformed_function_call": StopReason.MALFORMED_CALL,
    "error": StopReason.ERROR,
    "abort": StopReason.ERROR,
    "network_error": StopReason.ERROR,
    "insufficient_system_resource": StopReason.ERROR,
}
_CUT = frozenset({StopReason.LENGTH, StopReason.CONTENT_FILTER, StopReason.ERROR})
_CACHED = (
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "cache_read_input_tokens",
    "num_cached_tokens",
)
"""Spellings of DeepSeek, Moonshot, LiteLLM and Mistral."""
_PLAIN = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
"""Counts of a server without a cache and without reasoning."""
_WORDS = {
    StopReason.END: "stop",
    StopReason.TOOL_CALLS: "tool_calls",
    StopReason.LENGTH: "length",
    StopReason.CONTENT_FILTER: "content_filter",
    StopReason.ERROR: "error",
}


def read_reason(word: str, *, calls: bool, refused: bool) -> tuple[StopReason, str]:
    """The stop reason, and the server's own value if it is not a standard one."""
    detail = ""
    reason = _REASONS.get(word)
    if reason is None:
        detail = word
        lower = word.lower()
        reason = _OTHER_REASONS.get(lower, StopReason.END)
        if "malformed_function_call" in lower:
            reason = StopReason.MALFORMED_CALL
    if reason is StopReason.END and calls:
        return StopReason.TOOL_CALLS, detail
    if reason is StopReason.END and refused:
        return StopReason.REFUSAL, detail
    return reason, detail


def is_cut(word: str) -> bool:
    """Whether the answer was cut off: the call opened last is then incomplete."""
    return read_reason(word, calls=False, refused=False)[0] in _CUT


def write_reason(reason: StopReason, *, refused: bool) -> str:
    """The standard value; for a refusal without text the filter's, or it would look normal."""
    if reason is StopReason.REFUSAL and not refused:
        return "content_filter"
    return _WORDS.get(reason, "stop")


def read_usage(usage: JsonObject | None) -> Usage:
    """The token counts, in any of the spellings that servers use."""
    if not usage:
        return Usage()
    if usage.keys() <= _PLAIN:
        output = _first(usage, "completion_tokens")
        return Usage(input=_first(usage, "prompt_tokens"), output=output)
    prompt = object_or_empty(usage.get("prompt_tokens_details"))
    completion = object_or_empty(usage.get("completion_tokens_details"))
    return Usage(
        input=_first(usage, "prompt_tokens", "input_tokens"),
        output=_first(usage, "completion_tokens", "output_tokens"),
        cached=_either(
            _first(prompt, "cached_tokens"),
            # Servers without a cache send a zero in their own spelling.
            _first(usage, *_CACHED) or None,
        ),
        cache_write=_either(
            _first(prompt, "cache_write_tokens", "cache_creation_tokens"),
            _first(usage, "cache_creation_input_tokens"),
        ),
        reasoning=_either(
            _first(completion, "reasoning_tokens"), _first(usage, "reasoning_tokens")
        ),
        cost=_cost(usage.get("cost")),
    )


def write_usage(usage: Usage) -> JsonObject | None:
    """The token counts as OpenAI writes them: input includes cached, output includes reasoning."""
    if usage == Usage():
        return None
    written: JsonObject = {
        "prompt_tokens": usage.total_input,
        "completion_tokens": usage.total_output,
        "total_tokens": usage.total_input + usage.total_output,
    }
    prompt = {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write}
    prompt = {key: value for key, value in prompt.items() if value is not None}
    if prompt:
        written["prompt_tokens_details"] = prompt
    if usage.reasoning is not None:
        written["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    if usage.cost is not None:
        written["cost"] = usage.cost
    return written


def _first(source: JsonObject, *keys: str) -> int | None:
    for key in keys:
        value = source.get(key)
        if type(value) is int:
            return value
        if value is None or isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if isinstance(value, int) or value.is_integer():
            return int(value)
    return None


def _either(one: int | None, other: int | None) -> int | None:
    return other if one is None else one


def _cost(value: Any) -> float | None:
    if isinstance(value, dict):
        value = object_or_empty(value).get("total_cost")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
