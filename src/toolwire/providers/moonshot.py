"""Moonshot (Kimi). Chat; thinking must be sent back, and a forced call and thinking exclude."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES
from toolwire.providers._spec import ApiKey, ModelRule, Provider

_KIMI = Quirks(
    reasoning_field="reasoning_content",
    tool_choices=frozenset({"auto", "none"}),
    sampling=False,
    adaptive_thinking=False,
)

PROVIDER = Provider(
    name="moonshot",
    title="Moonshot",
    dialect="openai-chat",
    base_url="https://api.moonshot.ai/v1",
    other_dialects=(("anthropic-messages", "https://api.moonshot.ai/anthropic"),),
    auth=ApiKey(env=("MOONSHOT_API_KEY",), url="https://platform.kimi.ai/console/api-keys"),
    quirks=_KIMI,
    reasons=(
        ("reasoning_field", "a call without its thinking is answered with 400"),
        ("tool_choices", "a forced choice is answered with 400 while the model thinks"),
        ("sampling", "the platform fixes sampling for every kimi model"),
        ("adaptive_thinking", "in Anthropic's format, thinking is only switched on or off"),
    ),
    rules=(
        ModelRule(
            pattern="kimi-k3*",
            reason="takes a forced choice while it thinks",
            quirks=msgspec.structs.replace(_KIMI, tool_choices=CHOICES),
        ),
        ModelRule(
            pattern="moonshot-v1*",
            reason="does not think, takes sampling, has no forced choice",
            quirks=Quirks(tool_choices=frozenset({"auto", "none"})),
        ),
    ),
    default_model="kimi-k3",
    own_models=("kimi-*",),
    docs="https://platform.kimi.ai/docs",
)
