"""The running gateway: its parts from settings and flags, its socket, and its token."""

from __future__ import annotations

import asyncio
import secrets
import socket
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire import dialects
from toolwire.client.redact import Secret
from toolwire.config import Settings
from toolwire.config.gateway import GatewaySettings
from toolwire.config.merging import Resolved
from toolwire.errors import BadInput, ModelMissing
from toolwire.gateway.access_log import AccessLog, Style
from toolwire.gateway.accounts import (
    Accounts,
    EveryRequest,
    ReadyProviders,
    every_request,
    ledger_file,
    open_routes,
)
from toolwire.gateway.console.auth import ConsoleLogins
from toolwire.gateway.guard import Guard, TrustedProxies
from toolwire.gateway.lifecycle import Lifecycle, LoopLag, State
from toolwire.gateway.listing import ListedModel
from toolwire.gateway.lookups import listed_models, one_model
from toolwire.gateway.metrics import LabelNames, Metrics, Sample, gauges, of_process
from toolwire.gateway.operations import Operations
from toolwire.gateway.parts import GatewayParts
from toolwire.gateway.record import RecordBatches, RecordReader
from toolwire.gateway.reload import Reloader
from toolwire.gateway.routing import GatewayRoutes
from toolwire.gateway.server import Gateway
from toolwire.gateway.sockets import TlsFiles, bind
from toolwire.gateway.turn_memory import open_memory
from toolwire.http_server.listener import HttpLimits, HttpListener
from toolwire.ids import new_id
from toolwire.providers.custom import Upstream
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import read_private, write_private

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console
    from toolwire.gateway.spans import GatewaySpans

