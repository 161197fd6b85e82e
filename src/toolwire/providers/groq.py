"""Groq. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(max_tokens_field="max_completion_tokens", tool_choices=CHOICES)

PROVIDER = Provider(
    name="groq",
    title="Groq",
    dialect="openai-chat",
    base_url="https://api.groq.com/openai/v1",
    other_dialects=(("openai-responses", "https://api.groq.com/openai/v1"),),
    auth=ApiKey(env=("GROQ_API_KEY",), url="https://console.groq.com/keys"),
    quirks=_QUIRKS,
    reasons=(("max_tokens_field", "`max_tokens` is deprecated here"), NO_SUBSET),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    schema_beside_tools=False,
    default_model="openai/gpt-oss-120b",
    docs="https://console.groq.com/docs",
)
