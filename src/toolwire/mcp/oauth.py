"""OAuth for servers: discovery, registration, the browser login, and refreshing."""

import base64
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from toolwire.auth.http import Reply, get_json, is_safe, post_form, post_json, refused
from toolwire.auth.loopback import callback_server, new_pkce
from toolwire.errors import ErrorKind, ProviderError
from toolwire.mcp.entry import OAuthEntry
from toolwire.mcp.lists import text

EARLY_SECONDS = 300.0
"""How long before its end a token is renewed."""
_LOGIN_SECONDS = 300.0
_PARAMETER = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says with 401 or 403."""

    metadata: str = ""
    scopes: tuple[str, ...] = ()
    error: str = ""


class AuthServer(msgspec.Struct, frozen=True, kw_only=True):
    """The endpoints of an authorization server."""

    issuer: str
    authorize: str
    token: str
    register: str = ""
    scopes: tuple[str, ...] = ()
    """Scopes of the resource, else none."""
    methods: tuple[str, ...] = ("none",)
    """How clients may prove who they are at the token endpoint."""
    takes_documents: bool = False
    """Whether a client id may be the address of a metadata document."""
    names_itself: bool = False
    """Whether its answers contain its name."""
    resource: str = ""


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """This client as an authorization server knows it."""

    client_id: str
    client_secret: str = ""
    method: str = "none"
    redirect: str = ""


class Tokens(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of one login."""

    access: str = ""
    refresh: str = ""
    expires_at: float = 0.0
    """0 if unknown."""
    renew_at: float = 0.0
    """When it is to be renewed, some time before its end."""
    scopes: tuple[str, ...] = ()

    def is_fresh(self, now: float) -> bool:
        """Whether the access token need not be renewed yet."""
        return bool(self.access) and (not self.renew_at or now < self.renew_at)

    def is_valid(self, now: float) -> bool:
        """Whether the access token can still be used."""
        return bool(self.access) and (not self.expires_at or now < self.expires_at)


def read_challenge(header: str) -> Challenge:
    """The parameters of `WWW-Authenticate: Bearer …`."""
    found = {name.lower(): quoted or bare for name, quoted, bare in _PARAMETER.findall(header)}
    return Challenge(
        metadata=found.get("resource_metadata", ""),
        scopes=tuple(found.get("scope", "").split()),
        error=found.get("error", ""),
    )


async def discover(url: str, challenge: Challenge, entry: OAuthEntry) -> AuthServer:
    """The authorization server of a server; settings win over what is discovered."""
    protected = await _protected(url, challenge)
    resource = text(protected.get("resource")) or _origin_and_path(url)
    listed = protected.get("authorization_servers")
    issuer = text(listed[0]) if isinstance(listed, list) and listed else _origin(url)
    check_address(issuer, url)
    metadata = await _metadata(issuer, strict=bool(protected))
    for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
        if metadata.get(name):
            check_address(text(metadata[name]), url)
    offered = challenge.scopes or _texts(protected.get("scopes_supported"))
    if metadata and "S256" not in _texts(metadata.get("code_challenge_methods_supported")):
        raise ProviderError(ErrorKind.AUTH, f"{issuer} does not support PKCE with S256")
    return AuthServer(
        issuer=issuer,
        authorize=entry.authorization_url
        or text(metadata.get("authorization_endpoint"))
        or f"{_origin(issuer)}/authorize",
        token=entry.token_url or text(metadata.get("token_endpoint")) or f"{_origin(issuer)}/token",
        register=entry.registration_url
        or text(metadata.get("registration_endpoint"))
        or ("" if metadata else f"{_origin(issuer)}/register"),
        scopes=entry.scopes or offered,
        methods=_texts(metadata.get("token_endpoint_auth_methods_supported")) or ("none",),
        takes_documents=metadata.get("client_id_metadata_document_supported") is True,
        names_itself=metadata.get("authorization_response_iss_parameter_supported") is True,
        resource=resource,
    )


def check_address(found: str, url: str) -> None:
    """Refuses an address that a server must not send this client, or its user, to."""
    from toolwire.tools.web.fetch import is_public_name  # noqa: PLC0415 - heavy, rarely needed

    parts = urlsplit(found)
    clean = found.isascii() and found.isprintable() and " " not in found
    if not clean or "@" in parts.netloc or not is_safe(found):
        raise ProviderError(ErrorKind.AUTH, f"{url} names {found[:200]!r}, which is not safe")
    if is_public_name(url) and not is_public_name(found):
        raise ProviderError(
            ErrorKind.AUTH, f"{url} names {found[:200]!r}, which is inside a private network"
        )


