"""What only Google's own library does: service accounts, federation, the machine's own account."""

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import msgspec

from toolwire.auth.oauth.http import is_safe
from toolwire.client.redact import Secret
from toolwire.errors import BadInput, ErrorKind, ProviderError
from toolwire.wire.json_access import JsonObject

LOGIN = 'run "gcloud auth application-default login"'


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A token as the library gives it."""

    token: Secret
    expires_at: float
    """0 when it does not say."""
    quota_project: str


def is_installed() -> bool:
    """Whether the `vertex` extra is there."""
    try:
        return find_spec("google.auth") is not None
    except ModuleNotFoundError:
        return False


def fetch(file: Path | None, account: JsonObject, scope: str) -> Given:
    """A token for the account in the file, or for the machine; waits."""
    # By name: an optional extra is not there for the type checker.
    errors: Any = import_module("google.auth.exceptions")
    try:
        credentials = _credentials(file, account, scope)
        credentials.refresh(_over_urllib)
    except (errors.GoogleAuthError, ValueError) as error:
        # Not chained: these errors carry the server's whole answer, or a part of the key.
        where = file or "this machine"
        raise ProviderError(
            ErrorKind.AUTH, f"{where} gave no token ({type(error).__name__}); {LOGIN}"
        ) from None
    expiry: datetime | None = credentials.expiry
    return Given(
        token=Secret(credentials.token),
        # A time without a zone, meant as UTC.
        expires_at=expiry.replace(tzinfo=UTC).timestamp() if expiry else 0.0,
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
    """Named as the library reads it."""

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
    """The library's idea of an HTTP client, without its need for `requests`."""
    # The metadata server is plain http by design; the library asks it only on Google's machines.
    if not (is_safe(url) or url.startswith(("http://169.254.169.254", "http://metadata.google"))):
        raise BadInput(f"refusing to send a secret to {url.partition('?')[0]}; use https")
    asked = Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310 - checked above
    try:
        with urlopen(asked, timeout=timeout or 30.0) as answer:  # noqa: S310 - checked above
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
