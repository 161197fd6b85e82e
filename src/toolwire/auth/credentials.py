"""The credential of a provider: flag, environment, keyring or file, in this order."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from toolwire.auth.store import Notice, Store, StoredLogin, system_keyring
from toolwire.client.http.exchange import Outgoing
from toolwire.client.redact import Secret, known_secrets, without_secrets
from toolwire.errors import ErrorKind, ProviderError
from toolwire.providers import ApiKey, GoogleLogin, NoAuth, OAuth, Provider
from toolwire.storage.paths import StatePaths
from toolwire.storage.private_files import locked_briefly, read_private, write_private

__all__ = [
    "Credential",
    "Headers",
    "Secret",
    "credential_for",
    "first_use_terms",
    "known_secrets",
    "open_store",
    "without_secrets",
]

Headers: TypeAlias = tuple[tuple[str, str], ...]
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
_EXPRESS = "https://aiplatform.googleapis.com/v1beta1"
"""With a key, Vertex URLs have no project and no location."""


class Credential(Protocol):
    """Called before each request, and again with True when the server refused the last headers."""

    origin: str
    """Description of its source; never the value."""

    async def __call__(self, refresh: bool = False, /) -> Headers:
        """The headers to add."""
        ...

    async def base_url(self) -> str:
        """The address this login is bound to; "" for the provider's own."""
        return ""

    async def project(self) -> str:
        """The project that a request's body names (Code Assist); "" for none."""
        return ""


@runtime_checkable
class SigningCredential(Credential, Protocol):
    """A credential that signs each request, such as one of AWS."""

    async def sign(self, request: Outgoing, at: float, /) -> Headers:
        """The headers to add to the finished request, which is sent at this Unix time."""
        ...


class FixedCredential(Credential):
    """Constant headers: a key, or none."""

    def __init__(
        self,
        origin: str,
        header: str = "",
        prefix: str = "",
        key: Secret | None = None,
        base_url: str = "",
    ) -> None:
        self.origin = origin
        self._base_url = base_url
        self._header = header
        self._prefix = prefix
        self._key = key

    async def __call__(self, refresh: bool = False, /) -> Headers:
        """The headers to add."""
        if self._key is None:
            return ()
        return ((self._header, f"{self._prefix}{self._key.reveal()}"),)

    async def base_url(self) -> str:
        """The key's own address, if it is not the provider's."""
        return self._base_url


class _Key(msgspec.Struct, frozen=True, kw_only=True):
    secret: Secret
    origin: str
    from_login: bool = False


class _Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """A lookup of a credential, with its inputs."""

    provider: Provider
    flag: str
    environ: Mapping[str, str]
    store: Store
    notice: Notice
    now: Callable[[], float]
    sleep: Sleep


def no_notice(message: str) -> None:
    """Discards notices."""
    del message


def open_store(where: StatePaths, environ: Mapping[str, str], notice: Notice = no_notice) -> Store:
    """The keyring and file of this user."""
    return Store(where.credentials, keyring=system_keyring(environ), notice=notice)


def credential_for(
    provider: Provider,
    *,
    flag: str = "",
    environ: Mapping[str, str],
    store: Store,
    notice: Notice = no_notice,
    now: Callable[[], float] = time.time,
    sleep: Sleep = asyncio.sleep,
) -> Credential:
    """The credential to use; raises an error that says how to get one."""
    lookup = _Lookup(
        provider=provider,
        flag=flag,
        environ=environ,
        store=store,
        notice=notice,
        now=now,
        sleep=sleep,
    )
    match provider.auth:
        case NoAuth():
            return FixedCredential("no credentials needed")
        case ApiKey() as auth:
            return _api_key(lookup, auth)
        case GoogleLogin() as auth:
            return _vertex(lookup, auth)
        case OAuth() as auth:
            return _login(lookup, auth)


def first_use_terms(provider: Provider, beside: Path) -> str:
    """The vendor's terms if this user has not seen them yet; marks them as shown."""
    terms = provider.auth.terms if isinstance(provider.auth, OAuth) else ""
    if not terms:
        return ""
    # The mark contains a hash of the text: changed terms are shown again.
    mark = f"{provider.name} {hashlib.sha256(terms.encode()).hexdigest()[:16]}"
    path = beside.with_name("terms-shown")
    with locked_briefly(path):
        shown = (read_private(path, no_notice) or b"").decode("utf-8", "replace").splitlines()
        if mark in shown:
            return ""
        write_private(path, "\n".join([*shown, mark, ""]).encode())
    return terms


