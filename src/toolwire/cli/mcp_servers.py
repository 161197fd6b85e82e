"""`toolwire mcp list`, `get`, `test` and `approve`."""

import asyncio
import os
import shlex
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import msgspec

from toolwire import config
from toolwire.app.servers import Access, approvals_of, configured, open_servers
from toolwire.app.toolbox import open_registry
from toolwire.cli.terminal import agrees, can_ask, fail
from toolwire.client.redact import hide_in_url, without_secrets
from toolwire.config import Settings
from toolwire.config.display import hidden_arguments
from toolwire.errors import ToolwireError, UnknownName
from toolwire.mcp.entry import Configured, ServerEntry, cleaned_name, shown
from toolwire.mcp.servers import Server, Servers
from toolwire.mcp.session import RESERVED, status_of, tokens
from toolwire.mcp.tools import Offer, as_tool
from toolwire.request import JsonObject
from toolwire.terminal_text import one_line
from toolwire.tools.shell.environment import clean_environment
from toolwire.wire.json_access import dump

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_MARKS = {"connected": "✓", "failed": "✗", "needs_login": "!", "unapproved": "!"}


@click.command("list")
@JSON
@click.option("--no-connect", is_flag=True, help="Show what is remembered; start nothing.")
def list_command(as_json: bool, no_connect: bool) -> None:
    """List the servers with what they offer; connects to all of them at once."""
    with errors_reported():
        place = Place.here()
        found = asyncio.run(described(place, place.servers(), connect=not no_connect))
    if as_json:
        click.echo(dump(found))
    elif not found:
        click.echo("no MCP servers; add one: toolwire mcp add NAME COMMAND_OR_URL", err=True)
    else:
        for one in found:
            _print(one)


@click.command("get")
@click.argument("name")
@JSON
def get_command(name: str, as_json: bool) -> None:
    """Show the settings of a server and where they come from; secrets are hidden."""
    with errors_reported():
        each = Place.here().need(name)
    about = {"name": name, "origin": each.origin, "approved": each.approved, **shown_whole(each)}
    if as_json:
        click.echo(dump(about))
        return
    for key, value in about.items():
        click.echo(f"{key} = {dump(value)}")


@click.command("test")
@click.argument("name", metavar="NAME|URL")
@JSON
def test_command(name: str, as_json: bool) -> None:
    """Connect to a server and show what it offers; exit code 1 if it fails."""
    with errors_reported():
        place = Place.here()
        name, each = place.target(name)
        [found] = asyncio.run(described(place, {name: each}, connect=True))
    if as_json:
        click.echo(dump(found))
    else:
        _print(found, tools=True)
    if found["status"] != "connected":
        raise SystemExit(1)


@click.command("approve")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All servers of this project.")
@click.option("--no", "refuse", is_flag=True, help="Do not let them start.")
def approve_command(names: tuple[str, ...], every: bool, refuse: bool) -> None:
    """Let servers that this project brings start, exactly as they are defined now.

    The whole definition is shown first. A server whose definition changes has to be approved again.
    """
    with errors_reported():
        place = Place.here()
        servers = {name: each for name, each in place.servers().items() if each.origin in _PROJECT}
        for name in names:
            if name not in servers:
                raise UnknownName("MCP server of this project", name, tuple(servers))
        if not servers:
            raise ToolwireError("this project brings no MCP servers")
        if not names and not every and not can_ask():
            raise click.UsageError(f"name servers, or --all: {', '.join(servers)}")
        chosen = names or tuple(servers)
        for name in chosen:
            _approve(place, name, servers[name], ask=not names and not every, allowed=not refuse)


_PROJECT = ("project", ".mcp.json")


