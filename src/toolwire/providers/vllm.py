"""vLLM on this machine or in your own cluster. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)

PROVIDER = Provider(
    name="vllm",
    title="vLLM",
    dialect="openai-chat",
    base_url="http://localhost:8000/v1",
    other_dialects=(("openai-responses", "http://localhost:8000/v1"),),
    auth=ApiKey(env=("VLLM_API_KEY",), optional=True),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    schema_beside_tools=False,
    docs="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
    local=True,
)
