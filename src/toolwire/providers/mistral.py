"""Mistral. Chat with its own rules for ids, turns and the word for a forced call."""

from toolwire.dialects.quirks import Quirks
from toolwire.history import HistoryRules
from toolwire.providers._open_models import CHOICES, NO_SUBSET
from toolwire.providers._spec import ApiKey, Provider

PROVIDER = Provider(
    name="mistral",
    title="Mistral",
    dialect="openai-chat",
    base_url="https://api.mistral.ai/v1",
    auth=ApiKey(env=("MISTRAL_API_KEY",), url="https://console.mistral.ai/api-keys"),
    quirks=Quirks(
        history=HistoryRules(id_characters="a-zA-Z0-9", id_length=9),
        required_word="any",
        tool_choices=CHOICES,
        stream_usage=False,
        assistant_between_results_and_user=True,
    ),
    reasons=(
        ("history", "a call id must be nine letters or digits"),
        ("required_word", "the value is `any`"),
        NO_SUBSET,
        ("stream_usage", "`stream_options` is not known; usage comes with the last chunk"),
        (
            "assistant_between_results_and_user",
            "a user's turn directly after results is answered with 400",
        ),
    ),
    json_schema_output=True,
    default_model="mistral-medium-3.5",
    own_models=("mistral-*", "codestral-*", "ministral-*", "magistral-*", "devstral-*"),
    docs="https://docs.mistral.ai/api",
)
