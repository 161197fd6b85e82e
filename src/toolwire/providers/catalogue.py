"""Known models: sizes, prices, abilities; read once from models.json."""

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pkgutil import get_data
from typing import Any, cast

import msgspec
from msgspec.structs import asdict, replace

from toolwire import providers
from toolwire.dialects.quirks import Quirks
from toolwire.errors import BadInput, UnknownName
from toolwire.providers._spec import ModelFacts, ModelInfo, Prices, Provider

_NAMES = 500
"""How many names of models a vendor is remembered for; clients may send any."""
_DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2})$")


class ModelEntry(ModelFacts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of the file, or of the user's settings."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    dated: str
    shared: dict[str, str]
    """Providers that offer the models of another at its prices."""
    models: dict[str, dict[str, ModelEntry]]


def models(
    provider: str | None = None, overrides: Iterable[ModelInfo] = ()
) -> tuple[ModelInfo, ...]:
    """Returns every known model, or those of one provider; the user's values take precedence."""
    found = {(info.provider, info.id): info for info in _known()}
    found |= {(info.provider, info.id): info for info in overrides}
    return tuple(info for info in found.values() if provider in (None, info.provider))


def find(provider: str, model: str, overrides: Iterable[ModelInfo] = ()) -> ModelInfo | None:
    """Returns a known model; a dated name falls back to the name without the date."""
    found = {info.id: info for info in models(provider, overrides)}
    return found.get(model) or found.get(_DATED.sub("", model))


def quirks_of(provider: Provider, model: str, overrides: Iterable[ModelInfo] = ()) -> Quirks:
    """Returns the quirks of a model with what is known of it: its limit, whether it reasons."""
    quirks = provider.quirks_for(model)
    if provider.dialect == "anthropic-messages":
        info = find(provider.name, model, overrides)
        return quirks if info is None else replace(quirks, most_tokens=info.output)
    if quirks.encrypted_reasoning is False or provider.dialect != "openai-responses":
        return quirks
    info = find(provider.name, model, overrides)
    if info is None and quirks.encrypted_reasoning is None:
        # A server of the user's own offers the vendor's models under their names.
        info = find("openai", model)
    return quirks if info is None else replace(quirks, encrypted_reasoning=info.thinking)


@lru_cache(maxsize=_NAMES)
def vendor(dialect: str, model: str) -> Provider | None:
    """Returns the provider, in this format, whose own model this is by its name."""
    for provider in _speakers(dialect):
        if any(fnmatchcase(model.lower(), pattern) for pattern in provider.own_models):
            return provider
    known = [entry for entry in _speakers(dialect) if find(entry.name, model) is not None]
    return known[0] if len(known) == 1 else None


def is_own(info: ModelInfo) -> bool:
    """Returns whether the model's provider made it; others only offer it."""
    patterns = providers.get(info.provider).own_models if info.provider in providers.names() else ()
    return any(fnmatchcase(info.id.lower(), pattern) for pattern in patterns)


@cache
def _speakers(dialect: str) -> tuple[Provider, ...]:
    """Returns the providers with a catalogue that speak a format, their own first."""
    entries = [providers.get(name) for name in dict.fromkeys(info.provider for info in _known())]
    own = [entry for entry in entries if entry.dialect == dialect]
    others = [entry for entry in entries if dialect in dict(entry.other_dialects)]
    return (*own, *(entry.with_dialect(dialect) for entry in others))


def split(name: str, get: Callable[[str], Provider] = providers.get) -> tuple[Provider, str]:
    """Splits `provider/model` into the provider, in the model's format, and the model."""
    provider, slash, model = name.partition("/")
    if not slash or not model:
        near = [info for info in models() if info.id == name]
        example = f"{near[0].provider}/{name}" if near else f"{provider or 'openai'}/<model>"
        raise BadInput(f'"{name}" is not a provider/model; write for example {example}')
    return get(provider).for_model(model), model


def described(name: str, table: Mapping[str, object]) -> ModelInfo:
    """Returns `[models."provider/model"]` merged over the known values."""
    where = f'models."{name}"'
    provider, slash, model = name.partition("/")
    if not slash or not model:
        raise BadInput(f'{where} names no model; write [models."provider/model"]')
    _check_keys(where, table, ModelEntry.__struct_fields__)
    if "prices" in table:
        _check_keys(f"{where}.prices", table["prices"], Prices.__struct_fields__)
    try:
        entry = msgspec.convert(dict(table), ModelEntry)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {error}") from error
    base = find(provider, model) or ModelInfo(provider=provider, id=model)
    changes = {key: getattr(entry, key) for key in table}
    return msgspec.structs.replace(base, id=model, **changes)


def _check_keys(where: str, table: object, known: tuple[str, ...]) -> None:
    if not isinstance(table, Mapping):
        raise BadInput(f"{where} must be a table")
    for key in cast(Mapping[str, object], table):
        if key not in known:
            raise UnknownName(f"setting of {where}", key, known)


@cache
def _known() -> tuple[ModelInfo, ...]:
    data = get_data("toolwire.providers", "models.json")
    if data is None:
        raise BadInput("models.json is missing from the installation; install toolwire again")
    file = msgspec.json.decode(data, type=_File)
    lists = file.models | {name: file.models[source] for name, source in file.shared.items()}
    return tuple(
        _info(provider, name, entry, file.dated)
        for provider, entries in lists.items()
        for name, entry in entries.items()
    )


def _info(provider: str, name: str, entry: ModelEntry, dated: str) -> ModelInfo:
    facts: dict[str, Any] = asdict(entry) | {"dated": entry.dated or dated}
    return ModelInfo(provider=provider, id=name, **facts)
