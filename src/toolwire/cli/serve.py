"""`toolwire serve`: the gateway, any client on any model."""

import asyncio
import gc
import os
import re
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from toolwire.cli.output import CANCELLED
from toolwire.cli.terminal import fail

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from toolwire.client.redact import Secret
    from toolwire.config import Settings
    from toolwire.config.merging import Resolved
    from toolwire.gateway.host import RunningGateway, ServeOptions
    from toolwire.gateway.workers import ParentLine

_PATIENCE = 2
"""Signals after which the process ends without anything else."""
_COLLECT_EVERY = 10_000
"""Objects between two looks for cycles."""
_KEPT_BYTES = 16 * 1024 * 1024
"""Of memory that large bodies took, for the next ones."""


@click.command("serve")
@click.option("--host", help="Address to listen on, instead of gateway.host.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port to listen on, instead of gateway.port; 0 picks a free one.",
)
@click.option("--token", metavar="T", help="Token of clients, instead of the stored one.")
@click.option("--no-token", is_flag=True, help="Let every local program in.")
@click.option("-m", "--model", default="", metavar="P/M", help="Model that answers every request.")
@click.option(
    "--upstream",
    metavar="DIALECT=URL[,key=K][,model=M][,style=S]",
    help="Server without a provider entry that answers every request.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    help="Processes that share the port, instead of gateway.workers.",
)
@click.option("--tls-cert", type=click.Path(), metavar="FILE", help="Certificate chain, for HTTPS.")
@click.option(
    "--tls-key", type=click.Path(), metavar="FILE", help="Private key of the certificate."
)
@click.option(
    "--log",
    type=click.Choice(["json", "text", "off"]),
    help="Access log on standard error, instead of gateway.log.",
)
def serve_command(
    host: str | None,
    port: int | None,
    token: str | None,
    no_token: bool,
    model: str,
    upstream: str | None,
    workers: int | None,
    tls_cert: str | None,
    tls_key: str | None,
    log: str | None,
) -> None:
    """Serve every client format in front of any model, until interrupted.

    Clients use the printed address and token: OpenAI's and Google's formats, Anthropic's, and those
    of the programs built on them.
    """
    from toolwire.errors import ToolwireError

    if token is not None and no_token:
        raise click.UsageError("--token and --no-token contradict each other; give one")
    if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
        raise click.UsageError(
            "--token is empty, or has spaces or letters that a header cannot have"
        )
    try:
        flags = {
            "gateway.host": host,
            "gateway.port": port,
            "gateway.workers": workers,
            "gateway.tls_cert": tls_cert,
            "gateway.tls_key": tls_key,
            "gateway.log": log,
        }
        settings = _settings(flags)
        options = _options(settings, token, no_token, model, upstream)
        options = _with_reload(options, flags)
        code = asyncio.run(_serve(settings, options))
    except ToolwireError as error:
        fail(error)
    except KeyboardInterrupt:
        # Before it listened; later the signal has a handler.
        raise SystemExit(CANCELLED) from None
    else:
        raise SystemExit(code)


def _settings(flags: dict[str, Any]) -> "Settings":
    from toolwire import config

    settings = config.load(os.environ, Path.cwd(), flags=flags)
    own = settings.gateway
    if bool(own.tls_cert) != bool(own.tls_key):
        missing = "--tls-key" if own.tls_cert else "--tls-cert"
        raise click.UsageError(f"HTTPS needs a certificate and its key; {missing} is missing")
    if own.workers > 1 and sys.platform == "win32":
        raise click.UsageError("--workers is not possible on Windows; leave it out")
    return settings


