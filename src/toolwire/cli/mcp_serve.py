"""`toolwire mcp serve`: our tools for other programs, over stdio or HTTP."""

import asyncio
import os
import re
import secrets
import signal
from contextlib import AbstractContextManager, AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from toolwire.cli.output import CANCELLED
from toolwire.cli.session_options import SANDBOX
from toolwire.cli.terminal import (
    end_soon,
    ending_at_once,
    error_line,
    fail,
    leave,
    standard_streams,
)
from toolwire.policy import Mode

if TYPE_CHECKING:
    from toolwire.mcp_server.server import McpServer

_FRESH = 60.0
"""Seconds for which a client may keep the list, which only a restart changes."""
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANY = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, not bound


class ServeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options as the user gave them."""

    address: str | None
    token: str | None
    no_token: bool
    tools: tuple[str, ...]
    agent: bool
    model: str
    mode: Mode | None
    folder: Path | None
    sandbox: str | None


@click.command("serve")
@click.option(
    "--http",
    "address",
    metavar="[HOST:]PORT",
    help="Serve HTTP at this port, path /mcp; on this machine only without HOST.",
)
@click.option("--token", metavar="T", help="Token of HTTP clients; a new one if not given.")
@click.option("--no-token", is_flag=True, help="Let every local program in.")
@click.option(
    "--tools",
    multiple=True,
    metavar="LIST",
    help="Comma-separated tools to offer, or all; those that only read if not given.",
)
@click.option("--agent", is_flag=True, help="Offer the agent itself as the tool toolwire_run.")
@click.option("-m", "--model", default="", metavar="P/M", help="Model of the agent.")
@click.option(
    "--approval-mode",
    type=click.Choice(tuple(map(str, Mode))),
    help="Approval mode: which calls run without asking.",
)
@click.option(
    "--cwd",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Work in this folder instead of the current one.",
)
@SANDBOX
def serve_command(
    address: str | None,
    token: str | None,
    no_token: bool,
    tools: tuple[str, ...],
    agent: bool,
    model: str,
    approval_mode: str | None,
    folder: Path | None,
    sandbox: str | None,
) -> None:
    """Offer the tools, and with --agent the agent, to MCP clients.

    Serves one client on standard input and output until the input ends; with --http any number of
    clients. Calls follow the policy: what needs a yes is asked through the client.
    """
    from toolwire.errors import ToolwireError, UnknownName

    if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
        raise click.UsageError(
            "--token is empty, or has spaces or letters that a header cannot have"
        )
    if token is not None and no_token:
        raise click.UsageError("--token and --no-token contradict each other; give one")
    if address is None and (token is not None or no_token):
        raise click.UsageError("--token and --no-token are for --http; add it")
    named = tuple(one.strip() for each in tools for one in each.split(",") if one.strip())
    flags = ServeFlags(
        address=address,
        token=token,
        no_token=no_token,
        tools=named,
        agent=agent,
        model=model,
        mode=Mode(approval_mode) if approval_mode else None,
        folder=folder,
        sandbox=sandbox,
    )
    try:
        with ending_at_once(CANCELLED):
            code = _over_http(flags, address) if address is not None else _over_stdio(flags)
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
        return
    leave(code)


def _over_stdio(flags: ServeFlags) -> int:
    reading, writing = standard_streams()
    return asyncio.run(_stdio(flags, reading, writing))


async def _stdio(flags: ServeFlags, reading: int, writing: int) -> int:
    from toolwire.mcp_server.stdio import serve_stdio

    async with AsyncExitStack() as stack:
        server = await _server(flags, stack)
        serving = asyncio.ensure_future(serve_stdio(server, reading, writing))
        stack.enter_context(_stopped_by_signal(serving))
        try:
            why = await serving
            code = 1 if why else 0
        except asyncio.CancelledError:
            why, code = "", CANCELLED
        end_soon(code)
        if why:
            click.echo(error_line(why), err=True, nl=False)
        return code


def _over_http(flags: ServeFlags, address: str) -> int:
    host, port = _host_and_port(address)
    if flags.no_token and host not in _LOOPBACK:
        raise click.UsageError(
            f"--no-token would let every machine that reaches {host or 'this one'} run tools; "
            "leave it out, or listen on 127.0.0.1"
        )
    return asyncio.run(_http(flags, host, port))


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise click.UsageError(f"--http {address} is not a port or HOST:PORT; for example 8808")
    return host.strip("[]") or "127.0.0.1", int(port)


async def _http(flags: ServeFlags, host: str, port: int) -> int:
    from toolwire.client.redact import Secret
    from toolwire.errors import ToolwireError
    from toolwire.http_server.listener import HttpListener
    from toolwire.mcp_server.http import PATH, Guard, McpEndpoint

    token = None if flags.no_token else Secret(flags.token or secrets.token_urlsafe(24))
    shown = f"[{host}]" if ":" in host else host
    hosts = () if host in _ANY else tuple({*Guard().hosts, shown.lower()})
    async with AsyncExitStack() as stack:
        server = await _server(flags, stack)
        endpoint = McpEndpoint(server, Guard(token=token, hosts=hosts))
        listener = HttpListener(endpoint.handle)
        stack.push_async_callback(listener.aclose)
        stack.callback(endpoint.close)
        try:
            port = await listener.start(host, port)
        except OSError as error:
            raise ToolwireError(
                f"cannot listen on {shown}:{port}: {error.strerror or error}; choose another port"
            ) from error
        click.echo(f"toolwire mcp serve: http://{shown}:{port}{PATH}", err=True)
        if token is not None and flags.token is None:
            click.echo(f"token: {token.reveal()}", err=True)
        waiting = asyncio.ensure_future(asyncio.Event().wait())
        stack.enter_context(_stopped_by_signal(waiting))
        await asyncio.wait({waiting})
        end_soon(0)
    return 0


def _stopped_by_signal(task: "asyncio.Task[Any]") -> AbstractContextManager[None]:
    """The first Ctrl-C or SIGTERM ends the server, the second exits at once."""
    from toolwire.platform import handle_signals

    def stop() -> None:
        if task.cancelling():
            os._exit(CANCELLED)
        task.cancel()

    return handle_signals(asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM), stop)


async def _server(flags: ServeFlags, stack: AsyncExitStack) -> "McpServer":
    """The server with its tools; closed with the stack."""
    from toolwire import config
    from toolwire.app.toolbox import open_toolbox
    from toolwire.cli.consent import check_workspace
    from toolwire.config import current_folder
    from toolwire.mcp_server.catalogue import Catalogue
    from toolwire.mcp_server.own_tools import OwnTools
    from toolwire.mcp_server.server import McpServer

    cwd = flags.folder.resolve() if flags.folder else current_folder()
    if not flags.folder:
        check_workspace(cwd, os.environ)
    settings = config.load(os.environ, cwd, flags={"tools.sandbox": flags.sandbox})
    mode = flags.mode or settings.approval_mode
    toolbox = await stack.enter_async_context(
        open_toolbox(settings, environ=os.environ, cwd=cwd, mode=mode, notice=_notice)
    )
    catalogue = Catalogue(
        "toolwire",
        title="toolwire",
        instructions=f"Tools that work on the files in {cwd}.",
        fresh=_FRESH,
    )
    OwnTools(toolbox, flags.tools).offer(catalogue)
    if flags.agent:
        from toolwire.mcp_server.agent_tool import AgentTool

        agent = AgentTool(settings, environ=os.environ, cwd=cwd, model=flags.model, mode=mode)
        catalogue.add(agent.offered())
    server = McpServer(catalogue)
    stack.push_async_callback(server.aclose)
    return server


def _notice(text: str) -> None:
    click.echo(text, err=True)
