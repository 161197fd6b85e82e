"""Providers as data, by name: one file each, loaded on first use."""

from importlib import import_module
from typing import cast

from toolwire.errors import BadInput, UnknownName
from toolwire.providers._spec import (
    ApiKey,
    Auth,
    GoogleLogin,
    ModelInfo,
    ModelRule,
    NoAuth,
    OAuth,
    Placeholder,
    Prices,
    Provider,
)
from toolwire.providers.custom import custom

__all__ = [
    "ENTRY_POINTS",
    "ApiKey",
    "Auth",
    "GoogleLogin",
    "ModelInfo",
    "ModelRule",
    "NoAuth",
    "OAuth",
    "Placeholder",
    "Prices",
    "Provider",
    "custom",
    "get",
    "names",
]

ENTRY_POINTS = "toolwire.providers"

# In display order: vendors, gateways, hosts, local servers.
_BUILT_IN = (
    "openai",
    "anthropic",
    "google",
    "vertex",
    "code-assist",
    "azure",
    "copilot",
    "deepseek",
    "xai",
    "zai",
    "mistral",
    "moonshot",
    "qwen",
    "openrouter",
    "kilocode",
    "groq",
    "cerebras",
    "fireworks",
    "featherless",
    "deepinfra",
    "chutes",
    "together",
    "nvidia",
    "huggingface",
    "sambanova",
    "ollama",
    "lmstudio",
    "vllm",
    "llamacpp",
    "local",
    "simulator",
)


def names() -> tuple[str, ...]:
    """Returns the names of the built-in providers without loading them."""
    return _BUILT_IN


def get(name: str) -> Provider:
    """Returns the built-in provider of that name, else one from an installed package."""
    if name in _BUILT_IN:
        return import_module(f"toolwire.providers.{name.replace('-', '_')}").PROVIDER
    return _installed(name)


def _installed(name: str) -> Provider:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and needed only here

    offered = entry_points(group=ENTRY_POINTS)
    if name not in offered.names:
        raise UnknownName("provider", name, (*_BUILT_IN, *sorted(offered.names)))
    entry = offered[name]
    loaded = cast(object, entry.load())
    found = loaded if isinstance(loaded, Provider) else loaded() if callable(loaded) else None
    if not isinstance(found, Provider):
        raise BadInput(f'entry point "{name}" ({entry.value}) returns no Provider; fix its package')
    return found
