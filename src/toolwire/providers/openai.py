"""OpenAI. Asked through Responses, where thinking survives from call to call."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._spec import ApiKey, ModelRule, Provider

_PLAIN = Quirks(max_tokens_field="max_completion_tokens", strict_tools=True)
_THINKING = msgspec.structs.replace(_PLAIN, system_role="developer", sampling=False)
_REASONING = msgspec.structs.replace(_THINKING, encrypted_reasoning=True)

PROVIDER = Provider(
    faithful=True,
    name="openai",
    title="OpenAI",
    dialect="openai-responses",
    base_url="https://api.openai.com/v1",
    base_url_env=("OPENAI_BASE_URL",),
    other_dialects=(("openai-chat", "https://api.openai.com/v1"),),
    auth=ApiKey(env=("OPENAI_API_KEY",), url="https://platform.openai.com/api-keys"),
    quirks=_THINKING,
    reasons=(
        ("max_tokens_field", "in chat, reasoning models reject `max_tokens`; all take this one"),
        ("strict_tools", "`strict` on a tool is understood"),
        ("system_role", "in chat, reasoning models expect instructions in the developer role"),
        ("sampling", "o-series, gpt-5 and later answer 400 to temperature and top_p"),
    ),
    rules=(
        ModelRule(pattern="gpt-*-chat*", reason="the chat models do not reason", quirks=_PLAIN),
        ModelRule(
            pattern="gpt-[34]*", reason="before the reasoning models: sampling works", quirks=_PLAIN
        ),
        ModelRule(
            pattern="chatgpt-4o*",
            reason="a chat model; it takes no tools",
            quirks=_PLAIN,
            native_tools=False,
        ),
        ModelRule(
            pattern="ft:gpt-[34]*", reason="tuned from models that take sampling", quirks=_PLAIN
        ),
        *(
            ModelRule(
                pattern=pattern,
                reason="reasons: through Responses its reasoning comes encrypted and is sent back",
                quirks=_REASONING,
            )
            for pattern in ("o[1-9]*", "gpt-[5-9]*", "codex-*")
        ),
    ),
    json_schema_output=True,
    default_model="gpt-5.6",
    own_models=("gpt-[3456]*", "o[134]*", "chatgpt-*", "ft:gpt-*"),
    docs="https://platform.openai.com/docs/api-reference/responses",
)
