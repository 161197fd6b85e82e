"""Google AI Studio. Gemini's own format with a key."""

import msgspec

from toolwire.dialects.quirks import Quirks
from toolwire.providers._spec import ApiKey, ModelRule, Provider

QUIRKS = Quirks(media_in_results=True, signature_sentinel="skip_thought_signature_validator")
REASONS = (
    ("media_in_results", "Gemini 3 takes images inside a function response"),
    (
        "signature_sentinel",
        "Gemini 3 answers 400 to a step whose first call has no thought signature, as calls from "
        "other models have none; this documented value skips the check",
    ),
)


def older_rules(base: Quirks) -> tuple[ModelRule, ...]:
    """What models before Gemini 3 take less."""
    older = msgspec.structs.replace(
        base, media_in_results=False, signature_sentinel="", gemini_thinking="budget"
    )
    reason = "before Gemini 3: a thinking budget, media beside the response, signatures optional"
    rules = tuple(
        ModelRule(pattern=pattern, reason=reason, quirks=older)
        for pattern in ("*gemini-1*", "*gemini-2*")
    )
    without_tools = ModelRule(
        pattern="*gemma-3*",
        reason="served without function calling",
        quirks=older,
        native_tools=False,
    )
    return (*rules, without_tools)


PROVIDER = Provider(
    faithful=True,
    name="google",
    title="Google AI Studio",
    dialect="gemini",
    base_url="https://generativelanguage.googleapis.com/v1beta",
    base_url_env=("GOOGLE_GEMINI_BASE_URL",),
    takes_origin=True,
    other_dialects=(("openai-chat", "https://generativelanguage.googleapis.com/v1beta/openai"),),
    auth=ApiKey(
        env=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        header="x-goog-api-key",
        prefix="",
        url="https://aistudio.google.com/apikey",
    ),
    quirks=QUIRKS,
    reasons=REASONS,
    rules=older_rules(QUIRKS),
    json_schema_output=True,
    default_model="gemini-3.5-flash",
    own_models=("gemini-*",),
    docs="https://ai.google.dev/api/generate-content",
)
