"""The running gateway: its parts from settings and flags, its socket, and its token."""

import gc
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec

from toolwire.app.model_choice import choose_model
from toolwire.app.model_stack import Opened, open_model
from toolwire.client.http.exchange import HttpLimits as ClientLimits
from toolwire.client.http.transport import HttpTransport
from toolwire.client.redact import Secret
from toolwire.client.retry import Learned, RetryPolicy
from toolwire.config import Settings
from toolwire.errors import BadInput
from toolwire.gateway.deployments import READ_BYTES
from toolwire.gateway.guard import Guard
from toolwire.gateway.parts import GatewayParts
from toolwire.gateway.record import RecordReader
from toolwire.gateway.server import Gateway
from toolwire.gateway.simple import EveryName, TokenAdmission
from toolwire.gateway.turn_memory import open_memory
from toolwire.http_server.listener import HttpLimits, HttpListener
from toolwire.providers.custom import Upstream
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import read_private, write_private

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CONNECTIONS = 4096
_OWN_ADDRESSES = frozenset({"127.0.0.1", "::1"})
"""Shared by every client of this machine: one busy program must not lock the others out."""
_ATTEMPTS = 3


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says beside the settings."""

    model: str = ""
    """`provider/model` for every request."""
    upstream: Upstream | None = None
    token: Secret | None = None
    """None lets every local program in."""


class RunningGateway(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway that listens."""

    origin: str
    """`http://host:port`."""
    gateway: Gateway
    listener: HttpListener


@asynccontextmanager
async def open_gateway(
    settings: Settings,
    options: ServeOptions,
    *,
    environ: Mapping[str, str],
    notice: Callable[[str], None],
    readers: tuple[RecordReader, ...] = (),
) -> AsyncGenerator[RunningGateway]:
    """Listens until the block ends; a port or model that cannot be used is an error."""
    own = settings.gateway
    async with AsyncExitStack() as stack:
        http = HttpTransport(ClientLimits(read_bytes=READ_BYTES))
        stack.push_async_callback(http.aclose)
        routes = await _every_name(settings, options, environ, http, notice)
        kept = open_memory(own, gateway_folder(environ), time.time)
        stack.callback(kept.close)
        parts = GatewayParts(
            routes=routes,
            admission=TokenAdmission(options.token),
            memory=kept.memory,
            stored=kept.stored,
            clock=time.time,
            readers=readers,
            settings=own,
        )
        gateway = Gateway(parts)
        limits = HttpLimits(
            connections=_CONNECTIONS, body_bytes=own.body_limit, write_seconds=own.write_seconds
        )
        guard = Guard(
            hosts=own.hosts, origins=frozenset(own.cors), needs_key=options.token is not None
        )
        listener = HttpListener(
            gateway.handle, limits, check=guard.check, cancels=True, proxies=_OWN_ADDRESSES
        )
        stack.push_async_callback(listener.aclose)
        try:
            port = await listener.start(own.host, own.port)
        except OSError as error:
            raise BadInput(
                f"cannot listen on {own.host}:{own.port}: {error.strerror or error}; "
                "choose another port with --port"
            ) from error
        # What was loaded stays: later collections need not look at it.
        gc.collect()
        gc.freeze()
        shown = f"[{own.host}]" if ":" in own.host else own.host
        yield RunningGateway(origin=f"http://{shown}:{port}", gateway=gateway, listener=listener)


async def _every_name(
    settings: Settings,
    options: ServeOptions,
    environ: Mapping[str, str],
    http: HttpTransport,
    notice: Callable[[str], None],
) -> EveryName:
    """The model that answers every request."""
    chosen = choose_model(settings, environ, model=options.model, upstream=options.upstream)
    provider, _, model = chosen.name.partition("/")
    learned = Learned()

    async def open_named(name: str) -> Opened:
        return await open_model(
            f"{provider}/{name}",
            settings=chosen.settings,
            environ=environ,
            transport=http,
            key=chosen.key,
            tool_style=chosen.style or settings.tool_style,
            learned=learned,
            policy=retry_policy(settings),
            notice=notice,
        )

    # Without a model of its own an upstream gets the name that the client sent.
    fixed = "" if options.upstream is not None and not options.upstream.named else model
    routes = EveryName(open_named, fixed)
    await routes.find(model)
    return routes


def retry_policy(settings: Settings) -> RetryPolicy:
    """A wait longer than the hold is left to the client."""
    return RetryPolicy(attempts=_ATTEMPTS, longest_delay=settings.gateway.hold_seconds)


def stored_token(environ: Mapping[str, str], notice: Callable[[str], None]) -> Secret:
    """The token of this user's gateway; made at its first start."""
    path = token_file(environ)
    found = read_private(path, notice)
    text = found.decode("ascii", "ignore").strip() if found else ""
    if not text:
        text = secrets.token_urlsafe(32)
        write_private(path, f"{text}\n".encode())
    return Secret(text)


def token_file(environ: Mapping[str, str]) -> Path:
    """Where the token is stored."""
    return gateway_folder(environ) / "token"


def gateway_folder(environ: Mapping[str, str]) -> Path:
    """Where the gateway stores its state."""
    return state_paths(environ).state / "gateway"
