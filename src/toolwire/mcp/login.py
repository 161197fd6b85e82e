"""Credentials of one server: fixed headers, a token from the environment, or an OAuth login."""

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

import msgspec

from toolwire.auth.store import Store, StoredLogin
from toolwire.client.http.exchange import Outgoing, Transport
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ProviderError, ToolwireError
from toolwire.mcp import oauth
from toolwire.mcp.connection import NeedsLogin
from toolwire.mcp.entry import ServerEntry
from toolwire.mcp.http_channel import HttpRefused
from toolwire.mcp.oauth import AuthServer, Challenge, Registration, Rejected, Tokens
from toolwire.storage.private_files import locked
from toolwire.wire.json_access import encode

_JUST_NOW = 30.0
"""Seconds after which a renewed token that is refused is renewed again."""
_MOST_STEPS = 3
"""Logins for further scopes on one connection."""
Show = Callable[[str], None]
Command = Callable[[str], Awaitable[str]]
"""Runs the command that prints headers and returns what it printed."""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Everything stored of the logins at one resource, by issuer."""

    servers: dict[str, AuthServer] = {}
    clients: dict[str, Registration] = {}
    tokens: dict[str, Tokens] = {}
    issuer: str = ""
    """The one that was last used."""


class LoginStore:
    """Registrations and tokens by resource and issuer, in the credential store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, url: str) -> _Kept:
        """What is stored for a server's address."""
        found = self._store.read(_name(url))
        if found is None or not isinstance(found.stored, StoredLogin):
            return _Kept()
        try:
            kept = msgspec.json.decode(found.stored.token.reveal(), type=_Kept)
        except msgspec.DecodeError:
            return _Kept()
        _learn(kept)
        return kept

    def write(self, url: str, kept: _Kept) -> None:
        """Replaces what is stored."""
        _learn(kept)
        data = msgspec.json.encode(kept).decode()
        self._store.write(_name(url), StoredLogin(token=Secret(data)))

    def delete(self, url: str) -> bool:
        """Removes it; False if there was nothing."""
        return bool(self._store.delete(_name(url)))

    def locked(self) -> AbstractAsyncContextManager[None]:
        """One refresh at a time over all processes."""
        return locked(self._store.file.with_suffix(".mcp"))


def _learn(kept: _Kept) -> None:
    """Registers the tokens and secrets, so that no log or error shows them."""
    for tokens in kept.tokens.values():
        Secret(tokens.access)
        Secret(tokens.refresh)
    for client in kept.clients.values():
        Secret(client.client_secret)


def _name(url: str) -> str:
    return f"mcp:{url.rstrip('/')}"


