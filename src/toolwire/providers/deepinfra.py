"""DeepInfra, a host of open models. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)

PROVIDER = Provider(
    name="deepinfra",
    title="DeepInfra",
    dialect="openai-chat",
    base_url="https://api.deepinfra.com/v1/openai",
    auth=ApiKey(env=("DEEPINFRA_API_KEY",), url="https://deepinfra.com/dash/api_keys"),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    default_model="openai/gpt-oss-120b",
    docs="https://deepinfra.com/docs",
)
