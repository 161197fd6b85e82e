"""Credentials of one server: fixed headers, a token from the environment, or an OAuth login."""

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager

import msgspec

from toolwire.auth.store import Store, StoredLogin
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.mcp import oauth
from toolwire.mcp.connection import NeedsLogin
from toolwire.mcp.entry import ServerEntry
from toolwire.mcp.http_channel import HttpRefused
from toolwire.mcp.oauth import AuthServer, Challenge, Registration, Rejected, Tokens
from toolwire.storage.private_files import locked_briefly

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
            return msgspec.json.decode(found.stored.token.reveal(), type=_Kept)
        except msgspec.DecodeError:
            return _Kept()

    def write(self, url: str, kept: _Kept) -> None:
        """Replaces what is stored."""
        data = msgspec.json.encode(kept).decode()
        self._store.write(_name(url), StoredLogin(token=Secret(data)))

    def delete(self, url: str) -> bool:
        """Removes it; False if there was nothing."""
        return bool(self._store.delete(_name(url)))

    def locked(self) -> AbstractContextManager[None]:
        """One refresh at a time over all processes."""
        return locked_briefly(self._store.file.with_suffix(".mcp"))


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
            found["authorization"] = f"Bearer {token}"
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
        if refused.status == 401 and await self._renewed(force=True) is not None:
            return True
        if self._show is None or self._steps >= _MOST_STEPS:
            raise NeedsLogin(
                f"MCP server {self._name} needs a login; run: toolwire mcp login {self._name}"
            )
        self._steps += 1
        await self.log_in(challenge, self._show)
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

        def known(redirect: str) -> Registration | None:
            client = kept.clients.get(server.issuer)
            return client if client is not None and _fits(client, redirect) else None

        client, tokens = await oauth.log_in(server, self._entry.oauth, known, show, secret)
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
        kept = self._store.read(self._entry.url)
        tokens = kept.tokens.get(kept.issuer)
        if tokens is None or tokens.is_valid(time.time()):
            return tokens
        return await self._renewed(force=False) or tokens

    async def _renewed(self, *, force: bool) -> Tokens | None:
        """New tokens from the refresh token; another process may have got them already."""
        before = self._store.read(self._entry.url)
        old = before.tokens.get(before.issuer)
        if old is None or not old.refresh:
            return None
        with self._store.locked():
            kept = self._store.read(self._entry.url)
            tokens = kept.tokens.get(kept.issuer)
            server, client = kept.servers.get(kept.issuer), kept.clients.get(kept.issuer)
            if tokens is None or server is None or client is None or not tokens.refresh:
                return None
            if tokens.access != old.access or (not force and tokens.is_valid(time.time())):
                return tokens
            try:
                renewed = await oauth.renew(server, client, tokens)
            except Rejected as rejected:
                self._forget(rejected, server, client, tokens)
                return None
            except ProviderError as error:
                if error.kind is ErrorKind.AUTH:
                    return None
                raise
            self._keep(server, client, renewed)
            return renewed

    def _forget(
        self, rejected: Rejected, server: AuthServer, client: Registration, tokens: Tokens
    ) -> None:
        """Only what the server says is dead: a failure of its own costs nothing."""
        if rejected.error == "invalid_client":
            self._keep(server, None, None)
        elif rejected.error == "invalid_grant":
            self._keep(server, client, msgspec.structs.replace(tokens, access="", refresh=""))


def _fits(client: Registration, redirect: str) -> bool:
    """Whether a registration covers a redirect address: the port of this machine may differ."""
    return client.redirect.rpartition(":")[0] == redirect.rpartition(":")[0]


def _has_authorization(headers: Mapping[str, str]) -> bool:
    return any(name.lower() == "authorization" for name in headers)


def _headers(printed: str) -> Mapping[str, str]:
    try:
        found = msgspec.json.decode(printed.encode(), type=dict[str, str])
    except msgspec.DecodeError as error:
        raise BadInput("headers_command must print a JSON object of strings") from error
    return {name.lower(): value for name, value in found.items()}
