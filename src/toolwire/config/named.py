"""The tables that have names: `[providers.<name>]`, `[models.<name>]`, `[mcp_servers.<name>]`."""

from collections.abc import Mapping
from typing import Any, cast

from toolwire import providers
from toolwire.errors import BadInput
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider


def tables_of(key: str, found: object) -> dict[str, dict[str, Any]]:
    """The tables below a key, by name."""
    if not isinstance(found, dict):
        raise BadInput(f"{key} must be tables; write [{key}.<name>]")
    for name, entry in cast(dict[str, object], found).items():
        if not isinstance(entry, dict):
            raise BadInput(f"{key}.{name} must be a table; write [{key}.{name}]")
    return cast(dict[str, dict[str, Any]], found)


def read_providers(
    tables: Mapping[str, Mapping[str, object]], below: Mapping[str, Provider]
) -> dict[str, Provider]:
    """The providers of weaker layers, and on top what these tables describe."""
    done = dict(below)

    def find(name: str) -> Provider:
        # Only what was written above it, so that no entry can extend itself through another.
        return done[name] if name in done else providers.get(name)

    for name, table in tables.items():
        if name in providers.names() and "extends" not in table:
            raise BadInput(
                f"providers.{name} is built in; "
                f'say extends = "{name}" to change it, or choose another name'
            )
        if not name or "/" in name:
            raise BadInput(f'providers."{name}": a name may not be empty or hold a slash')
        done[name] = providers.custom(name, table, find)
    return done


def read_models(
    tables: Mapping[str, Mapping[str, object]], below: Mapping[str, ModelInfo]
) -> dict[str, ModelInfo]:
    """What weaker layers say of models, and on top what these tables say."""
    said = {name: catalogue.described(name, entry) for name, entry in tables.items()}
    kept = {name: info for name, info in below.items() if name not in said}
    return kept | said
