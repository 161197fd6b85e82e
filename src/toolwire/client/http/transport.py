"""HTTP transport: direct, or through the environment's proxy."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from toolwire.client.http.exchange import (
    USUAL,
    Address,
    HttpLimits,
    Incoming,
    Outgoing,
    Transport,
    read_address,
)
from toolwire.client.http.pool import PlainHttp, exposed, is_exposed
from toolwire.client.redact import learn_url
from toolwire.errors import BadInput

_MOST_WAYS = 128
"""URLs whose address and proxy are remembered."""


class Proxies:
    """The environment's proxies, looked up once per host."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str | None] = {}

    def of(self, url: str) -> str | None:
        """The proxy for a URL; None for a direct connection."""
        parts = urlsplit(url)
        key = (parts.scheme, parts.netloc)
        if key not in self._known:
            self._known[key] = _find(parts.scheme, parts.hostname or "")
        return self._known[key]


class _Way(msgspec.Struct, frozen=True):
    """How a URL is reached."""

    address: Address
    proxy: str | None


def _find(scheme: str, host: str) -> str | None:
    # A model on this machine is never behind the proxy, even if NO_PROXY omits it.
    if host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost"):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - start-up time

    named = getproxies()
    proxy = named.get(scheme) or named.get("all")
    if not proxy or proxy_bypass(host):
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    learn_url(proxy)
    kind = proxy.partition("://")[0].lower()
    if kind not in ("http", "https"):
        raise BadInput(
            f"the environment names a {kind} proxy for {host}; only http and https proxies work, "
            "set another or add the host to NO_PROXY"
        )
    return proxy


if TYPE_CHECKING:
    from ssl import SSLContext

    from toolwire.client.http.aiohttp_proxy import ProxiedHttp

__all__ = ["HttpLimits", "HttpTransport", "Incoming", "Outgoing", "Transport"]


class HttpTransport:
    """HTTP over one connection pool; bound to the event loop that first uses it."""

    def __init__(
        self, limits: HttpLimits = USUAL, *, ca_file: str = "", env_proxies: bool = True
    ) -> None:
        self._limits = limits
        self._ca_file = ca_file
        """Certificates to trust besides the system's."""
        self._proxies = Proxies() if env_proxies else None
        self._ways: dict[str, _Way] = {}
        self._context: SSLContext | None = None
        self._plain = PlainHttp(limits, self._certificates)
        self._proxied: ProxiedHttp | None = None

    async def aclose(self) -> None:
        """Close every connection."""
        await self._plain.aclose()
        if self._proxied is not None:
            await self._proxied.aclose()

    def open(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """Send; leaving the context before the body's end drops the connection."""
        way = self._ways.get(request.url) or self._way(request.url)
        address, proxy = way.address, way.proxy
        if proxy is None:
            return self._plain.open(request, address)
        if is_exposed(request, address):
            # Proxies are never used for this machine itself.
            raise exposed(address.shown)
        if self._proxied is None:
            from toolwire.client.http.aiohttp_proxy import ProxiedHttp  # noqa: PLC0415 - start-up time

            self._proxied = ProxiedHttp(self._limits, self._certificates)
        return self._proxied.open(request, address.shown, proxy)

    def _way(self, url: str) -> _Way:
        address = read_address(url)
        if len(self._ways) >= _MOST_WAYS:
            self._ways.clear()
        proxy = self._proxies.of(url) if self._proxies is not None else None
        way = self._ways[url] = _Way(address, proxy)
        return way

    def _certificates(self) -> SSLContext:
        if self._context is None:
            self._context = _trusting(self._ca_file)
        return self._context


def _trusting(ca_file: str) -> SSLContext:
    import ssl  # noqa: PLC0415 - start-up time

    # The system's, or those of SSL_CERT_FILE and SSL_CERT_DIR.
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(f"cannot read certificates from {ca_file}: {error}") from error
    return context
