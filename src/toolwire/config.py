"""Settings: TOML files of the user and of the project, read into values with clear errors."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from toolwire import providers
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.places import places
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider

FILE = "config.toml"
PROJECT_FILE = Path(".toolwire") / FILE

_KEYS = ("default_model", "fallback", "providers", "models", "tools")
_PROJECT_TOOLS = ("exclude", "output_limit")
"""Settings of the tools that a project may make; the others could start or reach things."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants, from every file that was found."""

    default_model: str = ""
    """`provider/model` to ask when none is named."""
    fallback: tuple[str, ...] = ()
    """`provider/model` names to ask in turn when the one before fails."""
    providers: tuple[Provider, ...] = ()
    """The user's own providers."""
    models: tuple[ModelInfo, ...] = ()
    """What the user says of models."""
    tools: Mapping[str, Any] = {}
    """The `[tools]` tables, those of the stronger files on top."""
    files: tuple[Path, ...] = ()
    """Files that were read, the stronger ones last."""

    def provider(self, name: str) -> Provider:
        """The user's provider of that name, else the built-in or installed one."""
        own = {provider.name: provider for provider in self.providers}
        if name in own:
            return own[name]
        try:
            return providers.get(name)
        except UnknownName as error:
            raise UnknownName("provider", name, (*own, *providers.names())) from error

    def split(self, name: str) -> tuple[Provider, str]:
        """`provider/model` as the provider and the model."""
        return catalogue.split(name, self.provider)


def load(environ: Mapping[str, str], cwd: Path) -> Settings:
    """The settings of this user in this folder; files that do not exist say nothing."""
    user = places(environ).config / FILE
    settings = Settings()
    if user.is_file():
        settings = _layer(settings, user, _table(user), own=True)
    project = cwd / PROJECT_FILE
    if project.is_file():
        table = _table(project)
        if "providers" in table:
            raise BadInput(
                f"{project}: providers: a project may not say where keys are sent; "
                f"move the table to {user}"
            )
        settings = _layer(settings, project, table, own=False)
    return settings


def _table(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}; check its permissions") from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8; save it again as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file} is not TOML: {error}; correct it there") from error


def _layer(below: Settings, file: Path, table: dict[str, Any], *, own: bool) -> Settings:
    try:
        for key in table:
            if key not in _KEYS:
                raise UnknownName("setting", key, _KEYS)
        changes: dict[str, Any] = {"files": (*below.files, file)}
        if "default_model" in table:
            changes["default_model"] = _model_name("default_model", table["default_model"])
        if "fallback" in table:
            changes["fallback"] = _model_names(table["fallback"])
        if "tools" in table:
            changes["tools"] = _tools(below.tools, table["tools"], own=own)
        if own:
            changes["providers"] = _providers(_tables(table, "providers"))
        said = tuple(
            catalogue.described(name, entry) for name, entry in _tables(table, "models").items()
        )
        named = {(info.provider, info.id) for info in said}
        kept = tuple(info for info in below.models if (info.provider, info.id) not in named)
        changes["models"] = (*kept, *said)
    except ToolwireError as error:
        raise BadInput(f"{file}: {error}") from error
    return msgspec.structs.replace(below, **changes)


def _tools(below: Mapping[str, Any], found: object, *, own: bool) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadInput("tools must be a table; write [tools]")
    table = cast(dict[str, Any], found)
    for key in table:
        if not own and key not in _PROJECT_TOOLS:
            raise BadInput(f"tools.{key}: a project may not set this; move it to your own {FILE}")
    merged = {**below, **table}
    if "exclude" in below and "exclude" in table:
        merged["exclude"] = [*below["exclude"], *table["exclude"]]
    return merged


def _tables(table: dict[str, Any], key: str) -> dict[str, dict[str, object]]:
    found: object = table.get(key, {})
    if not isinstance(found, dict):
        raise BadInput(f"{key} must be tables; write [{key}.<name>]")
    for name, entry in cast(dict[str, object], found).items():
        if not isinstance(entry, dict):
            raise BadInput(f"{key}.{name} must be a table; write [{key}.{name}]")
    return cast(dict[str, dict[str, object]], found)


def _providers(tables: dict[str, dict[str, object]]) -> tuple[Provider, ...]:
    done: dict[str, Provider] = {}

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
    return tuple(done.values())


def _model_names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise BadInput('fallback must be a list; write fallback = ["provider/model"]')
    names = cast(list[object], value)
    return tuple(_model_name(f"fallback[{at}]", name) for at, name in enumerate(names))


def _model_name(key: str, value: object) -> str:
    if not isinstance(value, str) or not all(value.partition("/")):
        raise BadInput(f'{key} must be "provider/model"')
    return value