async def _protected(url: str, challenge: Challenge) -> Mapping[str, Any]:
    """The metadata of the protected resource; empty where the server has none."""
    path = urlsplit(url).path.rstrip("/")
    known = "/.well-known/oauth-protected-resource"
    places = [challenge.metadata, f"{_origin(url)}{known}{path}", f"{_origin(url)}{known}"]
    for place in dict.fromkeys(filter(None, places)):
        check_address(place, url)
        reply = await get_json(place)
        if reply.ok and reply.body.get("authorization_servers"):
            resource = text(reply.body.get("resource"))
            foreign = _origin(place) != _origin(url)
            if (resource or foreign) and not _covers(resource, url):
                raise ProviderError(
                    ErrorKind.AUTH, f"{place} is about {resource or 'nothing'}, not about {url}"
                )
            return reply.body
    return {}


async def _metadata(issuer: str, *, strict: bool) -> Mapping[str, Any]:
    """The metadata of an authorization server; its issuer must be the one that was asked for."""
    origin, path = _origin(issuer), urlsplit(issuer).path.rstrip("/")
    places = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    for place in dict.fromkeys(places):
        reply = await get_json(place)
        if not reply.ok or not reply.body.get("token_endpoint"):
            continue
        named = text(reply.body.get("issuer"))
        if strict and named.rstrip("/") != issuer.rstrip("/"):
            raise ProviderError(ErrorKind.AUTH, f"{place} names the issuer {named}, not {issuer}")
        return reply.body
    return {}


async def register(server: AuthServer, redirect: str) -> Registration:
    """A new registration of this client."""
    if not server.register:
        raise ProviderError(
            ErrorKind.AUTH,
            f"{server.issuer} registers no clients; set oauth.client_id for this server",
        )
    method = next((each for each in _METHODS if each in server.methods), "none")
    reply = await post_json(
        server.register,
        {
            "client_name": "toolwire",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": "native",
            **({"scope": " ".join(server.scopes)} if server.scopes else {}),
        },
    )
    if not reply.ok or not reply.word("client_id"):
        raise refused(reply, f"{server.issuer} did not register this client", kind=ErrorKind.AUTH)
    return Registration(
        client_id=reply.word("client_id"),
        client_secret=reply.word("client_secret"),
        method=reply.word("token_endpoint_auth_method") or method,
        redirect=redirect,
    )


_METHODS = ("none", "client_secret_post", "client_secret_basic")


class Clients(Protocol):
    """The registrations of this client at one authorization server."""

    def known(self) -> Registration | None:
        """The stored one, if there is one."""
        ...

    async def registered(self, client: Registration | None) -> None:
        """Stores a new one, or with None discards one that the server does not know."""
        ...


async def log_in(
    server: AuthServer,
    entry: OAuthEntry,
    clients: Clients,
    show: Callable[[str], None],
    secret: str = "",
) -> tuple[Registration, Tokens]:
    """Shows an address, waits for the browser, and exchanges its code for tokens."""
    try:
        return await _log_in(server, entry, clients, show, secret)
    except Rejected as rejected:
        if rejected.error != "invalid_client" or clients.known() is None:
            raise _no_token(rejected.reply, server) from rejected
    # The server has forgotten the stored registration: one more login with a new one.
    await clients.registered(None)
    try:
        return await _log_in(server, entry, clients, show, secret)
    except Rejected as rejected:
        raise _no_token(rejected.reply, server) from rejected


async def _log_in(
    server: AuthServer,
    entry: OAuthEntry,
    clients: Clients,
    show: Callable[[str], None],
    secret: str,
) -> tuple[Registration, Tokens]:
    pkce = new_pkce()
    known = clients.known()
    async with callback_server(entry.redirect_port, _port(known)) as callback:
        redirect = callback.address
        client = await _client(server, entry, clients, redirect, secret)
        asked = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect,
            "state": callback.state,
            "code_challenge": pkce.challenge,
            "code_challenge_method": "S256",
            "resource": server.resource,
            **({"scope": " ".join(server.scopes)} if server.scopes else {}),
            **({"audience": entry.audience} if entry.audience else {}),
        }
        joint = "&" if urlsplit(server.authorize).query else "?"
        show(f"{server.authorize}{joint}{urlencode(asked)}")
        code = await callback.code(_LOGIN_SECONDS)
        _check_issuer(server, callback.issuer)
    fields = {
        "grant_type": "authorization_code",
        "code": code.reveal(),
        "redirect_uri": redirect,
        "code_verifier": pkce.verifier.reveal(),
        "resource": server.resource,
    }
    reply = await _ask(server, client, fields)
    if not reply.ok:
        raise Rejected(reply.word("error"), reply)
    return client, _tokens(reply, server, Tokens())