def _approve(place: "Place", name: str, each: Configured, *, ask: bool, allowed: bool) -> None:
    click.echo(f"{name} ({each.origin}): {dump(msgspec.to_builtins(each.entry))}", err=True)
    if ask:
        allowed = agrees(f"Let {name} start in this folder?")
    approvals_of(place.environ).keep(place.cwd, name, each.entry, allowed=allowed)
    click.echo(f"{name} {'may start' if allowed else 'does not start'} here", err=True)


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The folder a command works in, with its settings."""

    settings: Settings
    cwd: Path
    environ: Mapping[str, str]

    @classmethod
    def here(cls) -> "Place":
        """The current folder."""
        cwd = config.current_folder()
        return cls(settings=config.load(os.environ, cwd), cwd=cwd, environ=os.environ)

    def servers(self) -> dict[str, Configured]:
        """Every configured server."""
        return configured(self.settings, self.environ, self.cwd, notice)

    def need(self, name: str) -> Configured:
        """The server of that name; an error names the nearest."""
        found = self.servers()
        if name not in found:
            raise UnknownName("MCP server", name, tuple(found))
        return found[name]

    def target(self, name: str) -> tuple[str, Configured]:
        """A server by its name or its address; one that was not approved is an error."""
        if "://" in name:
            entry = ServerEntry(url=name)
            return cleaned_name(urlsplit(name).hostname or "server"), Configured(
                entry=entry, origin="flag"
            )
        each = self.need(name)
        if not each.approved:
            raise ToolwireError(
                f"the MCP server {name} of this project is not approved; "
                f"run: toolwire mcp approve {name}"
            )
        return name, each

    def open(self, entries: Mapping[str, ServerEntry], **more: Any) -> Servers:
        """The servers, not started yet, whatever `mcp.allowed` says."""
        settings = msgspec.structs.replace(
            self.settings,
            mcp=msgspec.structs.replace(self.settings.mcp, allowed=(), excluded=()),
        )
        show = more.pop("show", None)
        access = Access(environ=self.environ, cwd=self.cwd, show=show)
        return open_servers(entries, settings, access, more.pop("notice", _quiet), **more)


def notice(words: str) -> None:
    """Prints a notice on standard error."""
    click.echo(words, err=True)


def _quiet(words: str) -> None:
    """What fails is part of the listing."""
    del words


@contextmanager
def errors_reported() -> Generator[None]:
    """Ends the command with one line and exit code 1 for an error."""
    try:
        yield
    except ToolwireError as error:
        fail(error)


async def described(
    place: Place, found: Mapping[str, Configured], *, connect: bool
) -> list[JsonObject]:
    """Every server as `list --json` prints it; connected side by side."""
    chosen = {name: each for name, each in found.items() if not _unused(place, name, each)}
    servers = place.open({name: each.entry for name, each in chosen.items()})
    remembered = {name: one.remembered is not None for name, one in servers.servers.items()}
    try:
        seconds = await _connected(servers) if connect else {}
        offers = servers.offers(await _taken(place))
        commands: set[str] = set()
        return [
            {
                **_about(name, each),
                "status": _unused(place, name, each) or "failed",
                "error": servers.lost.get(name, ""),
                **_EMPTY,
                **(
                    _state(servers.servers[name], offers[name], commands)
                    if name in servers.servers
                    else {}
                ),
                "seconds": round(seconds.get(name, 0.0), 3),
                "remembered": remembered.get(name, False),
            }
            for name, each in found.items()
        ]
    finally:
        await servers.close()


_EMPTY: JsonObject = {
    "stderr": "",
    "protocol": "",
    "server": {"name": "", "version": ""},
    "capabilities": [],
    "instructions": "",
    "tools": [],
    "prompts": [],
    "resources": 0,
    "tokens": 0,
    "warnings": [],
}


def _unused(place: Place, name: str, each: Configured) -> str:
    """Why a server is not used: `unapproved` or `disabled`; empty if it is."""
    allowed, excluded = place.settings.mcp.allowed, place.settings.mcp.excluded
    if not each.entry.enabled or name in excluded or (allowed and name not in allowed):
        return "disabled"
    return "" if each.approved else "unapproved"


async def _connected(servers: Servers) -> dict[str, float]:
    """Seconds that each server took; failures stay with the server."""

    async def one(server: Server) -> float:
        began = time.monotonic()
        server.connection.tries = 1
        try:
            await server.connect()
        except ToolwireError as error:
            server.connection.error = server.connection.error or str(error)
        return time.monotonic() - began

    taken = await asyncio.gather(*map(one, servers.servers.values()))
    return dict(zip(servers.servers, taken, strict=True))


async def _taken(place: Place) -> Iterable[str]:
    environ = clean_environment(place.environ, (), place.settings.tools.environment)
    registry = await open_registry(place.settings, environ=environ, cwd=place.cwd)
    return (*RESERVED, *registry.names)


def _about(name: str, each: Configured) -> JsonObject:
    entry = each.entry
    words = (entry.command, *hidden_arguments(entry.args))
    return {
        "name": name,
        "origin": each.origin,
        "transport": entry.kind,
        **(
            {"url": hide_in_url(entry.url)}
            if entry.url
            else {"command": shlex.join(map(str, words))}
        ),
        "enabled": entry.enabled,
        "approved": each.approved,
    }


def _state(server: Server, offers: Iterable[Offer], commands: set[str]) -> JsonObject:
    lists, known = server.lists, server.remembered
    status = status_of(server)
    prompts = (
        [] if lists is None else [_prompt(server.name, one, commands) for one in lists.prompts]
    )
    return {
        "status": status,
        "error": "" if status == "connected" else without_secrets(server.connection.error),
        "stderr": without_secrets(server.connection.last_words),
        "protocol": known.protocol if known else "",
        "server": {"name": known.name, "version": known.version} if known else _EMPTY["server"],
        "capabilities": list(known.capabilities) if known else [],
        "instructions": known.instructions if known else "",
        "tools": [described_tool(each) for each in offers],
        "prompts": prompts,
        "resources": 0 if lists is None else len(lists.resources),
        "tokens": sum(
            tokens(as_tool(server.name, server.entry, each, server.call))
            for each in offers
            if each.name
        ),
        "warnings": [] if lists is None else list(lists.warnings),
    }


def described_tool(offer: Offer) -> JsonObject:
    """A tool as `list --json` prints it."""
    tool = offer.tool
    return {
        "name": offer.name,
        "tool": tool.name,
        "title": tool.title,
        "description": tool.description,
        "parameters": tool.parameters,
        "hints": tool.hints,
        "offered": bool(offer.name),
        "why": offer.why,
        "warnings": list(offer.warnings),
    }


def _prompt(server: str, prompt: Any, commands: set[str]) -> JsonObject:
    command = f"/{prompt.name}"
    if command in commands:
        command = f"/{server}:{prompt.name}"
    commands.add(command)
    return {
        "name": prompt.name,
        "command": command,
        "arguments": [msgspec.to_builtins(each) for each in prompt.arguments],
    }


def shown_whole(each: Configured) -> JsonObject:
    """Every member of an entry, defaults included, secrets hidden."""
    entry = each.entry
    whole: JsonObject = {
        name: getattr(entry, name) for name in entry.__struct_fields__ if name != "oauth"
    }
    hidden = shown(entry)
    return {
        **whole,
        "transport": entry.kind,
        "args": hidden_arguments(entry.args),
        "url": hide_in_url(entry.url) if entry.url else "",
        "env": hidden.get("env", {}),
        "headers": hidden.get("headers", {}),
        "oauth": {name: getattr(entry.oauth, name) for name in entry.oauth.__struct_fields__},
    }


def _print(one: JsonObject, *, tools: bool = False) -> None:
    mark = _MARKS.get(one["status"], "…")
    where = one.get("url") or one.get("command")
    offered = sum(each["offered"] for each in one["tools"])
    words = {
        "connected": f"Connected ({offered} tools, {one['seconds']:.1f} s)",
        "unapproved": f"waits for approval: toolwire mcp approve {one['name']}",
        "needs_login": f"needs a login: toolwire mcp login {one['name']}",
        "failed": f"Disconnected: {one['error']}",
    }.get(one["status"], one["status"].replace("_", " "))
    line = f"{one['name']}: {where} ({one['transport']}) - {words}"
    click.echo(f"{mark} {one_line(line)}")
    if one["status"] == "failed" and one["stderr"]:
        click.echo(f"    {one_line(one['stderr'].rpartition(chr(10))[2])}")
    show: Callable[[JsonObject], bool] = lambda each: tools or each["warnings"] or each["why"]  # noqa: E731
    for each in filter(show, one["tools"]):
        notes = "; ".join(filter(None, (each["why"], *each["warnings"])))
        about = notes or each["description"].partition("\n")[0]
        click.echo(f"    {one_line(each['name'] or each['tool'])}: {one_line(about)}")
    for words in one["warnings"]:
        click.echo(f"    {one_line(words)}")
