"""Google's tokens: refreshing one, and application default credentials for Vertex."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolwire.auth.oauth import google_auth
from toolwire.auth.oauth.http import post_form, refused
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.wire.json_access import JsonObject, parse_object

TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
TOKEN_URL_VARIABLE = "TOOLWIRE_GOOGLE_TOKEN_URL"  # noqa: S105 - a variable's name
EARLY = 300.0
JUST_NOW = 30.0
_LOGIN = google_auth.LOGIN


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """What the token endpoint gives for a refresh token."""

    access_token: Secret
    expires_at: float
    refresh_token: Secret | None
    """Only when Google changes it; otherwise the old one goes on."""
    others: JsonObject
    """`scope`, `token_type`, `id_token` as they came."""

    def __repr__(self) -> str:
        return f"Refreshed(expires_at={self.expires_at})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("expires_at", self.expires_at)]


async def refresh(
    refresh_token: Secret,
    client_id: str,
    client_secret: Secret,
    *,
    url: str,
    now: Callable[[], float],
    way_out: str,
) -> Refreshed:
    """Trade a refresh token for an access token."""
    reply = await post_form(
        url,
        {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token.reveal(),
            "client_id": client_id,
            "client_secret": client_secret.reveal(),
        },
    )
    token = reply.word("access_token")
    if not (reply.ok and token):
        raise refused(reply, "Google did not renew the login", way_out)
    changed = reply.word("refresh_token")
    identity = reply.word("id_token")
    if identity:
        Secret(identity)
    return Refreshed(
        access_token=Secret(token),
        expires_at=now() + (reply.number("expires_in") or 3600.0),
        refresh_token=Secret(changed) if changed else None,
        others={key: reply.body[key] for key in _OTHERS if isinstance(reply.body.get(key), str)},
    )


_OTHERS = ("scope", "token_type", "id_token")


def adc_file(environ: Mapping[str, str]) -> Path | None:
    """The file of application default credentials, if there is one."""
    named = environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")
    if named:
        path = Path(named)
        if not path.is_file():
            raise BadInput(f"GOOGLE_APPLICATION_CREDENTIALS names {named}, which is no file")
        return path
    folder = environ.get("CLOUDSDK_CONFIG", "")
    if not folder and environ.get("APPDATA"):
        folder = str(Path(environ["APPDATA"]) / "gcloud")
    home = environ.get("HOME", "")
    if not folder and home:
        folder = str(Path(home) / ".config" / "gcloud")
    path = Path(folder) / "application_default_credentials.json"
    return path if folder and path.is_file() else None


class _Token(msgspec.Struct, frozen=True, kw_only=True):
    secret: Secret
    expires_at: float
    made_at: float
    quota_project: str


class AdcCredential:
    """Headers for Vertex from application default credentials."""

    def __init__(
        self,
        file: Path | None,
        *,
        scope: str,
        url: str = TOKEN_URL,
        now: Callable[[], float],
    ) -> None:
        found = file if file is not None else "this machine's service account"
        self.origin = f"application default credentials from {found}"
        self._file = file
        self._scope = scope
        self._url = url
        self._now = now
        self._token: _Token | None = None
        self._one_at_a_time = asyncio.Lock()

    async def __call__(self, refresh: bool = False, /) -> tuple[tuple[str, str], ...]:
        """The headers to add."""
        async with self._one_at_a_time:
            token = self._token
            if token is None or self._is_stale(token, refresh):
                token = self._token = await self._fetch()
        headers = (("authorization", f"Bearer {token.secret.reveal()}"),)
        if token.quota_project:
            headers += (("x-goog-user-project", token.quota_project),)
        return headers

    async def base_url(self) -> str:
        """None: the provider's own address holds."""
        return ""

    async def project(self) -> str:
        """None: Vertex takes its project from the address."""
        return ""

    def _is_stale(self, token: _Token, refresh: bool) -> bool:
        if self._now() >= token.expires_at - EARLY:
            return True
        return refresh and self._now() - token.made_at >= JUST_NOW

    async def _fetch(self) -> _Token:
        account = _read_account(self._file) if self._file is not None else {}
        if account.get("type") == "authorized_user":
            return await self._own_refresh(account)
        if not google_auth.is_installed():
            kind = account.get("type", "service account")
            raise ProviderError(
                ErrorKind.AUTH,
                f'credentials of the kind "{kind}" need google-auth; '
                'install it with "pip install toolwire[vertex]"',
            )
        # In a thread: google-auth waits while it works.
        given = await asyncio.to_thread(google_auth.fetch, self._file, account, self._scope)
        return _Token(
            secret=given.token,
            expires_at=given.expires_at or self._now() + 3600.0,
            made_at=self._now(),
            quota_project=given.quota_project,
        )

    async def _own_refresh(self, account: JsonObject) -> _Token:
        # The same exchange as google-auth's, which needs no extra and does not block.
        fields = [account.get(key) for key in ("refresh_token", "client_id", "client_secret")]
        if not all(isinstance(field, str) and field for field in fields):
            raise BadInput(f"{self._file} lacks a refresh token or its client; {_LOGIN}")
        token, client_id, client_secret = map(str, fields)
        fresh = await refresh(
            Secret(token),
            client_id,
            Secret(client_secret),
            url=self._url,
            now=self._now,
            way_out=_LOGIN,
        )
        return _Token(
            secret=fresh.access_token,
            expires_at=fresh.expires_at,
            made_at=self._now(),
            quota_project=str(account.get("quota_project_id") or ""),
        )


def _read_account(file: Path) -> JsonObject:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}") from error
    try:
        return parse_object(content, str(file))
    except BadInput:
        raise BadInput(f"{file} is not a JSON object") from None