def _with_reload(options: "ServeOptions", flags: dict[str, Any]) -> "ServeOptions":
    """Returns the options with what is read again when a settings file changes."""
    from msgspec.structs import replace

    from toolwire import config
    from toolwire.config.layers import config_files
    from toolwire.errors import BadInput

    def load() -> "Settings":
        try:
            return _settings(flags)
        except click.UsageError as error:
            raise BadInput(error.format_message()) from error

    def resolve() -> "Resolved":
        return config.resolve(os.environ, Path.cwd(), flags=flags, notice=lambda text: None)

    files = config_files(os.environ, config.current_folder())
    return replace(
        options, load=load, resolve=resolve, files=(files.system, files.user, files.project)
    )


def _options(
    settings: "Settings", token: str | None, no_token: bool, model: str, upstream: str | None
) -> "ServeOptions":
    from toolwire.gateway.host import ServeOptions
    from toolwire.gateway.operations import LOOPBACK
    from toolwire.providers.custom import read_upstream

    host = settings.gateway.host
    if no_token and host not in LOOPBACK:
        raise click.UsageError(
            f"--no-token would let every machine that reaches {host or 'this one'} use your keys; "
            "leave it out, or listen on 127.0.0.1"
        )
    return ServeOptions(
        log=_log_style(settings.gateway.log),
        model=model,
        upstream=read_upstream(upstream) if upstream else None,
        token=None if no_token else _token(token),
    )


def _log_style(chosen: str) -> str:
    if chosen != "auto":
        return chosen
    return "text" if sys.stderr.isatty() else "json"


def _token(given: str | None) -> "Secret":
    from toolwire.client.redact import Secret
    from toolwire.gateway.host import stored_token

    return Secret(given) if given is not None else stored_token(os.environ, _notice)


async def _serve(settings: "Settings", options: "ServeOptions") -> int:
    from msgspec.structs import replace

    from toolwire.gateway.sockets import activated, adopted
    from toolwire.gateway.workers import CONSOLE, inherited

    options = _with_model(settings, options)
    worker = inherited(os.environ)
    if worker is not None:
        descriptors, parent = worker
        sockets = tuple(adopted(number) for number in descriptors)
        port = int(os.environ.get(CONSOLE, "0"))
        options = replace(options, sockets=sockets, console_port=port)
        return await _answer(settings, options, parent)
    sockets = tuple(activated(os.environ))
    if settings.gateway.workers > 1:
        return await _supervise(settings, options, sockets)
    return await _answer(settings, replace(options, sockets=sockets), None)


def _with_model(settings: "Settings", options: "ServeOptions") -> "ServeOptions":
    """Returns the options with the embedded model where there is nothing else to serve."""
    from msgspec.structs import replace

    from toolwire.app.model_choice import stored_model
    from toolwire.gateway.accounts import ReadyProviders

    if options.model or options.upstream or settings.gateway.routes or settings.default_model:
        return options
    if ReadyProviders(settings, os.environ)():
        return options
    model = stored_model(os.environ)
    if model:
        _notice(f"no provider is configured: serving the embedded model {model}")
    return replace(options, model=model)


async def _answer(
    settings: "Settings", options: "ServeOptions", parent: "ParentLine | None"
) -> int:
    """Answers requests until a signal, or until the parent of this worker has gone."""
    from toolwire.gateway.host import open_gateway
    from toolwire.gateway.sockets import notify
    from toolwire.platform import handle_signals, keep_freed_memory

    loop = asyncio.get_running_loop()
    async with open_gateway(settings, options, environ=os.environ, notice=_notice) as running:
        _collect_rarely()
        keep_freed_memory(_KEPT_BYTES)
        life, signals = running.life, 0

        def stop() -> None:
            nonlocal signals
            signals += 1
            if signals > _PATIENCE:
                os._exit(CANCELLED)
            life.stop()

        with (
            handle_signals(loop, (signal.SIGINT, signal.SIGTERM), stop),
            _reloading(loop, lambda: _reopen(running)),
        ):
            watching: asyncio.Task[None] | None = None
            if parent is None:
                _announce(running.origin, settings, options)
                notify(os.environ, "READY=1")
            else:
                await parent.ready()
                watching = asyncio.create_task(_until_gone(parent, life.stop))
            await life.stopping()
            notify(os.environ, "STOPPING=1")
            await running.drain()
            if watching is not None:
                watching.cancel()
    return 0


