"""Which credential a provider gets: a flag, the environment, the keyring, a file, in this order."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec

from toolwire.auth.store import Notice, Store, StoredLogin, system_keyring
from toolwire.client.redact import Secret, known_secrets, without_secrets
from toolwire.errors import ErrorKind, ProviderError
from toolwire.providers import ApiKey, GoogleLogin, NoAuth, OAuth, Provider
from toolwire.storage.paths import Places
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
"""With a key Vertex has no project and no place in its address."""


class Credential(Protocol):
    """Asked before each request, and again with True when the server refused the last answer."""

    origin: str
    """Where it comes from, in words; never the value."""

    async def __call__(self, refresh: bool = False, /) -> Headers:
        """The headers to add."""
        ...

    async def base_url(self) -> str:
        """The address this login is bound to; "" for the provider's own."""
        ...

    async def project(self) -> str:
        """The project that a request's body names (Code Assist); "" for none."""
        ...


class FixedCredential:
    """The same headers each time: a key, or nothing."""

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
        """The address the key is for, if not the provider's own."""
        return self._base_url

    async def project(self) -> str:
        """None: a key belongs to its project."""
        return ""


class _Key(msgspec.Struct, frozen=True, kw_only=True):
    secret: Secret
    origin: str
    from_login: bool = False


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One question for a credential, with what its answer may need."""

    provider: Provider
    flag: str
    environ: Mapping[str, str]
    store: Store
    notice: Notice
    now: Callable[[], float]
    sleep: Sleep


def no_notice(message: str) -> None:
    """Nobody listens."""
    del message


def open_store(where: Places, environ: Mapping[str, str], notice: Notice = no_notice) -> Store:
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
    """The credential to use, or an error that says how to get one."""
    asked = _Asked(
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
            return _api_key(asked, auth)
        case GoogleLogin() as auth:
            return _vertex(asked, auth)
        case OAuth() as auth:
            return _login(asked, auth)


def first_use_terms(provider: Provider, beside: Path) -> str:
    """The vendor's terms if this user has not been shown them yet; they then count as shown."""
    terms = provider.auth.terms if isinstance(provider.auth, OAuth) else ""
    if not terms:
        return ""
    # The words are part of the mark: new terms are shown again.
    mark = f"{provider.name} {hashlib.sha256(terms.encode()).hexdigest()[:16]}"
    path = beside.with_name("terms-shown")
    with locked_briefly(path):
        shown = (read_private(path, no_notice) or b"").decode("utf-8", "replace").splitlines()
        if mark in shown:
            return ""
        write_private(path, "\n".join([*shown, mark, ""]).encode())
    return terms


def _find(asked: _Asked, names: tuple[str, ...]) -> _Key | None:
    if asked.flag:
        return _Key(secret=Secret(asked.flag), origin="from the command line")
    for name in names:
        value = asked.environ.get(name, "").strip()
        if value:
            return _Key(secret=Secret(value), origin=f"from {name}")
    found = asked.store.read(asked.provider.name)
    if found is None:
        return None
    if isinstance(found.stored, StoredLogin):
        return _Key(secret=found.stored.token, origin=found.origin, from_login=True)
    return _Key(secret=found.stored.key, origin=found.origin)


def _api_key(asked: _Asked, auth: ApiKey) -> Credential:
    key = _find(asked, auth.env)
    if key is not None:
        return FixedCredential(key.origin, auth.header, auth.prefix, key.secret)
    if auth.optional:
        return FixedCredential("no key set, none needed")
    raise _missing(asked.provider, auth.env, f"get a key at {auth.url}" if auth.url else "")


def _vertex(asked: _Asked, auth: GoogleLogin) -> Credential:
    from toolwire.auth.oauth import google, google_auth  # noqa: PLC0415 - start-up time

    environ = asked.environ
    key = _find(asked, auth.env)
    express = key and FixedCredential(key.origin, "x-goog-api-key", "", key.secret, _EXPRESS)
    # A project that is named means its own account: a key in the environment, often there for the
    # Gemini API, stands back. Google's SDK does the same.
    named = environ.get("GOOGLE_CLOUD_PROJECT") or environ.get("GOOGLE_CLOUD_LOCATION")
    if express is not None and (asked.flag or not named):
        return express
    file = google.adc_file(environ)
    if file is None and express is not None:
        return express
    if file is None and not google_auth.is_installed():
        raise _missing(asked.provider, auth.env, google_auth.LOGIN)
    url = environ.get(google.TOKEN_URL_VARIABLE) or google.TOKEN_URL
    return google.AdcCredential(file, scope=auth.scope, url=url, now=asked.now)


def _login(asked: _Asked, auth: OAuth) -> Credential:
    if auth.flow == "code-assist":
        return _code_assist(asked)
    key = _find(asked, auth.env)
    if key is None:
        raise _missing(asked.provider, auth.env)
    if auth.flow == "copilot":
        from toolwire.auth.oauth import copilot  # noqa: PLC0415 - start-up time

        _show_terms(asked)
        settings = copilot.CopilotSettings.from_environ(asked.environ)
        return copilot.CopilotCredential(
            key.secret,
            settings,
            identity=dict(asked.provider.headers),
            origin=key.origin,
            now=asked.now,
        )
    # OpenRouter's login gives a plain key, which may as well come from its own page.
    if key.from_login:
        _show_terms(asked)
    return FixedCredential(key.origin, "authorization", "Bearer ", key.secret)


def _code_assist(asked: _Asked) -> Credential:
    from toolwire.auth.oauth import code_assist  # noqa: PLC0415 - start-up time

    settings = code_assist.CodeAssistSettings.from_environ(asked.environ)
    if asked.flag:
        settings = msgspec.structs.replace(settings, token=Secret(asked.flag))
    if not settings.is_configured:
        raise ProviderError(
            ErrorKind.AUTH,
            f"{asked.provider.title} is off until you configure it: set GOOGLE_GENAI_USE_GCA=true "
            f"and GOOGLE_CLOUD_ACCESS_TOKEN, or {code_assist.CLIENT_ID} and "
            f"{code_assist.CLIENT_SECRET} for the login in ~/.gemini/oauth_creds.json "
            f"({code_assist.CREDENTIALS} names another file)",
        )
    _show_terms(asked)
    return code_assist.CodeAssistCredential(
        settings, now=asked.now, sleep=asked.sleep, notice=asked.notice
    )


def _show_terms(asked: _Asked) -> None:
    # Who gives no ear is not shown them, and they stay to be shown.
    if asked.notice is not no_notice:
        terms = first_use_terms(asked.provider, asked.store.file)
        if terms:
            asked.notice(terms)


def _missing(provider: Provider, names: tuple[str, ...], way: str = "") -> ProviderError:
    ways = [f"set {' or '.join(names)}"] if names else []
    ways.append(f'run "toolwire login {provider.name}"')
    message = f"no credentials for {provider.title}; {', or '.join(ways)}"
    return ProviderError(ErrorKind.AUTH, f"{message}; {way}" if way else message)
