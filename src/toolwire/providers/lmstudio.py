"""LM Studio on this machine. Chat."""

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import WORDS, family_rules
from toolwire.providers._spec import ApiKey, Provider

_QUIRKS = Quirks(tool_choices=WORDS)

PROVIDER = Provider(
    name="lmstudio",
    title="LM Studio",
    dialect="openai-chat",
    base_url="http://localhost:1234/v1",
    other_dialects=(("openai-responses", "http://localhost:1234/v1"),),
    auth=ApiKey(env=("LMSTUDIO_API_KEY",), optional=True),
    quirks=_QUIRKS,
    reasons=(("tool_choices", "a choice must be a string; an object is answered with 400"),),
    rules=family_rules(_QUIRKS),
    json_schema_output=True,
    schema_beside_tools=False,
    docs="https://lmstudio.ai/docs/developer/openai-compat",
    local=True,
)
