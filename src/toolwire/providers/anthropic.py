"""Anthropic. Its own format; what older models take beyond the newest is in the rules."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._spec import ApiKey, ModelRule, Provider

_NEWEST = Quirks(sampling=False, default_max_tokens=32000)
_4_6 = msgspec.structs.replace(_NEWEST, sampling=True)
_BUDGET = msgspec.structs.replace(_4_6, adaptive_thinking=False)

RULES = (
    ModelRule(
        pattern="claude-3-[57]*",
        reason="takes sampling, thinks by budget or not at all, and writes at most 8192 tokens",
        quirks=msgspec.structs.replace(_BUDGET, default_max_tokens=8192),
    ),
    ModelRule(
        pattern="claude-3-*",
        reason="takes sampling, does not think, and writes at most 4096 tokens",
        quirks=msgspec.structs.replace(_BUDGET, default_max_tokens=4096),
    ),
    ModelRule(
        pattern="claude-*-4-[015]*",
        reason="takes sampling and thinks by budget",
        quirks=_BUDGET,
    ),
    ModelRule(
        pattern="claude-*-4-2025*", reason="takes sampling and thinks by budget", quirks=_BUDGET
    ),
    ModelRule(pattern="claude-*-4@*", reason="takes sampling and thinks by budget", quirks=_BUDGET),
    ModelRule(
        pattern="claude-*-4-6*", reason="takes sampling and sizes its own thinking", quirks=_4_6
    ),
)

PROVIDER = Provider(
    faithful=True,
    name="anthropic",
    title="Anthropic",
    dialect="anthropic-messages",
    base_url="https://api.anthropic.com",
    base_url_env=("ANTHROPIC_BASE_URL",),
    auth=ApiKey(
        env=("ANTHROPIC_API_KEY",),
        header="x-api-key",
        prefix="",
        url="https://platform.claude.com/settings/keys",
    ),
    quirks=_NEWEST,
    reasons=(
        ("sampling", "from Opus 4.7 on, temperature, top_p and top_k are answered with 400"),
        (
            "default_max_tokens",
            "a limit is required; models since 4 write 32000 and more, and 8192 cuts long edits",
        ),
    ),
    rules=RULES,
    json_schema_output=True,
    default_model="claude-sonnet-5",
    own_models=("claude-*",),
    docs="https://platform.claude.com/docs/en/api/messages",
)
