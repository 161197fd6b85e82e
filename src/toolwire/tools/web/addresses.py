"""Distinguishes addresses of the public internet from local and private ones."""

import ipaddress
import socket
import unicodedata
from urllib.parse import urlsplit

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
