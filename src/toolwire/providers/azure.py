"""Azure OpenAI. Responses at the v1 address; a model is named by its deployment."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._spec import ApiKey, ModelRule, Placeholder, Provider

_URL = "https://{resource}.openai.azure.com/openai/v1"
_QUIRKS = Quirks(max_tokens_field="max_completion_tokens", strict_tools=True)
_REASONING = msgspec.structs.replace(
    _QUIRKS, system_role="developer", sampling=False, encrypted_reasoning=True
)

PROVIDER = Provider(
    name="azure",
    title="Azure OpenAI",
    dialect="openai-responses",
    base_url=_URL,
    base_url_env=("AZURE_OPENAI_ENDPOINT",),
    takes_origin=True,
    placeholders=(
        Placeholder(name="resource", env=("AZURE_RESOURCE_NAME", "AZURE_OPENAI_RESOURCE")),
    ),
    other_dialects=(("openai-chat", _URL),),
    auth=ApiKey(
        env=("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
        header="api-key",
        prefix="",
        url="https://portal.azure.com",
    ),
    quirks=_QUIRKS,
    reasons=(
        (
            "max_tokens_field",
            "in chat, reasoning models reject `max_tokens`, and all take the new name",
        ),
        ("strict_tools", "`strict` on a tool is understood"),
    ),
    rules=(
        ModelRule(
            pattern="gpt-*-chat*",
            reason="a deployment named after a chat model, which does not reason",
            quirks=_QUIRKS,
        ),
        *(
            ModelRule(
                pattern=pattern,
                reason="a deployment named after a reasoning model: no sampling, developer role, "
                "and reasoning is sent back encrypted",
                quirks=_REASONING,
            )
            for pattern in ("o[1-9]*", "gpt-[5-9]*", "codex-*")
        ),
    ),
    json_schema_output=True,
    docs="https://learn.microsoft.com/azure/ai-foundry/openai/latest",
)
