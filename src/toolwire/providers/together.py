"""Together AI, a host of open models. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)

PROVIDER = Provider(
    name="together",
    title="Together AI",
    dialect="openai-chat",
    base_url="https://api.together.xyz/v1",
    auth=ApiKey(env=("TOGETHER_API_KEY",), url="https://api.together.ai/settings/api-keys"),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    default_model="openai/gpt-oss-120b",
    docs="https://docs.together.ai",
)
