"""Gemini Code Assist, as gemini-cli uses it after a personal login."""

import msgspec

from toolwire.providers import google
from toolwire.providers._spec import OAuth, Provider

_QUIRKS = msgspec.structs.replace(google.QUIRKS, send_made_ids=True)

PROVIDER = Provider(
    faithful=True,
    name="code-assist",
    title="Gemini Code Assist",
    dialect="code-assist",
    base_url="https://cloudcode-pa.googleapis.com",
    base_url_env=("CODE_ASSIST_ENDPOINT",),
    auth=OAuth(
        flow="code-assist",
        env=("GOOGLE_CLOUD_ACCESS_TOKEN",),
        terms="Google's terms forbid other software to use the login and backend of Gemini CLI, "
        "and accounts that do may be suspended. For other programs Google offers the Gemini API "
        "with a key, and Vertex AI. This stays off unless you configure it yourself.",
    ),
    quirks=_QUIRKS,
    reasons=(
        *google.REASONS,
        ("send_made_ids", "the server takes ids it did not issue, and pairs calls by them"),
    ),
    rules=google.older_rules(_QUIRKS),
    json_schema_output=True,
    default_model="gemini-2.5-pro",
    own_models=("gemini-*",),
    docs="https://developers.google.com/gemini-code-assist",
)
