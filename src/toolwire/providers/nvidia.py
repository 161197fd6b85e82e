"""NVIDIA's hosted NIM, a host of open models. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)

PROVIDER = Provider(
    name="nvidia",
    title="NVIDIA NIM",
    dialect="openai-chat",
    base_url="https://integrate.api.nvidia.com/v1",
    auth=ApiKey(env=("NVIDIA_API_KEY",), url="https://build.nvidia.com"),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=family_rules(_QUIRKS),
    default_model="openai/gpt-oss-120b",
    docs="https://docs.api.nvidia.com/nim",
)
