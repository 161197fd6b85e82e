"""Hugging Face's router to hosts of open models. Chat; `model:host` picks the host."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)

PROVIDER = Provider(
    name="huggingface",
    title="Hugging Face",
    dialect="openai-chat",
    base_url="https://router.huggingface.co/v1",
    auth=ApiKey(env=("HF_TOKEN",), url="https://huggingface.co/settings/tokens"),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=family_rules(_QUIRKS),
    default_model="openai/gpt-oss-120b",
    docs="https://huggingface.co/docs/inference-providers",
)
