"""Shared by hosts of open models: supported tool choices and rules per model family."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._spec import ModelRule

CHOICES = frozenset({"auto", "none", "required", "named"})
WORDS = frozenset({"auto", "none", "required"})
NO_SUBSET = (
    "tool_choices",
    "`allowed_tools` is OpenAI's own; this server knows auto, none, required and a named function",
)

_THINKS = "thinks between <think> tags in its text where the host does not take them out"

# Pattern, whether it thinks in its text, the format in which it prints calls. First match applies.
_FAMILIES: tuple[tuple[str, bool, str], ...] = (
    ("*qwen3-coder*", False, "qwen3-coder"),
    ("*qwen3*instruct*", False, "hermes"),
    ("*qwen3*", True, "hermes"),
    ("*qwq*", True, "hermes"),
    ("*qwen2.5*", False, "hermes"),
    ("*hermes*", False, "hermes"),
    ("*deepseek-r1*", True, "deepseek"),
    ("*deepseek-v3.2*", False, "dsml"),
    ("*deepseek-v4*", False, "dsml"),
    ("*deepseek-v3*", False, "deepseek"),
    ("*kimi-k2-thinking*", True, "kimi"),
    ("*kimi-k2*", False, "kimi"),
    ("*gpt-oss*", False, "harmony"),
    ("*nemotron*", True, ""),
    ("*llama-4*", False, "pythonic"),
    ("*llama-3*", False, "llama"),
    ("*llama3*", False, "llama"),
    ("*glm-[45]*", False, "glm"),
    ("*minimax-m2*", False, "minimax"),
    ("*mistral*", False, "mistral"),
    ("*granite*", False, "granite"),
    ("*thinking*", True, ""),
)


def family_rules(base: Quirks) -> tuple[ModelRule, ...]:
    """Returns rules for model families where the host's parser is missing or fails."""
    tagged = msgspec.structs.replace(base, think_tag="think")
    return tuple(
        ModelRule(
            pattern=pattern,
            reason=_reason(thinks, form),
            quirks=tagged if thinks else None,
            leaked=(form,) if form else (),
        )
        for pattern, thinks, form in _FAMILIES
    )


def _reason(thinks: bool, form: str) -> str:
    habits = [_THINKS] if thinks else []
    if form:
        habits.append(f"prints calls in the format `{form}` where the host misses them")
    return "; ".join(habits)