_CONNECTIONS = 4096
_OWN_ADDRESSES = ("127.0.0.1", "::1")
"""Shared by every client of this machine: one busy program must not lock the others out."""
_BETWEEN_FORMATS = 0.05
"""Seconds, so that requests meanwhile do not wait for all of them."""
_LAST_SECONDS = 2.0
"""For errors to reach the clients of answers that are cut at the end."""


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line says beside the settings."""

    model: str = ""
    """`provider/model` for every request."""
    upstream: Upstream | None = None
    token: Secret | None = None
    """None lets every local program in."""
    log: str = "off"
    """`json`, `text` or `off`."""
    console_port: int = 0
    """The port of the worker that has the console, if there are several; 0 for every port."""
    sockets: tuple[socket.socket, ...] = ()
    """Bound already, by systemd or the parent of several workers."""
    load: Callable[[], Settings] | None = None
    """Reads the settings again; None if they do not change."""
    resolve: Callable[[], Resolved] | None = None
    """Reads them with the origin of each value."""
    files: tuple[Path, ...] = ()
    """Settings files, which may not exist."""


class RunningGateway(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway that listens."""

    origin: str
    """`http://host:port`."""
    gateway: Gateway
    listener: HttpListener
    life: Lifecycle
    reloader: Reloader
    logins: ConsoleLogins
    close_console: Callable[[], None]
    """Ends the streams of the console's pages."""
    tls: TlsFiles | None = None
    log: AccessLog | None = None

    async def drain(self) -> None:
        """Lets open answers end, for a time; those that wait for one are refused at once."""
        self.gateway.interrupt(waiting_only=True)
        self.close_console()
        seconds = self.gateway.parts.settings.drain_seconds
        if not await self.life.drained(self.listener.drain(), seconds):
            self.gateway.interrupt(waiting_only=False)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await self.listener.drain()

    def reopen(self) -> None:
        """Reads settings, log and certificate again; BadInput leaves the old certificate."""
        self.reloader.soon()
        if self.log is not None:
            self.log.reopen()
        if self.tls is not None:
            self.tls.reload()


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
        accounts = Accounts(ledger_file(environ), own, options.token)
        stack.callback(accounts.close)
        await accounts.tidy()
        every = every_request(settings, environ, options.model, options.upstream)
        routes, opener = open_routes(settings, environ, accounts, every)
        stack.push_async_callback(opener.aclose)
        await _check_model(routes, every, settings, environ)
        for problem in await routes.check():
            notice(problem)
        kept = open_memory(own, gateway_folder(environ), time.time)
        stack.callback(kept.close)
        parts = GatewayParts(
            routes=routes,
            admission=accounts.admission,
            memory=kept.memory,
            stored=kept.stored,
            clock=time.time,
            readers=readers,
            settings=own,
            listed=_listed(settings, options, environ),
        )
        life = Lifecycle(lambda: accounts.store.failure)
        metrics = Metrics(LabelNames(lambda: gateway.parts), (of_process, lambda: _state(accounts)))
        tls = TlsFiles(Path(own.tls_cert), Path(own.tls_key)) if own.tls_cert else None
        guard = _guard(own, options)
        log = _access_log(own, options.log)
        if log is not None:
            stack.callback(log.close)
        together = RecordBatches(metrics.count_all, *(() if log is None else (log.write,)))
        stack.callback(together.flush)
        seen = (accounts.read, together, *readers)

        async def refresh() -> None:
            together.flush()
            await accounts.look()

        if settings.telemetry.active:
            spans, traces = _spans(settings, environ)
            stack.callback(lambda: _report(spans.close(), notice))
            seen = (*seen, spans)
            parts = msgspec.structs.replace(parts, traces=traces)
        parts = msgspec.structs.replace(parts, readers=seen)
        gateway = Gateway(parts, Operations(life, metrics, refresh), guard)
        limits = HttpLimits(
            connections=_CONNECTIONS, body_bytes=own.body_limit, write_seconds=own.write_seconds
        )
        uncounted = TrustedProxies((*_OWN_ADDRESSES, *own.trusted_proxies))
        listener = HttpListener(
            gateway.handle,
            limits,
            check=gateway.check,
            cancels=True,
            proxies=uncounted,
            before_write=accounts.store.write,
        )
        stack.push_async_callback(listener.aclose)
        metrics.add_source(lambda: gauges("toolwire_memory_", kept.memory.figures()))
        metrics.add_source(
            lambda: gauges("toolwire_", {"streams_open": gateway.open_calls, "busy": listener.busy})
        )
        await stack.enter_async_context(_measured(metrics))
        bound = options.sockets or bind(own.host, own.port)
        await listener.adopt(bound, tls.context if tls is not None else None)

        async def apply(new: Settings) -> None:
            chosen = every_request(new, environ, options.model, options.upstream)
            routes, _ = open_routes(new, environ, accounts, chosen)
            for problem in await routes.check():
                notice(problem)
            listed = _listed(new, options, environ)
            gateway.guard = _guard(new.gateway, options)
            gateway.parts = msgspec.structs.replace(
                gateway.parts, routes=routes, settings=new.gateway, listed=listed
            )
            accounts.change(new.gateway)

        reloader = Reloader(
            settings,
            options.files,
            load=options.load or (lambda: settings),
            apply=apply,
            notice=notice,
            tidy=accounts.tidy,
        )
        life.notes = lambda: "the settings are not reloaded; see the log" * bool(reloader.problem)
        await stack.enter_async_context(_running(reloader.watch()))
        await stack.enter_async_context(_running(_load_formats()))
        origin = origin_of(own, bound[0])
        logins = console_logins(environ, options)
        started = time.time()
        opened: list[Console] = []

        def console() -> Console:
            if not opened:
                from toolwire.gateway.console.api import Console, ConsoleHost  # noqa: PLC0415 - start-up time

                host = ConsoleHost(
                    gateway=gateway,
                    accounts=accounts,
                    life=life,
                    reloader=reloader,
                    options=options,
                    environ=environ,
                    settings=lambda: reloader.settings,
                    logins=logins,
                    state=gateway_folder(environ),
                    folder=Path.cwd(),
                    origin=origin,
                    started=started,
                    tls=tls is not None,
                )
                opened.append(Console(host))
                opened[0].sessions.begin_resuming()
                stack.push_async_callback(opened[0].aclose)
            return opened[0]

        def close_console() -> None:
            for one in opened:
                one.stop()

        gateway.console, gateway.console_port = console, options.console_port
        life.state = State.READY
        yield RunningGateway(
            origin=origin,
            gateway=gateway,
            listener=listener,
            life=life,
            reloader=reloader,
            logins=logins,
            close_console=close_console,
            tls=tls,
            log=log,
        )


def _guard(own: GatewaySettings, options: ServeOptions) -> Guard:
    return Guard(
        hosts=tuple(host.lower() for host in own.hosts),
        origins=frozenset(own.cors),
        needs_key=options.token is not None,
        tls=bool(own.tls_cert),
    )


