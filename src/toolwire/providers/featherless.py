"""Featherless, a host of very many open models. Chat; native calls only on some."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._open_models import CHOICES, NO_SUBSET, family_rules
from toolwire.providers._spec import ApiKey, ModelRule, Provider

_QUIRKS = Quirks(tool_choices=CHOICES)
_NATIVE = ("*qwen3", "*kimi-k2")


def _rules() -> tuple[ModelRule, ...]:
    return tuple(
        msgspec.structs.replace(
            rule, native_tools=True, reason=f"served with native calls; {rule.reason}"
        )
        if rule.pattern.startswith(_NATIVE)
        else rule
        for rule in family_rules(_QUIRKS)
    )


PROVIDER = Provider(
    name="featherless",
    title="Featherless",
    dialect="openai-chat",
    base_url="https://api.featherless.ai/v1",
    auth=ApiKey(env=("FEATHERLESS_API_KEY",), url="https://featherless.ai/account/api-keys"),
    quirks=_QUIRKS,
    reasons=(NO_SUBSET,),
    rules=_rules(),
    native_tools=False,
    default_model="Qwen/Qwen3-32B",
    docs="https://featherless.ai/docs",
)
