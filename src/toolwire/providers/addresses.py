"""Resolves a provider's address: flag, variables or default; fills placeholders."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from toolwire.errors import BadInput
from toolwire.providers._spec import Provider

_VERSION = re.compile(r"/v\d+(alpha|beta)?\d*(/|$)")


def address(
    provider: Provider,
    environ: Mapping[str, str],
    *,
    override: str = "",
    settings: Mapping[str, str] | None = None,
) -> str:
    """Returns the base address without a trailing slash."""
    given = (override or _from_environment(provider, environ)).rstrip("/")
    if given and "://" not in given:
        given = _with_scheme(given, provider)
    if not given:
        return _filled(provider, provider.base_url, environ, settings or {})
    if not provider.takes_origin:
        return completed(provider.dialect, given)
    if _VERSION.search(urlsplit(given).path):
        return given
    return given + _filled(provider, urlsplit(provider.base_url).path, environ, settings or {})


def variables(provider: Provider) -> tuple[str, ...]:
    """Returns the variables that override the address; the first one set is used."""
    return (*provider.base_url_env, f"TOOLWIRE_{_upper(provider.name)}_BASE_URL")


def completed(dialect: str, url: str) -> str:
    """Returns an address as that vendor's SDK takes it, with the path the SDK would append."""
    url = url.rstrip("/")
    if dialect == "gemini" and _VERSION.search(urlsplit(url).path) is None:
        return f"{url}/v1beta"
    return url


def _from_environment(provider: Provider, environ: Mapping[str, str]) -> str:
    return next((environ[name] for name in variables(provider) if environ.get(name)), "")


def _filled(
    provider: Provider, pattern: str, environ: Mapping[str, str], settings: Mapping[str, str]
) -> str:
    """Returns the pattern with its placeholders filled."""
    values: dict[str, str] = {}
    for blank in provider.placeholders:
        if f"{{{blank.name}}}" not in pattern:
            continue
        value = settings.get(blank.name, "") or next(
            (environ[name] for name in blank.env if environ.get(name)), blank.default
        )
        if not value:
            raise BadInput(
                f"{provider.name} needs its {blank.name}; set {' or '.join(blank.env)}, or give a "
                "whole address with --base-url"
            )
        values[blank.name] = _safe(provider, blank.name, value)
    if pattern == provider.base_url:
        conditions = {f"{name}={value}" for name, value in values.items()}
        pattern = next(
            (url for condition, url in provider.special_urls if condition in conditions), pattern
        )
    for name, value in values.items():
        pattern = pattern.replace(f"{{{name}}}", value)
    return pattern.rstrip("/")


def _safe(provider: Provider, name: str, value: str) -> str:
    # A value with a slash, colon or at sign could send the credentials to another host.
    if value and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value) is None:
        raise BadInput(
            f'"{value}" is not a {name} of {provider.name}; use letters, digits and dashes'
        )
    return value


def _with_scheme(host: str, provider: Provider) -> str:
    """Returns the URL of an OLLAMA_HOST value: no scheme, maybe no port or 0.0.0.0."""
    if not provider.local:
        return f"https://{host}"
    host = host.replace("0.0.0.0", "127.0.0.1", 1)  # noqa: S104 - read, not listened on
    port = provider.base_url.partition("://")[2].partition("/")[0].partition(":")[2]
    if port.isdigit() and re.search(r":\d+($|/)", host) is None:
        name, slash, rest = host.partition("/")
        host = f"{name}:{port}{slash}{rest}"
    return f"http://{host}"


def _upper(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "_", name.upper())
