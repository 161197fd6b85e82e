"""The scripted model of `toolwire simulate`: every wire format at one address, no network."""

from toolwire.providers._spec import NoAuth, Provider

_ORIGIN = "http://127.0.0.1:8790"

PROVIDER = Provider(
    name="simulator",
    title="Simulator",
    dialect="openai-chat",
    base_url=f"{_ORIGIN}/v1",
    takes_origin=True,
    other_dialects=(
        ("openai-responses", f"{_ORIGIN}/v1"),
        ("anthropic-messages", _ORIGIN),
        ("gemini", f"{_ORIGIN}/v1beta"),
        ("code-assist", _ORIGIN),
    ),
    auth=NoAuth(),
    json_schema_output=True,
    default_model="simulated",
    docs="docs/providers.md",
    local=True,
)
