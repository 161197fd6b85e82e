"""OAuth device flow: the user enters a short code in a browser while the token is polled."""

from collections.abc import Awaitable, Callable

import msgspec

from toolwire.auth.oauth.http import Reply, post_form, refused
from toolwire.client.redact import Secret
from toolwire.errors import ConnectionFailed, ErrorKind, ProviderError

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