class ServerLogin:
    """The headers of a server's requests, renewed when it refuses them."""

    def __init__(
        self,
        name: str,
        entry: ServerEntry,
        environ: Mapping[str, str],
        store: LoginStore,
        *,
        show: Show | None = None,
        command: Command | None = None,
    ) -> None:
        self._name = name
        self._entry = entry
        self._environ = environ
        self._store = store
        self._show = show
        """Shows the address of a login to the user; None where no user is present."""
        self._command = command
        self._printed: Mapping[str, str] | None = None
        self._steps = 0
        self._tokens: Tokens | None = None
        """The tokens in use, read again when they age or are refused."""
        self._renewed_at = -_JUST_NOW

    async def headers(self) -> Mapping[str, str]:
        """The headers of the next request."""
        found = {name.lower(): value for name, value in self._entry.headers.items()}
        if self._entry.headers_command and self._command is not None:
            if self._printed is None:
                self._printed = _headers(await self._command(self._entry.headers_command))
            found |= self._printed
        if self._entry.bearer_token_env:
            token = self._environ.get(self._entry.bearer_token_env, "")
            if not token:
                raise BadInput(f"the variable {self._entry.bearer_token_env} is not set")
            found["authorization"] = f"Bearer {Secret(token).reveal()}"
        if "authorization" not in found:
            tokens = await self._valid()
            if tokens is not None:
                found["authorization"] = f"Bearer {tokens.access}"
        return found

    async def challenged(self, refused: HttpRefused) -> bool:
        """Renews what the server refused; NeedsLogin if only the user can."""
        challenge = oauth.read_challenge(refused.headers.get("www-authenticate", ""))
        if self._entry.headers_command and self._printed is not None and refused.status == 401:
            self._printed = None
            return True
        if refused.status == 403 and challenge.error != "insufficient_scope":
            return False
        if self._entry.bearer_token_env or _has_authorization(self._entry.headers):
            return False
        if refused.status == 401 and await self._renewed() is not None:
            return True
        if self._show is None or self._steps >= _MOST_STEPS:
            raise NeedsLogin(
                f"MCP server {self._name} needs a login; run: toolwire mcp login {self._name}"
            )
        self._steps += 1
        try:
            await self.log_in(challenge, self._show)
        except (ProviderError, BadInput) as error:
            # Connecting anew would open the browser once more.
            raise NeedsLogin(f"MCP server {self._name}: {error}") from error
        return True

    async def log_in(self, challenge: Challenge, show: Show) -> None:
        """Logs in with the browser and stores the tokens."""
        url = self._entry.url
        server = await oauth.discover(url, challenge, self._entry.oauth)
        kept = self._store.read(url)
        before = kept.tokens.get(server.issuer, Tokens())
        if challenge.error == "insufficient_scope":
            union = tuple(dict.fromkeys((*before.scopes, *server.scopes)))
            server = msgspec.structs.replace(server, scopes=union)
        secret = self._environ.get(self._entry.oauth.client_secret_env, "")
        self._check_moved(kept, server, secret)
        clients = _Stored(self, server)
        client, tokens = await oauth.log_in(server, self._entry.oauth, clients, show, secret)
        await self.keep(server, client, tokens)
        self._tokens = tokens

    def _check_moved(self, kept: _Kept, server: AuthServer, secret: str) -> None:
        """A configured secret is for one authorization server: the server cannot choose another."""
        if secret and kept.issuer not in ("", server.issuer):
            raise NeedsLogin(
                f"MCP server {self._name} now names the authorization server {server.issuer} in "
                f"place of {kept.issuer}; if that is right, run: toolwire mcp logout {self._name}"
            )

    def stored(self) -> _Kept:
        """What is stored of the server's logins, as it is now."""
        return self._store.read(self._entry.url)

    async def keep(
        self, server: AuthServer, client: Registration | None, tokens: Tokens | None
    ) -> None:
        """Stores or removes a registration and tokens."""
        async with self._store.locked():
            self._keep(server, client, tokens)

    def _keep(self, server: AuthServer, client: Registration | None, tokens: Tokens | None) -> None:
        kept = self._store.read(self._entry.url)
        issuer = server.issuer
        clients = {name: each for name, each in kept.clients.items() if name != issuer}
        held = {name: each for name, each in kept.tokens.items() if name != issuer}
        self._store.write(
            self._entry.url,
            _Kept(
                servers={**kept.servers, issuer: server},
                clients=clients if client is None else {**clients, issuer: client},
                tokens=held if tokens is None else {**held, issuer: tokens},
                issuer=issuer,
            ),
        )

    async def _valid(self) -> Tokens | None:
        now = time.time()
        if self._tokens is not None and self._tokens.is_fresh(now):
            return self._tokens
        kept = self._store.read(self._entry.url)
        tokens = kept.tokens.get(kept.issuer)
        if tokens is not None and not tokens.is_fresh(now):
            try:
                tokens = await self._renewed() or tokens
            except ToolwireError:
                if not tokens.is_valid(now):
                    raise
        self._tokens = tokens
        return tokens if tokens is not None and tokens.access else None

    async def _renewed(self) -> Tokens | None:
        """New tokens in place of those in use; another process may have got them already."""
        used = "" if self._tokens is None else self._tokens.access
        async with self._store.locked():
            kept = self._store.read(self._entry.url)
            tokens = kept.tokens.get(kept.issuer)
            server, client = kept.servers.get(kept.issuer), kept.clients.get(kept.issuer)
            if tokens is None or server is None or client is None:
                return None
            if tokens.access != used and tokens.is_fresh(time.time()):
                self._tokens = tokens
                return tokens
            if not tokens.refresh or time.monotonic() - self._renewed_at < _JUST_NOW:
                return None
            try:
                renewed = await oauth.renew(server, client, tokens)
            except Rejected as rejected:
                self._forget(rejected, server, client, tokens)
                self._tokens = None
                return None
            self._keep(server, client, renewed)
            self._tokens, self._renewed_at = renewed, time.monotonic()
            return renewed

    def _forget(
        self, rejected: Rejected, server: AuthServer, client: Registration, tokens: Tokens
    ) -> None:
        """Only what the server says is dead: a failure of its own costs nothing."""
        if rejected.error == "invalid_client":
            self._keep(server, None, None)
        elif rejected.error == "invalid_grant":
            self._keep(server, client, msgspec.structs.replace(tokens, access="", refresh=""))


class _Stored:
    """The registrations at one authorization server, in the credential store."""

    def __init__(self, login: ServerLogin, server: AuthServer) -> None:
        self._login = login
        self._server = server
        self._found = login.stored().clients.get(server.issuer)

    def known(self) -> Registration | None:
        return self._found

    async def registered(self, client: Registration | None) -> None:
        self._found = client
        held = self._login.stored().tokens.get(self._server.issuer, Tokens())
        # A token is renewed by the client that got it: until the login succeeds, that one stays.
        if client is None or not held.refresh:
            await self._login.keep(self._server, client, held)


async def challenge_of(url: str, transport: Transport) -> Challenge:
    """What the server demands of a request without credentials."""
    body = encode({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}})
    headers = (
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
    )
    request = Outgoing(method="POST", url=url, headers=headers, body=body)
    async with transport.open(request) as response:
        return oauth.read_challenge(response.headers.get("www-authenticate", ""))


def _has_authorization(headers: Mapping[str, str]) -> bool:
    return any(name.lower() == "authorization" for name in headers)


def _headers(printed: str) -> Mapping[str, str]:
    try:
        found = msgspec.json.decode(printed.encode(), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise BadInput("headers_command must print a JSON object of strings") from error
    return {name.lower(): value for name, value in found.items()}
