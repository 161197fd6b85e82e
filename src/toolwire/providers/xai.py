"""xAI. Chat; a call arrives complete in one chunk."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET
from toolwire.providers._spec import ApiKey, Provider

PROVIDER = Provider(
    name="xai",
    title="xAI",
    dialect="openai-chat",
    base_url="https://api.x.ai/v1",
    other_dialects=(("openai-responses", "https://api.x.ai/v1"),),
    auth=ApiKey(env=("XAI_API_KEY",), url="https://console.x.ai"),
    quirks=Quirks(tool_choices=CHOICES),
    reasons=(NO_SUBSET,),
    json_schema_output=True,
    default_model="grok-4.7",
    own_models=("grok-*",),
    docs="https://docs.x.ai",
)
