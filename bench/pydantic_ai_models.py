"""pydantic-ai's model for each wire format, pointed at the loopback provider."""

from pydantic_ai.models import Model


def connect(base: str, wire: str, model: str, key: str) -> Model:
    """The model that speaks that wire format."""
    if wire == "anthropic":
        return _anthropic(base, model, key)
    if wire == "gemini":
        return _google(base, model, key)
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{base}/v1", api_key=key)
    kind = OpenAIChatModel if wire == "chat" else OpenAIResponsesModel
    return kind(model, provider=provider)


def _anthropic(base: str, model: str, key: str) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(base_url=base, api_key=key, max_retries=0)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))


def _google(base: str, model: str, key: str) -> Model:
    from google.genai import Client
    from google.genai.types import HttpOptions
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    client = Client(api_key=key, http_options=HttpOptions(base_url=base))
    return GoogleModel(model, provider=GoogleProvider(client=client))
