"""`toolwire simulate`: a scripted model behind real HTTP."""

import asyncio
from pathlib import Path

import click

from toolwire.cli.terminal import fail
from toolwire.errors import BadInput
from toolwire.simulator import Received, Script, Simulator, load


@click.command("simulate")
@click.argument("script", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8790, show_default=True, help="Port to listen on; 0 picks a free one."
)
@click.option("--key", default="", help="Require this key; other requests get 401.")
def simulate_command(script: Path, host: str, port: int, key: str) -> None:
    """Serve the replies of SCRIPT (a TOML file) in every wire format until interrupted."""
    try:
        asyncio.run(_serve(load(script), host, port, key))
    except BadInput as error:
        fail(error)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
    except OSError as error:
        fail(BadInput(f"cannot listen on {host}:{port}: {error.strerror or error}"))


async def _serve(script: Script, host: str, port: int, key: str) -> None:
    async with Simulator(script, host=host, port=port, key=key, on_request=_log) as sim:
        click.echo(sim.origin)
        click.echo(
            f"  openai    {sim.origin}/v1   (chat completions and responses)\n"
            f"  anthropic {sim.origin}\n"
            f"  gemini    {sim.origin}   (/v1beta and /v1, code assist too)",
            err=True,
        )
        await asyncio.Event().wait()


def _log(received: Received) -> None:
    why = f" {received.refusal}" if received.refusal else ""
    click.echo(f"{received.method} {received.path} {received.status}{why}", err=True)