def _spans(
    settings: Settings, environ: Mapping[str, str]
) -> tuple[GatewaySpans, Callable[[str], str]]:
    """What records each request as spans, and makes the trace of a request."""
    from toolwire.gateway.spans import GatewaySpans, new_trace  # noqa: PLC0415 - start-up time
    from toolwire.telemetry.sink import SignalSink  # noqa: PLC0415 - start-up time

    return GatewaySpans(SignalSink(settings.telemetry, environ)), new_trace


def _report(problem: str, notice: Callable[[str], None]) -> None:
    if problem:
        notice(problem)


@asynccontextmanager
async def _running(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    """Runs work beside the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _load_formats() -> None:
    """Loads what every client's first request would otherwise wait for."""
    for name in dialects.NAMES:
        await asyncio.sleep(_BETWEEN_FORMATS)
        codec = dialects.get(name)
        codec.encoder("", new_id)
        with suppress(BadInput):
            codec.decode_request(b"{}")


def _state(accounts: Accounts) -> Iterable[Sample]:
    yield Sample("toolwire_waiting", "gauge", accounts.room.turns.waiting)
    for name in accounts.cooling.cooling():
        yield Sample("toolwire_cooling", "gauge", 1, (("deployment", name),))
    for name, left in accounts.left:
        yield Sample("toolwire_budget_left_dollars", "gauge", left, (("key", name),))


async def _check_model(
    routes: GatewayRoutes,
    every: EveryRequest | None,
    settings: Settings,
    environ: Mapping[str, str],
) -> None:
    """Refuses to start without anything that could answer."""
    if every is not None:
        if every.model:
            await routes.find(every.model)
    elif not settings.gateway.routes and not ReadyProviders(settings, environ)():
        raise ModelMissing(
            "no provider is configured; set a key such as ANTHROPIC_API_KEY, OPENAI_API_KEY or "
            "GEMINI_API_KEY, add a route to the settings, or name a server with --upstream or a "
            "model with --model; `toolwire chat` fetches a small model that runs on this machine"
        )


def origin_of(own: GatewaySettings, one: socket.socket) -> str:
    """The address that clients use, such as `http://127.0.0.1:8787`."""
    shown = f"[{own.host}]" if ":" in own.host else own.host
    return f"{'https' if own.tls_cert else 'http'}://{shown}:{one.getsockname()[1]}"


def _access_log(own: GatewaySettings, style: str) -> AccessLog | None:
    if style == "off":
        return None
    kind: Style = "text" if style == "text" else "json"
    path = Path(own.log_file) if own.log_file else None
    return AccessLog(kind, stream=sys.stderr, path=path)


@asynccontextmanager
async def _measured(metrics: Metrics) -> AsyncGenerator[None]:
    """Measures how late the event loop is, for as long as the block lasts."""
    lag = LoopLag()
    metrics.add_source(lag.samples)
    async with _running(lag.measure()):
        yield


def _listed(
    settings: Settings, options: ServeOptions, environ: Mapping[str, str]
) -> tuple[ListedModel, ...]:
    """What a list of models shows: the one that answers everything, else those of the settings."""
    if options.upstream is not None:
        return one_model("upstream", options.upstream.model) if options.upstream.named else ()
    if options.model:
        provider, _, model = options.model.partition("/")
        return one_model(provider, model)
    return listed_models(settings, ReadyProviders(settings, environ)())


def stored_token(environ: Mapping[str, str], notice: Callable[[str], None]) -> Secret:
    """The token of this user's gateway; made at its first start."""
    path = token_file(environ)
    found = read_private(path, notice)
    text = found.decode("ascii", "ignore").strip() if found else ""
    if not text:
        text = secrets.token_urlsafe(32)
        write_private(path, f"{text}\n".encode())
    return Secret(text)


def console_logins(environ: Mapping[str, str], options: ServeOptions) -> ConsoleLogins:
    """The logins of the console, which all processes of the gateway share."""
    token = "" if options.token is None else options.token.reveal()
    return ConsoleLogins(gateway_folder(environ) / "console.json", token, time.time)


def console_link(origin: str, logins: ConsoleLogins) -> str:
    """The address that logs a browser in, once and within a minute."""
    return f"{origin}/console/#login={logins.new_code()}"


def token_file(environ: Mapping[str, str]) -> Path:
    """Where the token is stored."""
    return gateway_folder(environ) / "token"


def gateway_folder(environ: Mapping[str, str]) -> Path:
    """Where the gateway stores its state."""
    return state_paths(environ).state / "gateway"
