"""DeepSeek. Chat; thinking arrives in `reasoning_content` and must be sent back with calls."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES
from toolwire.providers._spec import ApiKey, ModelRule, Provider

_QUIRKS = Quirks(
    reasoning_field="reasoning_content",
    tool_choices=frozenset({"auto", "none"}),
    adaptive_thinking=False,
)

PROVIDER = Provider(
    name="deepseek",
    title="DeepSeek",
    dialect="openai-chat",
    base_url="https://api.deepseek.com",
    other_dialects=(("anthropic-messages", "https://api.deepseek.com/anthropic"),),
    auth=ApiKey(env=("DEEPSEEK_API_KEY",), url="https://platform.deepseek.com/api_keys"),
    quirks=_QUIRKS,
    reasons=(
        (
            "reasoning_field",
            'a call without its thinking is answered "reasoning_content must be passed back"',
        ),
        (
            "tool_choices",
            'thinking is on by default, and then "does not support this tool_choice" comes back '
            "for required and a named function",
        ),
        ("adaptive_thinking", "in Anthropic's format, thinking is only switched on or off"),
    ),
    rules=(
        ModelRule(
            pattern="deepseek-chat",
            reason="does not think: a forced choice works",
            quirks=msgspec.structs.replace(_QUIRKS, tool_choices=CHOICES),
        ),
    ),
    default_model="deepseek-v4-pro",
    own_models=("deepseek-v4*", "deepseek-chat", "deepseek-reasoner"),
    docs="https://api-docs.deepseek.com",
)
