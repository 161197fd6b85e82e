"""Credentials go over https, or over http to this machine; elsewhere only if the user allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolwire.client.http.address import Address
from toolwire.client.http.exchange import Outgoing
from toolwire.client.redact import secrets_of
from toolwire.errors import BadInput

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

_LOOPBACK = frozenset({"127.0.0.1", "::1"})


def is_exposed(request: Outgoing, address: Address) -> bool:
    """Whether the request would carry a credential unencrypted."""
    if address.scheme != "http" or request.insecure:
        return False
    return bool(address.login or secrets_of(request.url, request.headers))


def exposed(host: str) -> BadInput:
    """The error for a credential that would leave this machine unencrypted."""
    return BadInput(
        f"refusing to send a credential to {host} over http, where others can read it; use https, "
        "or set allow_insecure_http = true for this provider"
    )


async def names_this_machine(loop: AbstractEventLoop, address: Address) -> bool:
    """Whether the host stands for addresses of this machine and no other."""
    if address.host in _LOOPBACK:
        return True
    from socket import SOCK_STREAM  # noqa: PLC0415 - start-up time

    try:
        found = await loop.getaddrinfo(address.host, address.port, type=SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(is_this_machine(str(one[4][0])) for one in found)


def is_this_machine(number: str) -> bool:
    """Whether an address, in numbers, never leaves this machine."""
    if number in _LOOPBACK:
        return True
    from ipaddress import IPv6Address, ip_address  # noqa: PLC0415 - start-up time

    try:
        found = ip_address(number.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    # 0.0.0.0 is this machine too, where one connects to it.
    return found.is_loopback or found.is_unspecified
