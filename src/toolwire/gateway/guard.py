"""Which requests may reach the gateway: hosts, origins, addresses, and guesses of keys."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import msgspec

from toolwire.errors import BadInput
from toolwire.http_server.exchange import Ends, Refusal, plain_refusal
from toolwire.wire.http1 import RequestHead

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_host_and_port = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]*))?").fullmatch
_origin = re.compile(r"(https?)://([^/?#@]+)").fullmatch
_COOKIE = "tw_session="
_PORTS = {"http": 80, "https": 443}
_ALLOWED_METHODS = "GET, POST, DELETE, OPTIONS"
_EXPOSED = "x-request-id, request-id, retry-after, toolwire-route, toolwire-losses"
_PREFLIGHT_SECONDS = "600"
_FAILURES = 20
_WINDOW = 60.0
_ADDRESSES = 10_000
"""Addresses whose failures are counted at one time."""


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """What the head of a request must have before its body is read."""

    hosts: tuple[str, ...] = ()
    """Names beside loopback: `name`, `name:port`, `*.domain`; in lower case."""
    origins: frozenset[str] = frozenset()
    """Origins of web pages that may send requests."""
    needs_key: bool = True
    """Without keys every page that a browser shows could send requests."""
    tls: bool = False
    ours: dict[tuple[str, str, int, str], None] = msgspec.field(
        default_factory=dict[tuple[str, str, int, str], None]
    )
    """Hosts that were served before, with the address they reached and the scheme."""

    def check(self, head: RequestHead, ends: Ends) -> Refusal | None:
        """Why the request is refused; None if it may go on."""
        if not self._is_ours(head.host, ends, self._scheme):
            words = "this host is not served here; add it to gateway.hosts if it should be"
            return plain_refusal(421, words)
        # A browser sends the console's cookie by itself, whichever page makes the request.
        ambient = not self.needs_key or _COOKIE in head.field("cookie")
        if not ambient or _is_preflight(head):
            return None
        return self._cross_site(head, ends)

    def _cross_site(self, head: RequestHead, ends: Ends) -> Refusal | None:
        origin = head.field("origin")
        if origin and origin not in self.origins and not self._is_our_page(origin, ends):
            return plain_refusal(403, "requests of this Origin are not allowed")
        if "cross-site" in head.field("sec-fetch-site") and origin not in self.origins:
            return plain_refusal(403, "requests of other sites are not allowed")
        if head.length != 0 and not is_json(head.field("content-type")):
            # A form of any page can send other types without asking first.
            return plain_refusal(415, "send the body as application/json")
        return None

    @property
    def _scheme(self) -> str:
        return "https" if self.tls else "http"

    def _is_our_page(self, origin: str, ends: Ends) -> bool:
        found = _origin(origin)
        return found is not None and self._is_ours(found[2], ends, found[1])

    def _is_ours(self, host: str, ends: Ends, scheme: str) -> bool:
        key = (host, ends.server, ends.port, scheme)
        if key in self.ours:
            return True
        if not self._is_served(host, ends, scheme):
            return False
        if len(self.ours) >= _ADDRESSES:
            self.ours.clear()
        self.ours[key] = None
        return True

    def _is_served(self, host: str, ends: Ends, scheme: str) -> bool:
        found = _host_and_port(host.lower())
        if found is None or not found[1]:
            return False
        name, port = found[1], int(found[2] or _PORTS[scheme])
        if (name in _LOOPBACK or name.strip("[]") == ends.server) and port == ends.port:
            return True
        return any(_matches(name, port, entry) for entry in self.hosts)

    def cors(self, head: RequestHead) -> tuple[tuple[str, str], ...]:
        """The headers that let a configured page read the answer; none for other origins."""
        origin = head.field("origin")
        if not origin or origin not in self.origins:
            return ()
        return (
            ("access-control-allow-origin", origin),
            ("access-control-expose-headers", _EXPOSED),
            ("vary", "origin"),
        )

    def preflight(self, head: RequestHead) -> tuple[tuple[str, str], ...] | None:
        """The headers that answer a page's question before a request; None for other requests."""
        if not _is_preflight(head):
            return None
        allowed = self.cors(head)
        if not allowed:
            return (("vary", "origin"),)
        names = head.field("access-control-request-headers")
        return (
            *allowed,
            ("access-control-allow-methods", _ALLOWED_METHODS),
            *((("access-control-allow-headers", names),) if names else ()),
            ("access-control-max-age", _PREFLIGHT_SECONDS),
        )


def _is_preflight(head: RequestHead) -> bool:
    return head.method == "OPTIONS" and bool(head.field("access-control-request-method"))


def _matches(name: str, port: int, entry: str) -> bool:
    found = _host_and_port(entry)
    if found is None or (found[2] and int(found[2]) != port):
        return False
    wanted = found[1]
    if wanted.startswith("*."):
        return name.endswith(wanted[1:]) and len(name) > len(wanted) - 1
    return name == wanted


def is_json(content_type: str) -> bool:
    """Whether a content type is JSON."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (
        kind.startswith("application/") and kind.endswith("+json")
    )


class TrustedProxies:
    """Addresses of proxies in front of the gateway, whose report of the client is believed."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._networks: list[IPv4Network | IPv6Network] = []
        for entry in entries:
            try:
                self._networks.append(ip_network(entry, strict=False))
            except ValueError:
                raise BadInput(
                    f'gateway.trusted_proxies: "{entry}" is not an address or network; '
                    "write for example 10.0.0.0/8"
                ) from None

    def __contains__(self, address: object) -> bool:
        if not self._networks or not isinstance(address, str):
            return False
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks)

    def client(self, head: RequestHead, address: str) -> str:
        """The address of the client: the last one in X-Forwarded-For that is not a proxy."""
        if address not in self:
            return address
        listed = [each.strip() for each in head.field("x-forwarded-for").split(",")]
        for each in reversed(listed):
            if each not in self:
                return each if _is_address(each) else address
        return address


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _network(address: str) -> str:
    """Returns the address; of IPv6 the network that one host has to itself."""
    if ":" not in address:
        return address
    try:
        found = IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((found, 64), strict=False).network_address)


class Failures:
    """Refused credentials by address; too many in a minute block it."""

    def __init__(self, most: int = _FAILURES, window: float = _WINDOW) -> None:
        self._most = most
        self._window = window
        self._seen: dict[str, list[float]] = {}

    def blocked(self, address: str, now: float) -> float:
        """Seconds until the address may try again; 0 if it may now."""
        if not self._seen:
            return 0.0
        address = _network(address)
        times = self._recent(address, now)
        return times[-self._most] + self._window - now if len(times) >= self._most else 0.0

    def add(self, address: str, now: float) -> None:
        """Counts a refused credential."""
        address = _network(address)
        times = [*self._recent(address, now), now][-self._most :]
        self._seen.pop(address, None)
        self._seen[address] = times
        if len(self._seen) > _ADDRESSES:
            # The one whose last failure is the longest ago.
            del self._seen[next(iter(self._seen))]

    def _recent(self, address: str, now: float) -> list[float]:
        times = self._seen.get(address)
        if times is None:
            return []
        return [time for time in times if now - time < self._window]
