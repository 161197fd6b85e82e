"""Pages from the web, as text: redirects, private addresses, size and time are checked."""

import asyncio
import codecs
import ipaddress
import re
import socket
import threading
import unicodedata
import zlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

import msgspec

from toolwire.tools.web import page_text
from toolwire.tools.workers import Worker, WorkerFailed

_GLOBAL = ipaddress.ip_network("2000::/3")
_EMBEDDING = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
_ISATAP = (0x00005EFE, 0x02005EFE)
# Older versions of Python count these as public; the last is a cloud's own service at each machine.
_SPECIAL = tuple(map(ipaddress.IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32")))
_LONGEST_HOST = 253
_DOTS = str.maketrans("\u3002\uff0e\uff61", "...")


def is_private(address: str) -> bool:
    """Whether an IP address is not one of the public internet."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return not ip.is_global or ip.is_multicast or any(ip in one for one in _SPECIAL)
    inner = _inner(ip)
    if any(is_private(str(one)) for one in inner):
        return True
    embedded = ip.ipv4_mapped is not None or any(ip in one for one in _EMBEDDING)
    return not embedded and (ip not in _GLOBAL or not ip.is_global or ip.is_multicast)


def _inner(ip: ipaddress.IPv6Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 addresses that a packet to this one may end at."""
    found = [one for one in (ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())) if one is not None]
    last = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if any(ip in network for network in _EMBEDDING) or int(ip) >> 32 & 0xFFFFFFFF in _ISATAP:
        found.append(last)
    return found


def is_public_name(url: str) -> bool:
    """Whether an address looks public by its name alone; what it resolves to is not asked."""
    host = plain_host(url).rstrip(".")
    if not host or host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return False
    literal = literal_address(host)
    return not is_private(literal) if literal else "." in host


def plain_host(url: str) -> str:
    """The host in plain small letters and digits; empty if there is none."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    if len(host) > _LONGEST_HOST:
        return ""
    # Full-width, circled and mathematical digits, and letters that are not seen.
    plain = unicodedata.normalize("NFKC", host.translate(_DOTS)).translate(_DOTS)
    return "".join(one for one in plain if unicodedata.category(one) != "Cf").lower()


def literal_address(host: str) -> str:
    """The address a host spells, in any form the system's resolver takes (127.1, 0x7f000001)."""
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError, ValueError):
        return ""


OFFERED = "gzip, deflate"
# What browsers read. Python knows other codecs by name that unpack, run escapes or take very long.
_BROWSERS = """
    utf-8 utf-16 utf-16-le utf-16-be ascii gbk gb2312 gb18030 big5 big5hkscs euc_jp shift_jis cp932
    iso2022_jp euc_kr cp949 koi8-r koi8-u mac-roman mac-cyrillic cp866 cp874 tis-620
    iso8859-1 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-9
    iso8859-10 iso8859-11 iso8859-13 iso8859-14 iso8859-15 iso8859-16
    cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258
"""
_ENCODINGS = frozenset(_BROWSERS.split())
_DECLARED = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{1,500}charset=[\"']?([\w-]{1,40})", re.IGNORECASE)
_START = 2048


class BadBody(ValueError):
    """A body that cannot be read; the message is the reason."""


class PageBody:
    """Collects a body chunk by chunk, up to the limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise BadBody(f"the page is compressed in a way that is not supported: {name[:40]}")
        self._name = name
        self._limit = limit
        self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if "gzip" in name else None
        self._kept = bytearray()

    def add(self, chunk: bytes) -> bool:
        """Whether more is needed."""
        left = self._limit - len(self._kept)
        if self._name == "deflate" and self._inflate is None and chunk:
            # Some servers leave out the header that the standard requires.
            bare = chunk[0] & 0x0F != 8
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS if bare else zlib.MAX_WBITS)
        if self._inflate is None:
            self._kept += chunk[:left]
        elif chunk:
            try:
                self._kept += self._inflate.decompress(chunk, left)
            except zlib.error as error:
                raise BadBody(f"the compressed page cannot be read: {error}") from error
        return len(self._kept) < self._limit

    def text(self, content_type: str) -> str:
        """The decoded body."""
        data = bytes(self._kept)
        return data.decode(charset(content_type, data[:_START]), "replace")


def charset(content_type: str, start: bytes) -> str:
    """The encoding that the header or the page names; UTF-8 if browsers do not support it."""
    declared, meta = _DECLARED.search(content_type), _META.search(start)
    for name in (declared[1] if declared else "", meta[1].decode() if meta else ""):
        try:
            found = codecs.lookup(name).name if name else ""
        except (LookupError, ValueError):
            continue
        if found in _ENCODINGS:
            return found
    return "utf-8"


if TYPE_CHECKING:
    from aiohttp import ClientResponse
    from aiohttp.abc import AbstractResolver, ResolveResult

MOST_BYTES = 5_000_000
MOST_REDIRECTS = 10
SECONDS = 10.0
LONGEST_URL = 8192
_TEXTUAL = re.compile(
    r"text/|application/(?:[\w.+-]*\+)?(?:json|xml|javascript|x-yaml|yaml|toml)\b"
)
_HTML = re.compile(r"text/html|application/xhtml\+xml")
_AGENT = "Mozilla/5.0 (compatible; toolwire)"


_Resolved = tuple[int | socket.AddressFamily, int | socket.SocketKind, int, str, tuple[Any, ...]]


class Fetching(msgspec.Struct, frozen=True, kw_only=True):
    """What may be fetched."""

    private: bool = False
    """Whether addresses of this machine and of private networks may be reached."""
    except_for: frozenset[str] = frozenset()
    """Private IP addresses that may be reached nevertheless."""
    seconds: float = SECONDS
    bytes: int = MOST_BYTES

    def forbid(self, address: str) -> bool:
        """Whether an IP address may not be reached."""
        return not self.private and address not in self.except_for and is_private(address)


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


async def fetch(url: str, rules: Fetching) -> Fetched:
    """The page's text, or the error; never raises."""
    import aiohttp  # noqa: PLC0415 - only those who fetch pay for it

    try:
        async with asyncio.timeout(rules.seconds):
            return Fetched(url=url, text=await _text(raw_address(url), rules))
    except TimeoutError:
        return Fetched(url=url, error=f"Request timed out after {rules.seconds:g} s")
    except (_Refused, aiohttp.ClientError, OSError, ValueError) as error:
        return Fetched(url=url, error=_why(error))