def _find(lookup: _Lookup, names: tuple[str, ...]) -> _Key | None:
    if lookup.flag:
        return _Key(secret=Secret(lookup.flag), origin="from the command line")
    for name in names:
        value = lookup.environ.get(name, "").strip()
        if value:
            return _Key(secret=Secret(value), origin=f"from {name}")
    found = lookup.store.read(lookup.provider.name)
    if found is None:
        return None
    if isinstance(found.stored, StoredLogin):
        return _Key(secret=found.stored.token, origin=found.origin, from_login=True)
    return _Key(secret=found.stored.key, origin=found.origin)


def _api_key(lookup: _Lookup, auth: ApiKey) -> Credential:
    key = _find(lookup, auth.env)
    if key is not None:
        return FixedCredential(key.origin, auth.header, auth.prefix, key.secret)
    if auth.optional:
        return FixedCredential("no key set, none needed")
    raise _missing(lookup.provider, auth.env, f"get a key at {auth.url}" if auth.url else "")


def _vertex(lookup: _Lookup, auth: GoogleLogin) -> Credential:
    from toolwire.auth import google  # noqa: PLC0415 - start-up time

    environ = lookup.environ
    key = _find(lookup, auth.env)
    express = key and FixedCredential(key.origin, "x-goog-api-key", "", key.secret, _EXPRESS)
    # A configured project takes precedence over a key in the environment, which is often set for
    # the Gemini API. Google's SDK does the same.
    named = environ.get("GOOGLE_CLOUD_PROJECT") or environ.get("GOOGLE_CLOUD_LOCATION")
    if express is not None and (lookup.flag or not named):
        return express
    file = google.adc_file(environ)
    if file is None and express is not None:
        return express
    if file is None and not google.is_installed():
        raise _missing(lookup.provider, auth.env, google.LOGIN)
    url = environ.get(google.TOKEN_URL_VARIABLE) or google.TOKEN_URL
    return google.AdcCredential(file, scope=auth.scope, url=url, now=lookup.now)


def _login(lookup: _Lookup, auth: OAuth) -> Credential:
    if auth.flow == "code-assist":
        return _code_assist(lookup)
    key = _find(lookup, auth.env)
    if key is None:
        raise _missing(lookup.provider, auth.env)
    if auth.flow == "copilot":
        from toolwire.auth import copilot  # noqa: PLC0415 - start-up time

        _show_terms(lookup)
        settings = copilot.CopilotSettings.from_environ(lookup.environ)
        return copilot.CopilotCredential(
            key.secret,
            settings,
            identity=dict(lookup.provider.headers),
            origin=key.origin,
            now=lookup.now,
        )
    # OpenRouter's login returns a plain key, which may also come from its website.
    if key.from_login:
        _show_terms(lookup)
    return FixedCredential(key.origin, "authorization", "Bearer ", key.secret)


def _code_assist(lookup: _Lookup) -> Credential:
    from toolwire.auth import code_assist  # noqa: PLC0415 - start-up time

    settings = code_assist.CodeAssistSettings.from_environ(lookup.environ)
    if lookup.flag:
        settings = msgspec.structs.replace(settings, token=Secret(lookup.flag))
    if not settings.is_configured:
        raise ProviderError(
            ErrorKind.AUTH,
            f"{lookup.provider.title} is off until you configure it: set GOOGLE_GENAI_USE_GCA=true "
            f"and GOOGLE_CLOUD_ACCESS_TOKEN, or {code_assist.CLIENT_ID} and "
            f"{code_assist.CLIENT_SECRET} for the login in ~/.gemini/oauth_creds.json "
            f"({code_assist.CREDENTIALS} names another file)",
        )
    _show_terms(lookup)
    return code_assist.CodeAssistCredential(
        settings, now=lookup.now, sleep=lookup.sleep, notice=lookup.notice
    )


def _show_terms(lookup: _Lookup) -> None:
    # Without a notice callback they are not marked as shown.
    if lookup.notice is not no_notice:
        terms = first_use_terms(lookup.provider, lookup.store.file)
        if terms:
            lookup.notice(terms)


def _missing(provider: Provider, names: tuple[str, ...], way: str = "") -> ProviderError:
    ways = [f"set {' or '.join(names)}"] if names else []
    ways.append(f'run "toolwire login {provider.name}"')
    message = f"no credentials for {provider.title}; {', or '.join(ways)}"
    return ProviderError(ErrorKind.AUTH, f"{message}; {way}" if way else message)
