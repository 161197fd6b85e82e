"""Kilo Code's gateway: OpenRouter's ways at another address."""

from toolwire.providers import openrouter
from toolwire.providers._spec import ApiKey, Provider

PROVIDER = Provider(
    name="kilocode",
    title="Kilo Code gateway",
    dialect="openai-chat",
    base_url="https://api.kilo.ai/api/gateway",
    auth=ApiKey(env=("KILO_API_KEY",), url="https://app.kilo.ai/profile"),
    quirks=openrouter.QUIRKS,
    reasons=openrouter.REASONS,
    default_model="anthropic/claude-sonnet-5",
    docs="https://kilo.ai/docs",
)
