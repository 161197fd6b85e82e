"""Settings for display: each value with its origin, secrets hidden."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from toolwire.client.redact import HIDDEN, hide_in_url, is_secret_name
from toolwire.config import trust
from toolwire.config.edit import split_path
from toolwire.config.layers import config_files, has_project_file
from toolwire.config.merging import Resolved
from toolwire.config.schema import dotted, rendered

_NOT_SECRET = frozenset({"key_env", "key_header", "key_prefix"})
"""Settings that name where a key is, not the key."""
_VALUES_HIDDEN = frozenset({"headers", "env"})
"""Tables whose values are often keys, whatever their names."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One setting for display."""

    key: str
    value: Any
    """None if unset."""
    origin: str

    @property
    def text(self) -> str:
        """Returns the value as TOML."""
        return "-" if self.value is None else rendered(self.value)


def rows(resolved: Resolved) -> list[Row]:
    """Returns all settings, those in named tables one by one."""
    found: list[Row] = []
    for path, value in resolved.values.items():
        origin = resolved.origins[path]
        value = msgspec.to_builtins(value)
        if isinstance(value, dict):
            parts = split_path(path)
            inside = _leaves(parts, cast(dict[str, Any], value), len(parts))
            found += [Row(key=key, value=one, origin=origin) for key, one in inside]
        else:
            if isinstance(value, list) and any(isinstance(one, dict) for one in cast(Any, value)):
                value = hidden_arguments(cast(list[Any], value))
            found.append(Row(key=path, value=value, origin=origin))
    return found


def file_states(environ: Mapping[str, str], cwd: Path) -> list[tuple[str, str, str]]:
    """Returns each layer's file and whether it applies."""
    files = config_files(environ, cwd)
    found: list[tuple[str, str, str]] = []
    for layer in ("system", "user", "project"):
        file: Path = getattr(files, layer)
        state = "read" if file.exists() else "does not exist"
        if file == files.project and has_project_file(files):
            state = _state_of_project(trust.decide(cwd, environ))
        found.append((layer, str(file), state))
    return found


def _state_of_project(trusted: bool | None) -> str:
    if trusted:
        return "read"
    why = "skipped: the folder is not trusted"
    return why if trusted is False else f"{why}; run toolwire config trust"


def _leaves(path: tuple[str, ...], table: dict[str, Any], named: int) -> list[tuple[str, Any]]:
    """Returns the values of a table; the first `named` parts are its kind and its name."""
    found: list[tuple[str, Any]] = []
    for name, value in table.items():
        here = (*path, name)
        if isinstance(value, dict):
            found += _leaves(here, cast(dict[str, Any], value), named)
        else:
            found.append((dotted(*here), _hidden(here[named:], value)))
    return found or [(dotted(*path), {})]


def _hidden(inside: tuple[str, ...], value: Any) -> Any:
    by_name = any(is_secret_name(name) for name in inside if name not in _NOT_SECRET)
    if by_name or not _VALUES_HIDDEN.isdisjoint(inside[:-1]):
        return HIDDEN
    if isinstance(value, list):
        return hidden_arguments(cast(list[Any], value))
    return _word(value)


def hidden_arguments(words: Iterable[Any]) -> list[Any]:
    """Returns a list of arguments without the values of `--token` and its like."""
    shown: list[Any] = []
    after = False
    for word in words:
        name, equals, _ = str(word).partition("=")
        secret = is_secret_name(name.lstrip("-"))
        if after and not str(word).startswith("-"):
            shown.append(HIDDEN)
        elif secret and equals:
            shown.append(f"{name}={HIDDEN}")
        else:
            shown.append(_word(word))
        after = secret and not equals
    return shown


def _word(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _hidden((name,), one) for name, one in cast(dict[str, Any], value).items()}
    if isinstance(value, str) and "://" in value:
        return hide_in_url(value)
    return value
