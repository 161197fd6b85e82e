"""Providers that a user describes in settings."""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from toolwire import dialects
from toolwire.dialects.quirks import Quirks
from toolwire.errors import BadInput, UnknownName
from toolwire.history import HistoryRules
from toolwire.providers._spec import ApiKey, Auth, NoAuth, Provider
from toolwire.providers.addresses import completed
from toolwire.wire.names import NameRule

_PLAIN_KEYS = (
    *("title", "docs", "default_model", "native_tools", "json_schema_output", "local"),
    "allow_insecure_http",
)
_KEY_KEYS = ("key_env", "key_header", "key_prefix")
_KEYS = (
    *("extends", "dialect", "base_url", "headers", "models", "quirks", "faithful"),
    *_KEY_KEYS,
    *_PLAIN_KEYS,
)
_NESTED: dict[str, type[msgspec.Struct]] = {"history": HistoryRules, "name_rule": NameRule}
_SET_BY_USER = "set in the configuration"
_T = TypeVar("_T")


class ProviderTable(msgspec.Struct, forbid_unknown_fields=True):
    """Keys of `[providers.NAME]`; absent ones are inherited from the entry it extends."""

    extends: str = ""
    dialect: str = ""
    base_url: str = ""
    key_env: str | list[str] | None = None
    key_header: str | None = None
    key_prefix: str | None = None
    headers: dict[str, str] | None = None
    models: list[str] | None = None
    quirks: dict[str, Any] = {}
    title: str | None = None
    docs: str | None = None
    default_model: str | None = None
    native_tools: bool | None = None
    json_schema_output: bool | None = None
    local: bool | None = None
    allow_insecure_http: bool | None = None
    faithful: bool | None = None
    """Whether the format's own maker answers behind `base_url`, such as behind a proxy."""


def custom(
    name: str, table: Mapping[str, object], find: Callable[[str], Provider] | None = None
) -> Provider:
    """Returns the provider of `[providers.NAME]`; `find` returns the one it extends."""
    where = f"providers.{name}"
    for key in table:
        if key not in _KEYS:
            raise UnknownName(f"setting of {where}", key, _KEYS)
    given = _read(dict(table), ProviderTable, where)
    if given.extends:
        if find is None:
            raise BadInput(f"{where}.extends: nothing can be extended here")
        base = find(given.extends).with_dialect(given.dialect)
    else:
        base = _from_nothing(name, given, where)
    return _with_quirks(_changed(base, name, given, where), given.quirks, where)


def _from_nothing(name: str, given: ProviderTable, where: str) -> Provider:
    for key in ("dialect", "base_url"):
        if not getattr(given, key):
            raise BadInput(f'{where} has no "{key}"; set it, or extends = "<provider>"')
    try:
        dialects.get(given.dialect)
    except UnknownName as error:
        raise BadInput(f"{where}.dialect: {error}") from error
    return Provider(
        name=name, title=name, dialect=given.dialect, base_url=given.base_url, auth=NoAuth()
    )


def _changed(base: Provider, name: str, given: ProviderTable, where: str) -> Provider:
    changes: dict[str, Any] = {"name": name, "auth": _auth(base, given, where)}
    for key in _PLAIN_KEYS:
        value = getattr(given, key)
        if value is not None:
            changes[key] = value
    if given.base_url:
        changes["base_url"] = _url(base, given.base_url, where)
        # Another server: the vendor's variables and addresses do not apply to it.
        changes |= {"base_url_env": (), "placeholders": (), "special_urls": ()}
        changes |= {"other_dialects": (), "takes_origin": False, "faithful": False}
    if given.faithful is not None:
        changes["faithful"] = given.faithful
    if given.headers is not None:
        kept = {key: value for key, value in base.headers if key.lower() not in _lower(given)}
        changes["headers"] = tuple((kept | given.headers).items())
    if given.models is not None:
        changes["models"] = tuple(given.models)
    return msgspec.structs.replace(base, **changes)


def _lower(given: ProviderTable) -> set[str]:
    return {key.lower() for key in given.headers or {}}


