"""Listening sockets: bound here or by systemd, with TLS."""

import os
import socket
import ssl
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

from toolwire.errors import BadInput, ToolwireError

_FIRST_PASSED = 3
"""The descriptor of the first socket that systemd passes."""
_BACKLOG = 1024


def bind(host: str, port: int, count: int = 1) -> list[socket.socket]:
    """Sockets that share one port, among which the system divides connections; 0 takes any port."""
    found: list[socket.socket] = []
    try:
        for _ in range(count):
            one = _bound(host, port, shared=count > 1)
            found.append(one)
            port = one.getsockname()[1]
    except OSError as error:
        for one in found:
            one.close()
        shown = f"[{host}]" if ":" in host else host
        raise ToolwireError(
            f"cannot listen on {shown}:{port}: {error.strerror or error}; choose another port"
        ) from error
    return found


def _bound(host: str, port: int, *, shared: bool) -> socket.socket:
    [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    one = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6 and host != "::":
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)
        one.listen(_BACKLOG)
        one.setblocking(False)
    except OSError:
        one.close()
        raise
    return one


def activated(environ: MutableMapping[str, str]) -> list[socket.socket]:
    """The sockets that systemd has bound for this process; their variables are removed."""
    meant_for, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if meant_for != str(os.getpid()) or not (count.isascii() and count.isdigit()):
        return []
    return [adopted(number) for number in range(_FIRST_PASSED, _FIRST_PASSED + int(count))]


def adopted(descriptor: int) -> socket.socket:
    """An inherited listening socket; ToolwireError if it is none."""
    try:
        one = socket.socket(fileno=descriptor)
        os.set_inheritable(descriptor, False)
        if not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise OSError("it does not listen")
    except OSError as error:
        raise ToolwireError(f"the inherited socket {descriptor} cannot be used: {error}") from error
    one.setblocking(False)
    return one


def notify(environ: MutableMapping[str, str], state: str) -> None:
    """Reports a state such as `READY=1` to systemd, if it started this process."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.connect(address)
        one.sendall(state.encode())


class TlsFiles:
    """A certificate and its key, which can be renewed while the server runs."""

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = self._loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))

    def reload(self) -> None:
        """Uses the files as they are now, for connections from now on; BadInput changes nothing."""
        self._loaded(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))
        self._loaded(self.context)

    def _loaded(self, context: ssl.SSLContext) -> ssl.SSLContext:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # An empty password: OpenSSL would otherwise ask for one at the terminal.
            context.load_cert_chain(self._certificate, self._key, password="")
        except ssl.SSLError as error:
            words = (error.reason or str(error)).lower().replace("_", " ")
            raise BadInput(
                f"cannot use {self._certificate} with {self._key}: {words}; "
                "both must be PEM files, the key without a password"
            ) from error
        except OSError as error:
            raise BadInput(
                f"cannot read {self._certificate} and {self._key}: {error.strerror or error}"
            ) from error
        return context
