"""Pages from the web, as text: redirects, addresses, size and time are checked."""

import asyncio
import codecs
import ipaddress
import re
import socket
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import msgspec

from toolwire.tools.page_text import page_text

if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from aiohttp.abc import ResolveResult

MOST_BYTES = 5_000_000
MOST_REDIRECTS = 10
SECONDS = 10.0
_TEXTUAL = re.compile(
    r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|javascript|x-yaml|yaml|toml)\b"
)
_HTML = re.compile(r"text/html|application/xhtml\+xml")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_AGENT = "Mozilla/5.0 (compatible; toolwire)"


class Fetching(msgspec.Struct, frozen=True, kw_only=True):
    """What may be fetched."""

    private: bool = False
    """Whether addresses of this machine and of private networks may be reached."""
    seconds: float = SECONDS
    bytes: int = MOST_BYTES


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """One page as text, or why there is none."""

    url: str
    text: str = ""
    error: str = ""


class _Refused(Exception):
    """An address that may not be reached."""


def raw_address(url: str) -> str:
    """A file's page on GitHub as the file itself."""
    parts = urlsplit(url)
    if parts.hostname in ("github.com", "www.github.com") and "/blob/" in parts.path:
        path = parts.path.replace("/blob/", "/", 1)
        return f"https://raw.githubusercontent.com{path}"
    return url


def is_private(address: str) -> bool:
    """Whether an IP address is not one of the public internet."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if inner is None and ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_private(str(inner))
    return not ip.is_global or ip.is_multicast


def is_public_name(url: str) -> bool:
    """Whether an address looks public by its name alone; what it resolves to is not asked."""
    host = (_host(url) or "").rstrip(".").lower()
    if not host or host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return False
    literal = _literal(host)
    return not is_private(literal) if literal else "." in host


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _literal(host: str) -> str:
    """The address a host spells, in any form the system's resolver takes (127.1, 0x7f000001)."""
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return ""


async def fetch(url: str, rules: Fetching) -> Fetched:
    """The page's text; whatever goes wrong is told, not raised."""
    import aiohttp  # noqa: PLC0415 - only those who fetch pay for it

    try:
        async with asyncio.timeout(rules.seconds):
            return Fetched(url=url, text=await _text(raw_address(url), rules))
    except TimeoutError:
        return Fetched(url=url, error=f"Request timed out after {rules.seconds:g} s")
    except (_Refused, aiohttp.ClientError, OSError, ValueError) as error:
        return Fetched(url=url, error=_why(error))


def _why(error: BaseException) -> str:
    """What is wrong in words: our own refusal, where one lies below a library's error."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, _Refused):
            return str(below)
        below = below.__cause__
    return str(error) or type(error).__name__


async def _text(url: str, rules: Fetching) -> str:
    import aiohttp  # noqa: PLC0415
    from aiohttp.abc import AbstractResolver  # noqa: PLC0415
    from aiohttp.resolver import ThreadedResolver  # noqa: PLC0415

    class Checked(AbstractResolver):
        """Resolves names, and refuses those that lead where we may not go."""

        def __init__(self) -> None:
            self._inner = ThreadedResolver()

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list["ResolveResult"]:
            found = await self._inner.resolve(host, port, family)
            if any(is_private(one["host"]) for one in found):
                # The connection goes to what was checked here, so a second answer cannot differ.
                raise OSError(f"{host} leads to a private address") from _refused(host)
            return found

        async def close(self) -> None:
            await self._inner.close()

    connector = aiohttp.TCPConnector(resolver=None if rules.private else Checked())
    async with aiohttp.ClientSession(
        connector=connector, headers={"User-Agent": _AGENT}
    ) as session:
        for _ in range(MOST_REDIRECTS + 1):
            _check_address(url, rules)
            async with session.get(url, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("Location", ""))
                    continue
                return await _read(response, rules)
    raise _Refused(f"more than {MOST_REDIRECTS} redirects")


def _refused(host: str) -> _Refused:
    return _Refused(
        f"{host} is a private or local address, which may not be fetched; "
        "the user can allow it with allow_private_addresses under [tools]"
    )


def _check_address(url: str, rules: Fetching) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _Refused(f"not an http address: {url[:200]}")
    literal = _literal(parts.hostname)
    if literal and not rules.private and is_private(literal):
        raise _refused(parts.hostname)


async def _read(response: "ClientResponse", rules: Fetching) -> str:
    if response.status >= 400:
        raise ValueError(f"Request failed with status code {response.status} {response.reason}")
    kind = response.headers.get("Content-Type", "").lower()
    if kind and not _TEXTUAL.match(kind) and not _HTML.match(kind):
        size = response.headers.get("Content-Length", "?")
        return f"(not text: {kind.partition(';')[0]}, {size} bytes)"
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > rules.bytes:
            del body[rules.bytes :]
            break
    text = bytes(body).decode(_charset(response.charset, bytes(body[:2048])), "replace")
    return page_text(text) if _HTML.match(kind) or _looks_html(text, kind) else text


def _looks_html(text: str, kind: str) -> bool:
    return not kind and text.lstrip()[:15].lower().startswith(("<!doctype html", "<html"))


def _charset(declared: str | None, start: bytes) -> str:
    found = re.search(rb"<meta[^>]+charset=[\"']?([\w-]+)", start, re.IGNORECASE)
    for name in (declared, found.group(1).decode() if found else None):
        try:
            if name:
                return codecs.lookup(name).name
        except LookupError:
            continue
    return "utf-8"
