"""Chutes, a host of open models. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)

PROVIDER = Provider(
    name="chutes",
    title="Chutes",
    dialect="openai-chat",
    base_url="https://llm.chutes.ai/v1",
    auth=ApiKey(env=("CHUTES_API_KEY",), url="https://chutes.ai/app/api"),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=family_rules(_QUIRKS),
    default_model="zai-org/GLM-5.1-TEE",
    docs="https://chutes.ai/docs",
)
