"""GitHub Copilot: a device-flow login, whose token is exchanged for short-lived ones."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from toolwire.auth.credentials import Credential
from toolwire.auth.http import (
    EARLY,
    Reply,
    Token,
    TokenSource,
    get_json,
    is_safe,
    post_form,
    refused,
)
from toolwire.client.redact import Secret
from toolwire.errors import ConnectionFailed, ErrorKind, ProviderError
from toolwire.wire.json_access import is_object

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
_SLOWER = 5.0


class DeviceCode(msgspec.Struct, frozen=True, kw_only=True):
    """The address and code for the user, and the device code for polling."""

    device_code: Secret
    user_code: str
    verification_uri: str
    expires_in: float
    interval: float


async def start(url: str, client_id: str, scope: str) -> DeviceCode:
    """Request a code to show."""
    reply = await post_form(url, {"client_id": client_id, "scope": scope})
    device_code, user_code = reply.word("device_code"), reply.word("user_code")
    address = reply.word("verification_uri")
    if not (reply.ok and device_code and user_code and address):
        raise refused(reply, "no device code was given", "check the client id")
    return DeviceCode(
        device_code=Secret(device_code),
        user_code=user_code,
        verification_uri=address,
        expires_in=reply.number("expires_in") or 900.0,
        interval=max(reply.number("interval") or 5.0, 1.0),
    )


async def wait_for_token(
    url: str,
    client_id: str,
    code: DeviceCode,
    *,
    sleep: Callable[[float], Awaitable[None]],
    now: Callable[[], float],
) -> Secret:
    """Poll until the user agrees or refuses, or the code expires."""
    fields = {
        "client_id": client_id,
        "device_code": code.device_code.reveal(),
        "grant_type": GRANT,
    }
    interval, deadline = code.interval, now() + code.expires_in
    while True:
        await sleep(interval)
        if now() >= deadline:
            raise _expired()
        try:
            reply = await post_form(url, fields)
        except ConnectionFailed as error:
            if error.lasting:
                raise
            interval += _SLOWER
            continue
        token = reply.word("access_token")
        if reply.ok and token:
            return Secret(token)
        interval = _next_interval(reply, interval)


def _next_interval(reply: Reply, interval: float) -> float:
    # GitHub answers 200 for these errors too.
    match reply.word("error"):
        case "authorization_pending":
            return interval
        case "slow_down":
            return max(interval + _SLOWER, reply.number("interval") or 0.0)
        case "expired_token":
            raise _expired()
        case "access_denied":
            raise ProviderError(ErrorKind.AUTH, "the login was refused in the browser")
        case _:
            if reply.status == 429 or reply.status >= 500:
                return interval + _SLOWER
            raise refused(reply, "the login failed", kind=ErrorKind.AUTH)


def _expired() -> ProviderError:
    return ProviderError(ErrorKind.AUTH, "the code ran out before it was used; log in again")


CLIENT_ID = "TOOLWIRE_COPILOT_CLIENT_ID"
GITHUB_URL = "TOOLWIRE_COPILOT_GITHUB_URL"
API_URL = "TOOLWIRE_COPILOT_API_URL"
INTEGRATION = "TOOLWIRE_COPILOT_INTEGRATION_ID"
_SCOPE = "read:user"


class CopilotSettings(msgspec.Struct, frozen=True, kw_only=True):
    """GitHub's addresses and the OAuth application."""

    client_id: str = ""
    """Of an OAuth application that the user chose; none is shipped."""
    integration: str = ""
    """The integration id of that application; never that of another program."""
    github: str = "https://github.com"
    api: str = "https://api.github.com"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "CopilotSettings":
        """The settings of this environment."""
        return cls(
            client_id=environ.get(CLIENT_ID, ""),
            integration=environ.get(INTEGRATION, ""),
            github=environ.get(GITHUB_URL) or "https://github.com",
            api=environ.get(API_URL) or "https://api.github.com",
        )


async def login(
    settings: CopilotSettings,
    show: Callable[[DeviceCode], None],
    *,
    sleep: Callable[[float], Awaitable[None]],
    now: Callable[[], float],
) -> Secret:
    """Device flow; returns the long-lived GitHub token."""
    if not settings.client_id:
        raise ProviderError(
            ErrorKind.AUTH,
            f"no client id for GitHub is configured; set {CLIENT_ID} to the id of an OAuth "
            "application you may use",
        )
    code = await start(f"{settings.github}/login/device/code", settings.client_id, _SCOPE)
    show(code)
    url = f"{settings.github}/login/oauth/access_token"
    return await wait_for_token(url, settings.client_id, code, sleep=sleep, now=now)


class CopilotCredential(Credential):
    """Headers for Copilot's chat; the short-lived token is in memory only."""

    def __init__(
        self,
        github_token: Secret,
        settings: CopilotSettings,
        *,
        identity: Mapping[str, str],
        origin: str,
        now: Callable[[], float],
    ) -> None:
        self.origin = origin
        named = (("Copilot-Integration-Id", settings.integration),) if settings.integration else ()
        self._named = named
        self._identity = {**identity, **dict(named)}
        """The headers that identify the program to GitHub."""
        self._github_token = github_token
        self._settings = settings
        self._now = now
        self._token = TokenSource(self._exchange, now)

    async def __call__(self, refresh: bool = False, /) -> tuple[tuple[str, str], ...]:
        """The headers to add."""
        token = await self._token.current(refresh)
        return (("authorization", f"Bearer {token.secret.reveal()}"), *self._named)

    async def base_url(self) -> str:
        """The account's chat address from the token exchange; "" if there is none."""
        return (await self._token.current()).base_url

    async def _exchange(self) -> Token:
        reply = await get_json(
            f"{self._settings.api}/copilot_internal/v2/token",
            {
                "authorization": f"token {self._github_token.reveal()}",
                **self._identity,
            },
        )
        if reply.status == 401:
            raise refused(reply, "GitHub no longer accepts the login", _AGAIN, ErrorKind.AUTH)
        token = reply.word("token")
        if not (reply.ok and token):
            raise refused(reply, "GitHub gave no Copilot token", "does this account have Copilot?")
        endpoints: Any = reply.body.get("endpoints")
        address: object = endpoints.get("api") if is_object(endpoints) else None
        usable = isinstance(address, str) and is_safe(address)
        made_at = self._now()
        return Token(
            secret=Secret(token),
            expires_at=reply.number("expires_at") or made_at + 2 * EARLY,
            made_at=made_at,
            base_url=str(address).rstrip("/") if usable else "",
        )


_AGAIN = 'run "toolwire login copilot"'
