"""Chooses a session's model: named, configured, by a key, or on this machine."""

from collections.abc import Callable, Mapping

import msgspec

from toolwire import providers
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.providers._spec import ApiKey
from toolwire.providers.custom import NAME, Upstream

_FIRST = ("anthropic", "openai", "google", "openrouter")
"""Tried before the others, which follow in listed order."""


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """A chosen model, the reason, and what is needed to open it."""

    name: str
    """`provider/model`."""
    reason: str
    settings: Settings
    """Settings that include the ad-hoc provider, if there is one."""
    key: str = ""
    style: str = ""


def choose_model(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    model: str = "",
    provider: str = "",
    upstream: Upstream | None = None,
    before: str = "",
) -> Chosen:
    """Returns the model to use; `before` is the session's last one."""
    if upstream is not None:
        own = (*settings.providers, upstream.provider)
        return Chosen(
            name=f"{NAME}/{model or upstream.model}",
            reason="--upstream",
            settings=msgspec.structs.replace(settings, providers=own),
            key=upstream.key,
            style=upstream.style,
        )
    name, reason = _named(settings, model, provider)
    if not name and before and not before.startswith(f"{NAME}/"):
        name, reason = before, "the session used it"
    if not name and settings.default_model:
        name, reason = settings.default_model, "default_model in the settings"
    if not name:
        name, reason = _keyed(environ)
    if not name:
        raise ProviderError(
            ErrorKind.AUTH,
            "no model is configured; set a key such as ANTHROPIC_API_KEY, OPENAI_API_KEY or "
            "GEMINI_API_KEY, name a model with --model provider/model, or set default_model "
            "(toolwire config set default_model …)",
        )
    return Chosen(name=name, reason=reason, settings=settings)


async def choose_here(
    choose: Callable[[], Chosen],
    settings: Settings,
    environ: Mapping[str, str],
    transport: Transport,
    *,
    look: bool = True,
) -> Chosen:
    """Returns the configured model, else one of a running server, else the embedded one. `look`:
    whether to probe for servers.
    """
    try:
        return choose()
    except ProviderError as error:
        if error.kind != ErrorKind.AUTH:
            raise
    from toolwire.embedded.found import find  # noqa: PLC0415 - start-up time
    from toolwire.embedded.machine import fitting, machine  # noqa: PLC0415 - start-up time

    found = await find(transport, environ) if look else None
    if found is not None:
        reason = f"nothing is configured, and {found.title} runs on this machine"
        return Chosen(name=found.name, reason=reason, settings=settings)
    weights = fitting(machine())
    seen = "no model server runs on this machine" if look else "servers were not probed"
    reason = f"nothing is configured, and {seen}"
    return Chosen(name=f"local/{weights.model}", reason=reason, settings=settings)


def _named(settings: Settings, model: str, provider: str) -> tuple[str, str]:
    if not provider:
        return model, "--model" if model else ""
    if model:
        return f"{provider}/{model}", "--provider and --model"
    found = settings.provider(provider)
    if not found.default_model:
        raise BadInput(f"{provider} has no default model; name one with --model")
    return f"{provider}/{found.default_model}", f"the default model of {provider}"


def _keyed(environ: Mapping[str, str]) -> tuple[str, str]:
    """Returns the first provider whose key is in the environment."""
    others = (name for name in providers.names() if name not in _FIRST)
    for name in (*_FIRST, *others):
        found = providers.get(name)
        if not isinstance(found.auth, ApiKey) or not found.default_model:
            continue
        key = next((env for env in found.auth.env if environ.get(env)), "")
        if key:
            return f"{name}/{found.default_model}", f"{key} is set"
    return "", ""
