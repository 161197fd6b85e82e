"""Descriptions of a provider for the commands and the documentation."""

from collections.abc import Mapping
from typing import cast

import msgspec

from toolwire.dialects.quirks import DEFAULT, Quirks
from toolwire.providers._spec import ApiKey, Auth, GoogleLogin, NoAuth, OAuth, Provider
from toolwire.providers.addresses import variables
from toolwire.request import JsonObject


def changed(quirks: Quirks) -> tuple[str, ...]:
    """Returns the quirks that differ from their default."""
    fields = Quirks.__struct_fields__
    return tuple(name for name in fields if getattr(quirks, name) != getattr(DEFAULT, name))


def key_variables(auth: Auth) -> tuple[str, ...]:
    """Returns the variables that may contain the credential."""
    return () if isinstance(auth, NoAuth) else auth.env


def key_set(auth: Auth, environ: Mapping[str, str]) -> str:
    """Returns the name of the variable that is set; empty for none."""
    return next((name for name in key_variables(auth) if environ.get(name)), "")


def way_in(auth: Auth) -> str:
    """Returns a description of the authentication."""
    match auth:
        case ApiKey(optional=True):
            return "a key, if the server requires one"
        case ApiKey():
            return "a key"
        case GoogleLogin():
            return "Google application default credentials, or a key"
        case OAuth():
            return "a personal login"
        case NoAuth():
            return "nothing"


def plain(value: object) -> object:
    """Returns a quirk's value as JSON; structs without default members."""
    if isinstance(value, frozenset):
        return sorted(cast(frozenset[str], value))
    if isinstance(value, msgspec.Struct):
        usual = type(value)()
        fields = value.__struct_fields__
        values = {name: getattr(value, name) for name in fields}
        return {name: one for name, one in values.items() if one != getattr(usual, name)}
    return value


def written(value: object) -> str:
    """Returns a quirk's value for display."""
    value = plain(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(cast(list[str], value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {said}" for key, said in cast(JsonObject, value).items())
    return str(value)


def described(provider: Provider, environ: Mapping[str, str]) -> JsonObject:
    """Returns everything about a provider as JSON, without secrets."""
    reasons = dict(provider.reasons)
    return {
        "name": provider.name,
        "title": provider.title,
        "dialect": provider.dialect,
        "other_dialects": [dialect for dialect, _ in provider.other_dialects],
        "base_url": provider.base_url,
        "base_url_variables": list(variables(provider)),
        "placeholders": {blank.name: list(blank.env) for blank in provider.placeholders},
        "auth": way_in(provider.auth),
        "key_variables": list(key_variables(provider.auth)),
        "key_set": key_set(provider.auth, environ) or None,
        "key_url": provider.auth.url if isinstance(provider.auth, ApiKey) else "",
        "terms": provider.auth.terms if isinstance(provider.auth, OAuth) else "",
        "local": provider.local,
        "native_tools": provider.native_tools,
        "json_schema_output": provider.json_schema_output,
        "default_model": provider.default_model,
        "quirks": {
            name: {
                "value": plain(getattr(provider.quirks, name)),
                "reason": reasons.get(name, ""),
            }
            for name in changed(provider.quirks)
        },
        "rules": [{"pattern": rule.pattern, "reason": rule.reason} for rule in provider.rules],
        "docs": provider.docs,
    }
