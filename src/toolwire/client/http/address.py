"""A parsed URL: where to connect, the request target, and its name in errors."""

from base64 import b64encode
from functools import lru_cache
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

from toolwire.client.redact import hide_in_url
from toolwire.errors import BadInput

_PORTS = {"http": 80, "https": 443}
_ASCII = "".join(map(chr, range(33, 127)))


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a request that its URL determines; its repr shows no credentials."""

    scheme: str
    host: str
    """As used by the resolver and in certificates."""
    port: int
    target: str
    """Path and query, as in the request line."""
    authority: str
    """For the `Host` header."""
    shown: str
    """For messages: host, and port if one was given."""
    login: str
    """The `authorization` header for a user and password in the URL."""

    def __repr__(self) -> str:
        return f"Address({self.scheme}://{self.authority})"


@lru_cache(maxsize=128)
def read_address(url: str) -> Address:
    """Parse a URL; raises BadInput for an invalid one."""
    parts, port = _split(url)
    host = parts.hostname
    if not host:
        raise BadInput(f"{hide_in_url(url)} is not a valid address: it has no host")
    shown = f"{host}:{port}" if port else host
    if parts.scheme not in _PORTS:
        raise BadInput(f"{shown}: the address cannot be read")
    name = _ascii_host(host, url)
    bracketed = f"[{name}]" if ":" in name else name
    usual = _PORTS[parts.scheme]
    return Address(
        scheme=parts.scheme,
        host=name,
        port=port or usual,
        target=_target(parts, url),
        authority=bracketed if port in (None, usual) else f"{bracketed}:{port}",
        shown=shown,
        login=_login(parts),
    )


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise BadInput(f"{hide_in_url(url)} is not a valid address: it has no host") from None


def _ascii_host(host: str, url: str) -> str:
    try:
        # A name with other letters is looked up in its ASCII form.
        name = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not name or any(sign <= " " or sign in '"<>\\^`{|}/?#\x7f' for sign in name):
        raise BadInput(f"{hide_in_url(url)} is not a valid address")
    return name


def _target(parts: SplitResult, url: str) -> str:
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    try:
        # A login in the URL must be encodable too.
        url.encode()
    except UnicodeError:
        raise BadInput("an address with a lone surrogate is not a valid address") from None
    if any(sign <= " " or sign == "\x7f" for sign in target):
        raise BadInput(f"{hide_in_url(url)} is not a valid address")
    return target if target.isascii() else quote(target, safe=_ASCII)


def _login(parts: SplitResult) -> str:
    if parts.username is None and parts.password is None:
        return ""
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"
