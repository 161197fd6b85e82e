"""Cerebras. Chat; tools must agree on `strict`."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(
    max_tokens_field="max_completion_tokens",
    tool_choices=CHOICES,
    strict_tools=True,
    strict_all_or_none=True,
)

PROVIDER = Provider(
    name="cerebras",
    title="Cerebras",
    dialect="openai-chat",
    base_url="https://api.cerebras.ai/v1",
    auth=ApiKey(env=("CEREBRAS_API_KEY",), url="https://cloud.cerebras.ai"),
    quirks=_QUIRKS,
    reasons=(
        ("max_tokens_field", "the server names its limit so"),
        NO_SUBSET,
        ("strict_tools", "`strict` on a tool is understood"),
        ("strict_all_or_none", "a mix of strict and other tools is answered with 422"),
    ),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    schema_beside_tools=False,
    default_model="gpt-oss-120b",
    docs="https://inference-docs.cerebras.ai",
)