def _collect_rarely() -> None:
    # What was loaded stays: later collections need not look at it. A request leaves few cycles
    # behind: looking for them every 700 objects is waste.
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY, *gc.get_threshold()[1:])
    # Readers close their generators: the loop need not list them for its end.
    sys.set_asyncgen_hooks(firstiter=None)


async def _until_gone(parent: "ParentLine", stop: "Callable[[], None]") -> None:
    await parent.gone()
    stop()


async def _supervise(
    settings: "Settings", options: "ServeOptions", sockets: "tuple[socket, ...]"
) -> int:
    """Runs the workers until a signal has ended them."""
    from toolwire.gateway.host import origin_of
    from toolwire.gateway.sockets import bind, notify
    from toolwire.gateway.workers import CONSOLE, Workers, worker_command
    from toolwire.platform import handle_signals

    own = settings.gateway
    shared = [sockets] * own.workers if sockets else None
    places = shared or [(one,) for one in bind(own.host, own.port, own.workers)]
    # Sessions and live requests are in one process: the pages must always reach the same.
    [console] = bind(own.host, 0)
    places[0] = (*places[0], console)
    environ = {**os.environ, CONSOLE: str(console.getsockname()[1])}
    workers = Workers(worker_command(sys.argv[1:]), places, environ=environ, notice=_notice)

    def ready() -> None:
        pages = origin_of(own, console)
        _announce(origin_of(own, places[0][0]), settings, options, pages)
        notify(os.environ, "READY=1")

    def stop() -> None:
        notify(os.environ, "STOPPING=1")
        workers.stop(signal.SIGTERM)

    loop = asyncio.get_running_loop()
    with (
        handle_signals(loop, (signal.SIGINT, signal.SIGTERM), stop),
        _reloading(loop, lambda: workers.send(signal.SIGHUP)),
    ):
        return await workers.run(ready)


def _reloading(
    loop: asyncio.AbstractEventLoop, call: "Callable[[], None]"
) -> AbstractContextManager[None]:
    from toolwire.platform import handle_signals

    if sys.platform == "win32":
        return nullcontext()
    return handle_signals(loop, (signal.SIGHUP,), call)


def _reopen(running: "RunningGateway") -> None:
    from toolwire.errors import BadInput

    try:
        running.reopen()
    except (BadInput, OSError) as error:
        _notice(f"not reloaded: {error}")


def _announce(origin: str, settings: "Settings", options: "ServeOptions", pages: str = "") -> None:
    """Prints the address, the console's link, the token, and what makes Claude Code use them."""
    from toolwire.gateway.host import console_link, console_logins
    from toolwire.gateway.operations import LOOPBACK

    token = options.token
    console = f"{pages or origin}{settings.gateway.prefix}"

    own = settings.gateway
    if own.host not in LOOPBACK and not own.tls_cert:
        _notice(
            f"warning: {own.host} is reachable from other machines without encryption; "
            "use --tls-cert and --tls-key, or a proxy with TLS"
        )
    shown = "any-key" if token is None else token.reveal()
    click.echo(f"toolwire serve: {origin}")
    if token is not None:
        click.echo(f"token: {shown}")
    click.echo("Claude Code:")
    click.echo(f"  export ANTHROPIC_BASE_URL={origin}")
    click.echo(f"  export ANTHROPIC_AUTH_TOKEN={shown}")
    click.echo("  claude")
    click.echo("Console, in a browser:")
    if token is None:
        click.echo(f"  {console}/console/")
    else:
        click.echo(f"  {console_link(console, console_logins(os.environ, options))}")
        click.echo("  (the link logs in once, within 60 s; later use the token)")


def _notice(text: str) -> None:
    click.echo(text, err=True)
