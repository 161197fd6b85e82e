"""OpenRouter. Chat; thinking arrives as `reasoning_details` and is sent back unchanged."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET
from toolwire.providers._spec import ApiKey, Provider

QUIRKS = Quirks(tool_choices=CHOICES, cache_marks=True)
REASONS = (
    NO_SUBSET,
    ("cache_marks", "Claude and Gemini behind it cache what `cache_control` marks"),
)

PROVIDER = Provider(
    name="openrouter",
    title="OpenRouter",
    dialect="openai-chat",
    base_url="https://openrouter.ai/api/v1",
    auth=ApiKey(
        env=("OPENROUTER_API_KEY",),
        url="https://openrouter.ai/settings/keys",
        login="openrouter",
    ),
    headers=(("X-Title", "toolwire"),),
    quirks=QUIRKS,
    reasons=REASONS,
    default_model="anthropic/claude-sonnet-5",
    docs="https://openrouter.ai/docs",
)
