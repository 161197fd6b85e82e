"""`toolwire acp`: the agent for editors, over standard input and output."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from toolwire.cli.output import CANCELLED
from toolwire.cli.session_options import FILE
from toolwire.cli.terminal import (
    end_soon,
    ending_at_once,
    error_line,
    fail,
    leave,
    standard_streams,
)
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolwire.app.options import SessionOptions
    from toolwire.client.http.transport import Transport


@click.command("acp")
@click.option("-m", "--model", default="", metavar="P/M", help="Model: provider/model.")
@click.option("--provider", default="", help="Provider; uses its default model.")
@click.option("--base-url", default="", metavar="URL", help="Base URL of the provider.")
@click.option(
    "--upstream",
    metavar="DIALECT=URL",
    help="Ad-hoc provider: DIALECT=URL[,key=K][,model=M][,style=S].",
)
@click.option(
    "--approval-mode",
    type=click.Choice(tuple(map(str, Mode))),
    help="Approval mode: which calls run without asking.",
)
@click.option(
    "--tool-style",
    type=click.Choice(tuple(map(str, ToolStyle))),
    help="How tools are described to the model.",
)
@click.option("--no-mcp", is_flag=True, help="Use no MCP servers.")
@click.option(
    "--mcp-config",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="File with further MCP servers: JSON with mcpServers, or TOML.",
)
@click.option("--record", type=FILE, help="Record every exchange to this file, without secrets.")
def acp_command(
    model: str,
    provider: str,
    base_url: str,
    upstream: str | None,
    approval_mode: str | None,
    tool_style: str | None,
    no_mcp: bool,
    mcp_config: tuple[Path, ...],
    record: Path | None,
) -> None:
    """Serve the agent to an editor that speaks the Agent Client Protocol.

    An editor starts it and talks to it on standard input and output; it ends with the input.
    """
    from toolwire.errors import ToolwireError

    if no_mcp and mcp_config:
        raise click.UsageError("--no-mcp and --mcp-config contradict each other; give one")
    given = None
    try:
        if upstream:
            from toolwire.providers.custom import read_upstream

            given = read_upstream(upstream)
        with ending_at_once(CANCELLED):
            reading, writing = standard_streams()

            def options() -> "SessionOptions":
                from toolwire.app.options import SessionOptions
                from toolwire.app.servers import ServerChoice

                return SessionOptions(
                    model=model,
                    provider=provider,
                    base_url=base_url,
                    upstream=given,
                    mode=Mode(approval_mode) if approval_mode else None,
                    tool_style=tool_style or "",
                    servers=ServerChoice(off=no_mcp, files=mcp_config),
                )

            code = asyncio.run(_served(options, record, reading, writing))
    except ToolwireError as error:
        fail(error)
        return
    leave(code)


async def _served(
    options: "Callable[[], SessionOptions]", record: Path | None, reading: int, writing: int
) -> int:
    from toolwire.acp.stdio import serve_editor
    from toolwire.platform import handle_signals

    async with AsyncExitStack() as stack:

        def setup() -> "tuple[SessionOptions, Transport]":
            from toolwire.cli.session_options import recorded

            return options(), recorded(record, stack)

        serving = asyncio.ensure_future(serve_editor(setup, reading, writing, environ=os.environ))
        loop = asyncio.get_running_loop()

        def stop() -> None:
            serving.cancel()

        with handle_signals(loop, (signal.SIGINT, signal.SIGTERM), stop):
            try:
                why = await serving
                code = 1 if why else 0
            except asyncio.CancelledError:
                why, code = "", CANCELLED
        end_soon(code)
        if why:
            click.echo(error_line(why), err=True, nl=False)
        return code
