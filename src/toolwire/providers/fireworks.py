"""Fireworks, a host of open models. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES, reasoning_field="reasoning_content")

PROVIDER = Provider(
    name="fireworks",
    title="Fireworks",
    dialect="openai-chat",
    base_url="https://api.fireworks.ai/inference/v1",
    auth=ApiKey(env=("FIREWORKS_API_KEY",), url="https://app.fireworks.ai/settings/users/api-keys"),
    quirks=_QUIRKS,
    reasons=(
        NO_SUBSET,
        (
            "reasoning_field",
            "models that think between calls work better if their thinking is sent back",
        ),
    ),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    default_model="accounts/fireworks/models/gpt-oss-120b",
    docs="https://docs.fireworks.ai",
)
