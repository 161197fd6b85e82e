"""What logins share: HTTP with errors that never contain a secret, and short-lived tokens."""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from toolwire.client.http.transport import HttpLimits, HttpTransport, Outgoing
from toolwire.client.redact import Secret, hide_in_url, without_secrets
from toolwire.errors import BadInput, ConnectionFailed, ErrorKind, ProviderError
from toolwire.wire.json_access import JsonObject, encode, is_object, parse

EARLY = 300.0
"""Seconds before its end at which a token is replaced."""
JUST_NOW = 30.0
_LIMITS = HttpLimits(connect=10.0, read=30.0, total=30.0)
_FORM = "application/x-www-form-urlencoded"
_LONGEST = 300
_MAX_REPLY = 1024 * 1024


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A short-lived token."""

    secret: Secret
    expires_at: float
    made_at: float
    base_url: str = ""
    """The address it is bound to; "" for none."""
    quota_project: str = ""


class TokenSource:
    """A token in memory, replaced before it expires and after a refusal."""

    def __init__(self, fetch: Callable[[], Awaitable[Token]], now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
        self._token: Token | None = None
        self._one_at_a_time = asyncio.Lock()

    async def current(self, refresh: bool = False) -> Token:
        """The token; `refresh` after the server refused it."""
        async with self._one_at_a_time:
            token = self._token
            if token is None or self._is_stale(token, refresh):
                token = self._token = await self._fetch()
            return token

    def _is_stale(self, token: Token, refresh: bool) -> bool:
        if self._now() >= token.expires_at - EARLY:
            return True
        # Requests refused at the same time share one exchange.
        return refresh and self._now() - token.made_at >= JUST_NOW


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A status and the JSON object of the body; `{}` if it is not one."""

    status: int
    body: JsonObject

    def __repr__(self) -> str:
        return f"Reply(status={self.status})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("status", self.status)]

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return 200 <= self.status < 300

    def word(self, key: str) -> str:
        """A text member, "" when absent."""
        value = self.body.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """A number member, None when absent."""
        value = self.body.get(key)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None


async def post_form(
    url: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None
) -> Reply:
    """Post form fields."""
    return await _send("POST", url, headers, _FORM, urlencode(fields).encode())


async def post_json(url: str, body: JsonObject, headers: Mapping[str, str] | None = None) -> Reply:
    """Post a JSON object."""
    return await _send("POST", url, headers, "application/json", encode(body))


async def get_json(url: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Get a JSON object."""
    return await _send("GET", url, headers)


def refused(
    reply: Reply, what: str, way_out: str = "", kind: ErrorKind | None = None
) -> ProviderError:
    """The error for an unsuccessful reply, with the vendor's message."""
    reason = without_secrets(_words(reply.body))[:_LONGEST]
    message = f"{what}: {reason or f'status {reply.status}'}"
    if way_out:
        message += f"; {way_out}"
    return ProviderError(kind or _kind(reply.status), message, status=reply.status)


async def _send(
    method: str, url: str, headers: Mapping[str, str] | None, kind: str = "", body: bytes = b""
) -> Reply:
    if not is_safe(url):
        raise BadInput(f"refusing to send a secret to {hide_in_url(url)}; use https")
    sent = {"accept": "application/json", **(headers or {})}
    if kind:
        sent["content-type"] = kind
    request = Outgoing(method=method, url=url, headers=tuple(sent.items()), body=body)
    transport = HttpTransport(_LIMITS)
    try:
        async with transport.open(request) as answer:
            content = bytearray()
            async for chunk in answer.chunks:
                content += chunk
                if len(content) > _MAX_REPLY:
                    raise ConnectionFailed(
                        f"{hide_in_url(url)} answers with more than {_MAX_REPLY} bytes"
                    )
            return Reply(status=answer.status, body=_object(bytes(content)))
    finally:
        await transport.aclose()


def is_safe(url: str) -> bool:
    """Whether a secret may be sent there: https, or this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (
        parts.scheme == "http" and _is_loopback(parts.hostname or "")
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _object(content: bytes) -> JsonObject:
    try:
        value = parse(content, "reply")
    except BadInput:
        return {}
    return value if is_object(value) else {}


def _words(body: JsonObject) -> str:
    error: Any = body.get("error")
    inner: JsonObject = error if is_object(error) else body
    for key in ("error_description", "message", "error"):
        value = inner.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _kind(status: int) -> ErrorKind:
    match status:
        case 400 | 401:
            return ErrorKind.AUTH
        case 403:
            return ErrorKind.PERMISSION
        case 404:
            return ErrorKind.NOT_FOUND
        case 429:
            return ErrorKind.RATE_LIMIT
        case _:
            return ErrorKind.SERVER
