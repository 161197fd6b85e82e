"""SambaNova, a host of open models. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)

PROVIDER = Provider(
    name="sambanova",
    title="SambaNova",
    dialect="openai-chat",
    base_url="https://api.sambanova.ai/v1",
    auth=ApiKey(env=("SAMBANOVA_API_KEY",), url="https://cloud.sambanova.ai/apis"),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    default_model="gpt-oss-120b",
    docs="https://docs.sambanova.ai",
)
