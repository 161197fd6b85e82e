"""Chooses a session's model: named, configured, by a key, or on this machine."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from toolwire import providers
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.errors import BadInput, ErrorKind, ProviderError, nearest_name
from toolwire.providers import catalogue
from toolwire.providers._spec import ApiKey, ModelInfo
from toolwire.providers.custom import NAME, Upstream
from toolwire.storage.paths import state_paths, usual_cache

if TYPE_CHECKING:
    from toolwire.embedded.catalogue import Weights

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
    short: str = ""
    """The short name that the user wrote for the model."""


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
    short = "" if "/" in name else name
    if short:
        name = full_name(short, settings, environ)
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
    return Chosen(name=name, reason=reason, settings=settings, short=short)


_VERSION = re.compile(r"v?\d[\d.]*|latest|preview")
_MOST_LISTED = 5


def full_name(short: str, settings: Settings, environ: Mapping[str, str]) -> str:
    """Returns `provider/model` of a short name, such as `gpt-5` or `sonnet`; BadInput if it is
    not the name of one model or one series of models.

    A provider whose key is set comes before the vendor of the model, that before all others; of a
    series the newest model is used.
    """
    known = catalogue.models(overrides=settings.models)
    same = [info for info in known if info.id.lower() == short.lower()]
    found = _newest(_preferred(same or _series(short, known), settings, environ))
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(found[:_MOST_LISTED])
        more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
        raise BadInput(f'"{short}" could be {listed}{more}; write one of them')
    names = {info.id.lower(): f"{info.provider}/{info.id}" for info in reversed(known)}
    near = nearest_name(short.lower(), names)
    hint = f'did you mean "{names[near]}"?' if near else "write provider/model, see toolwire models"
    raise BadInput(f'unknown model "{short}"; {hint}')


def _series(short: str, known: Iterable[ModelInfo]) -> list[ModelInfo]:
    """Returns the models whose names contain all words of the short one, in that order."""
    words = short.lower().split("-")

    def contains(name: str) -> bool:
        parts = iter(name.lower().split("-"))
        return all(word in parts for word in words)

    return [info for info in known if contains(info.id)]


def _preferred(
    found: list[ModelInfo], settings: Settings, environ: Mapping[str, str]
) -> list[ModelInfo]:
    """Returns the models of providers whose key is set, their vendors' own first; else all."""
    keyed = [info for info in found if _key_of(settings, info.provider, environ)]
    own = [info for info in keyed or found if catalogue.is_own(info)]
    if own or not keyed:
        return own or found
    return [info for info in keyed if info.provider == keyed[0].provider]


def _newest(found: list[ModelInfo]) -> list[str]:
    """Returns the newest of one series, which the catalogue lists first; else all names."""
    series: dict[tuple[str, ...], str] = {}
    for info in found:
        words = [word for word in info.id.lower().split("-") if not _VERSION.fullmatch(word)]
        if not catalogue.is_own(info):
            # Which of several hosts to ask is not ours to choose.
            words.insert(0, info.provider)
        series.setdefault(tuple(words), f"{info.provider}/{info.id}")
    shortest = min(map(len, series), default=0)
    plain = [name for words, name in series.items() if len(words) == shortest]
    return plain if len(plain) == 1 else list(series.values())


def _key_of(settings: Settings, name: str, environ: Mapping[str, str]) -> str:
    """Returns the variable with a provider's key; empty if none is set."""
    auth = settings.provider(name).auth
    if not isinstance(auth, ApiKey):
        return ""
    return next((env for env in auth.env if environ.get(env)), "")


async def choose_here(
    choose: Callable[[], Chosen],
    settings: Settings,
    environ: Mapping[str, str],
    transport: Transport,
    *,
    look: bool = True,
    weights: Path | None = None,
) -> Chosen:
    """Returns the configured model, else one of a running server, else the embedded one. `look`:
    whether to probe for servers; `weights`: a model file that the user names.
    """
    try:
        return choose()
    except ProviderError as error:
        if error.kind != ErrorKind.AUTH:
            raise
    from toolwire.embedded.machine import find_server  # noqa: PLC0415 - start-up time

    found = await find_server(transport, environ) if look else None
    if found is not None:
        reason = f"nothing is configured, and {found.title} runs on this machine"
        return Chosen(name=found.name, reason=reason, settings=settings)
    model = _embedded(environ, weights)
    seen = "no model server runs on this machine" if look else "servers were not probed"
    reason = f"nothing is configured, and {seen}"
    return Chosen(name=f"local/{model}", reason=reason, settings=settings)


def stored_model(environ: Mapping[str, str]) -> str:
    """Returns the embedded model whose weights are on this machine; empty if there are none."""
    from toolwire.embedded.weights import NAMED  # noqa: PLC0415 - start-up time

    model = _embedded(environ, None)
    usual = usual_cache(environ)
    folders = [state_paths(environ).cache, *(() if usual is None else (usual,))]
    stored = {path.name for folder in folders for path in (folder / "models").glob("*.gguf")}
    found = next((it for it in _known() if it.model == model and it.file in stored), None)
    return f"local/{model}" if found is not None or environ.get(NAMED) else ""


def _known() -> Iterable["Weights"]:
    from toolwire.embedded.catalogue import MODELS  # noqa: PLC0415 - start-up time

    return MODELS.values()


def _embedded(environ: Mapping[str, str], weights: Path | None) -> str:
    """Returns the embedded model: the one of a named file, else the one that suits the machine."""
    from toolwire.embedded.catalogue import DEFAULT, MODELS  # noqa: PLC0415 - start-up time
    from toolwire.embedded.engine import gpu_memory  # noqa: PLC0415 - start-up time
    from toolwire.embedded.machine import fitting, machine  # noqa: PLC0415 - start-up time
    from toolwire.embedded.weights import NAMED  # noqa: PLC0415 - start-up time

    named = weights.name if weights is not None else PurePath(environ.get(NAMED, "")).name
    for model in MODELS.values() if named else ():
        if model.file == named:
            return model.model
    if named:
        return fitting(machine(), stored=[DEFAULT.file]).model
    folder = state_paths(environ).cache / "models"
    stored = [path.name for path in folder.glob("*.gguf")] if folder.is_dir() else []
    return fitting(machine(gpu=gpu_memory()), stored).model


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
