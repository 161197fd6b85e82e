"""Google's tokens: refreshing one, and application default credentials for Vertex."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import msgspec

from toolwire.auth.credentials import Credential
from toolwire.auth.http import Token, TokenSource, is_safe, post_form, refused
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.wire.json_access import JsonObject, parse_object

LOGIN = 'run "gcloud auth application-default login"'


def is_installed() -> bool:
    """Whether the `vertex` extra is installed."""
    try:
        return find_spec("google.auth") is not None
    except ModuleNotFoundError:
        return False


def fetch(file: Path | None, account: JsonObject, scope: str, now: float) -> Token:
    """A token of the library for the account in the file, or for the machine; blocks."""
    # By name: the type checker does not see an optional extra.
    errors: Any = import_module("google.auth.exceptions")
    try:
        credentials = _credentials(file, account, scope)
        credentials.refresh(_over_urllib)
    except (errors.GoogleAuthError, ValueError) as error:
        # Not chained: these errors contain the server's full answer, or a part of the key.
        where = file or "this machine"
        raise ProviderError(
            ErrorKind.AUTH, f"{where} gave no token ({type(error).__name__}); {LOGIN}"
        ) from None
    expiry: datetime | None = credentials.expiry
    return Token(
        secret=Secret(credentials.token),
        # A naive time in UTC.
        expires_at=expiry.replace(tzinfo=UTC).timestamp() if expiry else now + 3600.0,
        made_at=now,
        quota_project=getattr(credentials, "quota_project_id", None) or "",
    )


def _credentials(file: Path | None, account: JsonObject, scope: str) -> Any:
    if account.get("type") == "service_account":
        service_account: Any = import_module("google.oauth2.service_account")
        return service_account.Credentials.from_service_account_info(account, scopes=[scope])
    auth: Any = import_module("google.auth")
    if file is not None:
        return auth.load_credentials_from_file(str(file), scopes=[scope])[0]
    return auth.default(scopes=[scope])[0]


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Field names as the library reads them."""

    status: int
    headers: Mapping[str, str]
    data: bytes


def _over_urllib(
    url: str,
    method: str = "GET",
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float | None = None,
    **_: Any,
) -> _Answer:
    """The library's HTTP client interface, without `requests`."""
    # The metadata server is plain http by design, and used only on Google's machines.
    if not (is_safe(url) or url.startswith(("http://169.254.169.254", "http://metadata.google"))):
        raise BadInput(f"refusing to send a secret to {url.partition('?')[0]}; use https")
    request = Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310 - checked above
    try:
        with urlopen(request, timeout=timeout or 30.0) as answer:  # noqa: S310 - checked above
            return _Answer(
                status=answer.status, headers=dict(answer.headers.items()), data=answer.read()
            )
    except HTTPError as error:
        with error:
            return _Answer(
                status=error.code, headers=dict(error.headers.items()), data=error.read()
            )
    except URLError as error:
        failure: Any = import_module("google.auth.exceptions")
        raise failure.TransportError(str(error.reason)) from error


TOKEN_URL = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
TOKEN_URL_VARIABLE = "TOOLWIRE_GOOGLE_TOKEN_URL"  # noqa: S105 - a variable's name


class Refreshed(msgspec.Struct, frozen=True, kw_only=True):
    """The token endpoint's response to a refresh token."""

    access_token: Secret
    expires_at: float
    refresh_token: Secret | None
    """Only if Google changes it; otherwise the old one stays valid."""
    others: JsonObject
    """`scope`, `token_type`, `id_token` as received."""

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
    """Exchange a refresh token for an access token."""
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
            raise BadInput(f"GOOGLE_APPLICATION_CREDENTIALS names {named}, which is not a file")
        return path
    folder = environ.get("CLOUDSDK_CONFIG", "")
    if not folder and environ.get("APPDATA"):
        folder = str(Path(environ["APPDATA"]) / "gcloud")
    home = environ.get("HOME", "")
    if not folder and home:
        folder = str(Path(home) / ".config" / "gcloud")
    path = Path(folder) / "application_default_credentials.json"
    return path if folder and path.is_file() else None


class AdcCredential(Credential):
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
        self._token = TokenSource(self._fetch, now)

    async def __call__(self, refresh: bool = False, /) -> tuple[tuple[str, str], ...]:
        """The headers to add."""
        token = await self._token.current(refresh)
        headers = (("authorization", f"Bearer {token.secret.reveal()}"),)
        if token.quota_project:
            headers += (("x-goog-user-project", token.quota_project),)
        return headers

    async def _fetch(self) -> Token:
        account = _read_account(self._file) if self._file is not None else {}
        if account.get("type") == "authorized_user":
            return await self._own_refresh(account)
        if not is_installed():
            kind = account.get("type", "service account")
            raise ProviderError(
                ErrorKind.AUTH,
                f'credentials of the kind "{kind}" need google-auth; '
                'install it with "pip install toolwire[vertex]"',
            )
        # In a thread: google-auth blocks.
        return await asyncio.to_thread(fetch, self._file, account, self._scope, self._now())

    async def _own_refresh(self, account: JsonObject) -> Token:
        # The same exchange as google-auth's, without the extra and without blocking.
        fields = [account.get(key) for key in ("refresh_token", "client_id", "client_secret")]
        if not all(isinstance(field, str) and field for field in fields):
            raise BadInput(f"{self._file} lacks a refresh token or its client; {LOGIN}")
        token, client_id, client_secret = map(str, fields)
        fresh = await refresh(
            Secret(token),
            client_id,
            Secret(client_secret),
            url=self._url,
            now=self._now,
            way_out=LOGIN,
        )
        return Token(
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
