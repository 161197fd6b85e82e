"""Logging in to the console, and out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from toolwire import __version__
from toolwire.gateway.console.auth import csrf_of, set_cookie
from toolwire.gateway.console.calls import ApiError, ApiRoute, Call, Visitor
from toolwire.gateway.console.static import SECURITY
from toolwire.wire.json_access import encode

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console


class LogIn(msgspec.Struct, frozen=True, kw_only=True):
    """A code of the printed link, or the gateway's token."""

    code: str = ""
    token: str = ""


class LoginState(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the browser is logged in, and what its changing requests need."""

    logged_in: bool
    csrf: str | None
    version: str
    open: bool
    """Whether the gateway needs no token."""
    server: str
    expires: float | None = None


class LoggedIn(msgspec.Struct, frozen=True, kw_only=True):
    """A new session."""

    csrf: str
    user: str
    expires: float


async def state(console: Console, call: Call) -> None:
    """Answers whether the browser is logged in."""
    expires = console.host.logins.expires(call.cookie) if call.cookie else None
    inside = call.access is Visitor.SESSION
    await call.answer(
        LoginState(
            logged_in=inside,
            csrf=csrf_of(call.cookie) if inside else None,
            version=__version__ if inside else "",
            open=console.host.options.token is None,
            server=console.boot,
            expires=expires,
        )
    )


async def log_in(console: Console, call: Call) -> None:
    """Starts a session for a code or the token."""
    given = call.body(LogIn)
    logins = console.host.logins
    cookie = await _cookie(console, call, given)
    expires = logins.expires(cookie) or 0.0
    body = encode(LoggedIn(csrf=csrf_of(cookie), user="admin", expires=expires))
    fields = (
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        set_cookie(cookie, secure=console.host.tls),
    )
    await call.out.whole(200, (*fields, *SECURITY), body)


async def _cookie(console: Console, call: Call, given: LogIn) -> str:
    host = console.host
    gateway = host.gateway
    address = gateway.proxies.client(call.asked.head, call.asked.address)
    now = gateway.parts.clock()
    if host.options.token is None:
        return host.logins.start()
    if console.failures.blocked(address, now) > 0:
        raise ApiError(429, "too many failed logins from this address; try again in a minute")
    if given.code:
        cookie = host.logins.redeem(given.code)
        if cookie is None:
            console.failures.add(address, now)
            hint = "a link works once and for 60 s; paste the token instead, or restart the gateway"
            raise ApiError(401, "this link was used before or is too old", hint)
        return cookie
    if not given.token:
        raise ApiError(400, "a code or a token is missing")
    caller = await gateway.parts.admission.identify([given.token], address)
    if not caller.admin:
        raise ApiError(403, "a key is not enough; log in with the token of the gateway")
    return host.logins.start()


async def log_out(console: Console, call: Call) -> None:
    """Ends the session of the browser."""
    if call.cookie:
        console.host.logins.end(call.cookie)
    await call.out.whole(204, (set_cookie("", secure=console.host.tls), *SECURITY))


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/login",
        does=state,
        about="Whether the browser is logged in.",
        returns=LoginState,
        open=True,
    ),
    ApiRoute(
        method="POST",
        path="/login",
        does=log_in,
        about="Log in with the code of a link, or with the token.",
        takes=LogIn,
        returns=LoggedIn,
        open=True,
    ),
    ApiRoute(method="POST", path="/logout", does=log_out, about="Log out.", status=204),
)