def _why(error: BaseException) -> str:
    """The message of an error: our own refusal, if it caused a library's error."""
    below: BaseException | None = error
    while below is not None:
        if isinstance(below, _Refused):
            return str(below)
        below = below.__cause__
    return str(error) or type(error).__name__


async def _text(url: str, rules: Fetching) -> str:
    import aiohttp  # noqa: PLC0415

    connector = aiohttp.TCPConnector(
        resolver=_checked_resolver(rules), socket_factory=partial(_checked_socket, rules)
    )
    # Proxies of the environment are not used: what they reach cannot be checked here.
    async with aiohttp.ClientSession(
        connector=connector,
        headers={"User-Agent": _AGENT, "Accept-Encoding": OFFERED},
        auto_decompress=False,
        trust_env=False,
    ) as session:
        for _ in range(MOST_REDIRECTS + 1):
            _check_address(url, rules)
            async with session.get(url, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("Location", ""))
                    continue
                text, html = await _read(response, rules)
            return await _converted(text, rules) if html else text
    raise _Refused(f"more than {MOST_REDIRECTS} redirects")


def _checked_resolver(rules: Fetching) -> "AbstractResolver":
    from aiohttp.abc import AbstractResolver  # noqa: PLC0415
    from aiohttp.resolver import ThreadedResolver  # noqa: PLC0415

    class Checked(AbstractResolver):
        """Resolves names, and refuses those with any address that may not be reached."""

        def __init__(self) -> None:
            self._inner = ThreadedResolver()

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list["ResolveResult"]:
            found = await self._inner.resolve(host, port, family)
            if any(rules.forbid(one["host"]) for one in found):
                raise OSError(f"{host} resolves to a private address") from _refused(host)
            return found

        async def close(self) -> None:
            await self._inner.close()

    return Checked()


def _checked_socket(rules: Fetching, info: _Resolved) -> socket.socket:
    """The last check: this address is connected to, however the host was spelled or resolved."""
    family, kind, protocol, _, address = info
    if rules.forbid(str(address[0])):
        raise OSError(f"{address[0]} is a private address") from _refused(str(address[0]))
    return socket.socket(family, kind, protocol)


def _refused(host: str) -> _Refused:
    return _Refused(
        f"{host} is a private or local address, which may not be fetched; "
        "the user can allow it with allow_private_addresses under [tools]"
    )


def _check_address(url: str, rules: Fetching) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or len(url) > LONGEST_URL:
        raise _Refused(f"not an http address: {url[:200]}")
    literal = literal_address(plain_host(url))
    if literal and rules.forbid(literal):
        raise _refused(parts.hostname)


async def _read(response: "ClientResponse", rules: Fetching) -> tuple[str, bool]:
    """The body as text, and whether it is HTML."""
    if response.status >= 400:
        raise ValueError(f"Request failed with status code {response.status} {response.reason}")
    kind = response.headers.get("Content-Type", "").lower()
    if kind and not _TEXTUAL.match(kind) and not _HTML.match(kind):
        size = response.headers.get("Content-Length", "?")
        return f"(not text: {kind.partition(';')[0]}, {size} bytes)", False
    body = PageBody(response.headers.get("Content-Encoding", ""), rules.bytes)
    async for chunk in response.content.iter_any():
        if not body.add(chunk):
            break
    text = body.text(kind)
    return text, bool(_HTML.match(kind)) or _looks_html(text, kind)


def _looks_html(text: str, kind: str) -> bool:
    return not kind and text[:1000].lstrip()[:15].lower().startswith(("<!doctype html", "<html"))


async def _converted(html: str, rules: Fetching) -> str:
    """By a process of its own: a page can be made so that it takes forever."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(_by_worker, html, rules.seconds, stop.is_set)
    finally:
        stop.set()


def _by_worker(html: str, seconds: float, stopped: Callable[[], bool]) -> str:
    data = html.encode("utf-8", "replace")
    with Worker("page", page_text.__file__, seconds=seconds, stopped=stopped) as worker:
        try:
            return worker.ask(data).decode("utf-8", "replace")
        except WorkerFailed as error:
            raise ValueError(f"the page cannot be converted to text: {error}") from error
