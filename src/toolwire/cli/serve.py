"""`toolwire serve`: the gateway, any client on any model."""

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolwire.cli.output import CANCELLED
from toolwire.cli.terminal import fail

if TYPE_CHECKING:
    from toolwire.client.redact import Secret
    from toolwire.config import Settings
    from toolwire.gateway.host import ServeOptions


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
def serve_command(
    host: str | None,
    port: int | None,
    token: str | None,
    no_token: bool,
    model: str,
    upstream: str | None,
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
        settings = _settings(host, port)
        options = _options(settings, token, no_token, model, upstream)
        asyncio.run(_serve(settings, options))
    except ToolwireError as error:
        fail(error)
    except KeyboardInterrupt:
        # Before it listened; later the signal has a handler.
        raise SystemExit(CANCELLED) from None


def _settings(host: str | None, port: int | None) -> "Settings":
    from toolwire import config

    flags = {"gateway.host": host, "gateway.port": port}
    return config.load(os.environ, Path.cwd(), flags=flags)


def _options(
    settings: "Settings", token: str | None, no_token: bool, model: str, upstream: str | None
) -> "ServeOptions":
    from toolwire.gateway.host import LOOPBACK, ServeOptions
    from toolwire.providers.custom import read_upstream

    host = settings.gateway.host
    if no_token and host not in LOOPBACK:
        raise click.UsageError(
            f"--no-token would let every machine that reaches {host or 'this one'} use your keys; "
            "leave it out, or listen on 127.0.0.1"
        )
    return ServeOptions(
        model=model,
        upstream=read_upstream(upstream) if upstream else None,
        token=None if no_token else _token(token),
    )


def _token(given: str | None) -> "Secret":
    from toolwire.client.redact import Secret
    from toolwire.gateway.host import stored_token

    return Secret(given) if given is not None else stored_token(os.environ, _notice)


async def _serve(settings: "Settings", options: "ServeOptions") -> None:
    from toolwire.gateway.host import open_gateway
    from toolwire.platform import handle_signals

    async with open_gateway(settings, options, environ=os.environ, notice=_notice) as running:
        _announce(running.origin, options.token)
        stopped = asyncio.Event()

        def stop() -> None:
            if stopped.is_set():
                os._exit(CANCELLED)
            stopped.set()

        loop = asyncio.get_running_loop()
        with handle_signals(loop, (signal.SIGINT, signal.SIGTERM), stop):
            await stopped.wait()


def _announce(origin: str, token: "Secret | None") -> None:
    """Prints the address, the token, and what makes Claude Code use them."""
    shown = "any-key" if token is None else token.reveal()
    click.echo(f"toolwire serve: {origin}")
    if token is not None:
        click.echo(f"token: {shown}")
    click.echo("Claude Code:")
    click.echo(f"  export ANTHROPIC_BASE_URL={origin}")
    click.echo(f"  export ANTHROPIC_AUTH_TOKEN={shown}")
    click.echo("  claude")


def _notice(text: str) -> None:
    click.echo(text, err=True)