def _port(client: Registration | None) -> int:
    """The port that a registration names; some servers take no other."""
    try:
        return 0 if client is None else urlsplit(client.redirect).port or 0
    except ValueError:
        return 0


def _check_issuer(server: AuthServer, named: str) -> None:
    if (named or server.names_itself) and named != server.issuer:
        raise ProviderError(
            ErrorKind.AUTH,
            f"the answer came from {named or 'an unnamed server'}, not {server.issuer}",
        )


async def _client(
    server: AuthServer, entry: OAuthEntry, clients: Clients, redirect: str, secret: str
) -> Registration:
    if entry.client_id:
        method = "none" if not secret else _secret_method(server.methods)
        return Registration(client_id=entry.client_id, client_secret=secret, method=method)
    if entry.client_metadata_url and server.takes_documents:
        return Registration(client_id=entry.client_metadata_url)
    known = clients.known()
    if known is not None and known.redirect == redirect:
        return known
    client = await register(server, redirect)
    await clients.registered(client)
    return client


def _secret_method(methods: tuple[str, ...]) -> str:
    return "client_secret_post" if "client_secret_post" in methods else "client_secret_basic"


class Rejected(Exception):
    """The token endpoint refused; `error` is its word for it."""

    def __init__(self, error: str, reply: Reply) -> None:
        super().__init__(error)
        self.error = error
        self.reply = reply


async def renew(server: AuthServer, client: Registration, tokens: Tokens) -> Tokens:
    """New tokens for a refresh token; Rejected with the server's word if it refuses."""
    fields = {
        "grant_type": "refresh_token",
        "refresh_token": tokens.refresh,
        "resource": server.resource,
        **({"scope": " ".join(tokens.scopes)} if tokens.scopes else {}),
    }
    reply = await _ask(server, client, fields)
    if reply.status >= 500 or reply.status == 429:
        raise refused(reply, f"{server.issuer} cannot renew the login now", "try again later")
    if not reply.ok:
        raise Rejected(reply.word("error"), reply)
    return _tokens(reply, server, tokens)


async def _ask(server: AuthServer, client: Registration, fields: Mapping[str, str]) -> Reply:
    headers: dict[str, str] = {}
    sent = {**fields, "client_id": client.client_id}
    if client.method == "client_secret_basic":
        pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        del sent["client_id"]
    elif client.client_secret:
        sent["client_secret"] = client.client_secret
    return await post_form(server.token, sent, headers)


def _no_token(reply: Reply, server: AuthServer) -> ProviderError:
    return refused(reply, f"{server.issuer} gave no token", "log in again", ErrorKind.AUTH)


def _tokens(reply: Reply, server: AuthServer, before: Tokens) -> Tokens:
    if not reply.ok or not reply.word("access_token"):
        raise _no_token(reply, server)
    seconds = reply.number("expires_in")
    now = time.time()
    # A token of a few minutes would be renewed at each request.
    early = min(EARLY_SECONDS, (seconds or 0.0) / 10)
    return Tokens(
        access=reply.word("access_token"),
        refresh=reply.word("refresh_token") or before.refresh,
        expires_at=now + seconds if seconds else 0.0,
        renew_at=now + seconds - early if seconds else 0.0,
        scopes=tuple(reply.word("scope").split()) or before.scopes or server.scopes,
    )


def _covers(resource: str, url: str) -> bool:
    inner, outer = urlsplit(url), urlsplit(resource)
    return inner[:2] == outer[:2] and f"{inner.path}/".startswith(f"{outer.path.rstrip('/')}/")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _origin_and_path(url: str) -> str:
    return f"{_origin(url)}{urlsplit(url).path.rstrip('/')}"


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(text, cast(list[Any], value))) if isinstance(value, list) else ()