def _url(base: Provider, url: str, where: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise BadInput(
            f'{where}.base_url "{url}" is not an address; begin it with https:// or http://'
        )
    return completed(base.dialect, url)


def _auth(base: Provider, given: ProviderTable, where: str) -> Auth:
    if given.key_env is None:
        if given.base_url and given.extends:
            # A key must not be sent to an address that is not its vendor's.
            return NoAuth()
        if given.key_header is not None or given.key_prefix is not None:
            raise BadInput(
                f"{where} sets how to send a key but not key_env, the variable that contains it"
            )
        return base.auth
    env = (given.key_env,) if isinstance(given.key_env, str) else tuple(given.key_env)
    if not env or not all(env):
        raise BadInput(f"{where}.key_env is empty; name the variable that contains the key")
    header, prefix = _key_place(base)
    return ApiKey(
        env=env,
        header=header if given.key_header is None else given.key_header.lower(),
        prefix=_prefix(given, prefix),
    )


def _key_place(base: Provider) -> tuple[str, str]:
    if isinstance(base.auth, ApiKey):
        return base.auth.header, base.auth.prefix
    usual = {"anthropic-messages": "x-api-key", "gemini": "x-goog-api-key"}.get(base.dialect)
    return (usual, "") if usual else ("authorization", "Bearer ")


def _prefix(given: ProviderTable, usual: str) -> str:
    if given.key_prefix is not None:
        return given.key_prefix
    if given.key_header is None:
        return usual
    return "Bearer " if given.key_header.lower() == "authorization" else ""


def _with_quirks(provider: Provider, table: Mapping[str, Any], where: str) -> Provider:
    if not table:
        return provider
    where = f"{where}.quirks"
    known = Quirks.__struct_fields__
    for key, value in table.items():
        if key not in known:
            raise UnknownName(f"setting of {where}", key, known)
        if key in _NESTED and isinstance(value, dict):
            fields = _NESTED[key].__struct_fields__
            for inner in cast(dict[str, object], value):
                if inner not in fields:
                    raise UnknownName(f"setting of {where}.{key}", inner, fields)
    given = _read(dict(table), Quirks, where)
    changes = {key: getattr(given, key) for key in table}
    old = tuple(reason for reason in provider.reasons if reason[0] not in changes)
    new = tuple((key, _SET_BY_USER) for key in changes)
    rules = tuple(
        msgspec.structs.replace(rule, quirks=msgspec.structs.replace(rule.quirks, **changes))
        if rule.quirks is not None
        else rule
        for rule in provider.rules
    )
    quirks = msgspec.structs.replace(provider.quirks, **changes)
    return msgspec.structs.replace(provider, quirks=quirks, reasons=(*old, *new), rules=rules)


def _read(table: object, kind: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{where}: {error}") from error


NAME = "upstream"
_SHAPE = "DIALECT=URL[,key=K][,model=M][,style=S]"
_MEMBER = re.compile(r",(?=(?:key|model|style)=)")
_DEFAULT_MODEL = "default"
_HEADERS = {"anthropic-messages": ("x-api-key", ""), "gemini": ("x-goog-api-key", "")}


class Upstream(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed argument."""

    provider: Provider
    model: str = _DEFAULT_MODEL
    style: str = ""
    key: str = ""

    @property
    def named(self) -> bool:
        """Whether the argument names the model."""
        return self.model != _DEFAULT_MODEL

    def __repr__(self) -> str:
        return f"Upstream({self.provider.dialect}, {self.provider.title}, {self.model})"


def read_upstream(text: str) -> Upstream:
    """Returns the provider at an address; only its own key is sent there."""
    name, equals, rest = text.partition("=")
    if not equals or not rest:
        raise BadInput(f"an upstream is written {_SHAPE}")
    dialects.get(name)
    url, *members = _MEMBER.split(rest)
    if "://" not in url:
        raise BadInput(f'"{_shown(url)}" is not an address; an upstream is written {_SHAPE}')
    options = dict(member.split("=", 1) for member in members)
    header, prefix = _HEADERS.get(name, ("authorization", "Bearer "))
    provider = Provider(
        name=NAME,
        title=_shown(url),
        dialect=name,
        base_url=url,
        auth=ApiKey(env=(), header=header, prefix=prefix, optional=True),
        json_schema_output=True,
        default_model=options.get("model", _DEFAULT_MODEL),
    )
    return Upstream(
        provider=provider,
        model=options.get("model", _DEFAULT_MODEL),
        style=options.get("style", ""),
        key=options.get("key", ""),
    )


def _shown(url: str) -> str:
    """Returns the address without login and query, which may contain secrets."""
    scheme, mark, rest = url.partition("?")[0].rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"
