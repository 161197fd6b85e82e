"""The MCP servers of a session: which ones count, how they are reached, their part in its tools."""

from __future__ import annotations

import asyncio
import shlex
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import msgspec

from toolwire.client.redact import SHORTEST, Secret, hide_in_url, is_secret_name, learn_url
from toolwire.config import Settings
from toolwire.config.display import hidden_arguments
from toolwire.errors import BadInput, UnknownName
from toolwire.policy.rules import Rule, Verdict
from toolwire.storage.paths import state_paths

if TYPE_CHECKING:
    from toolwire.app.toolbox import Toolbox
    from toolwire.client.http.exchange import Transport
    from toolwire.mcp.client import Elicit
    from toolwire.mcp.connection import Reach
    from toolwire.mcp.entry import Configured, ServerEntry
    from toolwire.mcp.login import ServerLogin, Show
    from toolwire.mcp.projects import Approvals
    from toolwire.mcp.servers import Servers
    from toolwire.mcp.session import SessionServers

Notice = Callable[[str], None]
PROJECT_FILE = ".mcp.json"
_COMMAND_SECONDS = 30.0


class ServerChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Which MCP servers a session uses."""

    off: bool = False
    only: tuple[str, ...] = ()
    """Names; empty uses all."""
    files: tuple[Path, ...] = ()
    """Files with further servers."""
    given: Mapping[str, ServerEntry] = {}
    """Servers of the host program."""
    interactive: bool = False
    """Servers start in the background at once, and none is waited for."""
    elicit: Callable[[str], Elicit] | None = None
    """Answers the questions of a server, by its name; without it the user is asked field by field.
    """


NO_CHOICE = ServerChoice()


HostServers: TypeAlias = Mapping[str, Mapping[str, Any]] | Sequence[str]
"""Servers of a host program: addresses and commands, or tables as in the settings by name."""


def host_choice(servers: HostServers, *, users: bool) -> ServerChoice:
    """The servers of a host program, and the user's own if `users`."""
    if not servers:
        return ServerChoice(off=not users)
    from toolwire.mcp.entry import read_entry  # noqa: PLC0415 - only with servers

    tables = servers if isinstance(servers, Mapping) else _named(servers)
    given = {name: read_entry(name, dict(table), "mcp") for name, table in tables.items()}
    return ServerChoice(given=given, only=() if users else tuple(given))


def _named(lines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A table for each address or command line, under the name of its host or program."""
    from toolwire.mcp.entry import cleaned_name  # noqa: PLC0415 - only with servers

    if isinstance(lines, str):
        raise BadInput(f'mcp is a list of addresses and commands; write ["{lines}"]')
    found: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line.startswith(("http://", "https://")):
            name, table = urlsplit(line).hostname or "", {"url": line}
        else:
            command, *args = shlex.split(line) or [""]
            files = [word for word in (command, *args) if not word.startswith("-")]
            name, table = Path(files[-1]).stem, {"command": command, "args": args}
        name = cleaned_name(name)
        number = sum(one == name or one.startswith(f"{name}-") for one in found)
        found[f"{name}-{number + 1}" if number else name] = table
    return found


def are_configured(settings: Settings, cwd: Path, choice: ServerChoice) -> bool:
    """Whether there may be a server, found out without loading anything."""
    if choice.off:
        return False
    return bool(
        settings.mcp_servers or choice.files or choice.given or (cwd / PROJECT_FILE).exists()
    )


def configured(
    settings: Settings,
    environ: Mapping[str, str],
    cwd: Path,
    notice: Notice,
    choice: ServerChoice = NO_CHOICE,
) -> dict[str, Configured]:
    """Every server by name: the user's, those of flags, then those of the project.

    Servers of a project carry whether they were approved as they are now.
    """
    from toolwire.mcp.entry import Configured  # noqa: PLC0415 - only with servers
    from toolwire.mcp.projects import read_file  # noqa: PLC0415 - only with servers

    found = {name: each for name, each in settings.mcp_servers.items() if each.origin != "project"}
    for file in choice.files:
        found |= _of_flag(file, notice)
    found |= {name: Configured(entry=entry, origin="flag") for name, entry in choice.given.items()}
    project = {
        name: (each.entry, each.origin)
        for name, each in settings.mcp_servers.items()
        if each.origin == "project"
    }
    if settings.trusted is not False:
        listed = read_file(cwd, notice)
        project = {name: (entry, PROJECT_FILE) for name, entry in listed.items()} | project
    approvals = approvals_of(environ)
    for name, (entry, origin) in project.items():
        if name in found:
            notice(f"the MCP server {name} of {origin} is ignored: you have one of that name")
            continue
        approved = approvals.answer(cwd, name, entry) is True
        found[name] = Configured(entry=entry, origin=origin, approved=approved)
    return found


def approvals_of(environ: Mapping[str, str]) -> Approvals:
    """The user's answers about servers of projects."""
    from toolwire.mcp.projects import Approvals  # noqa: PLC0415 - only with servers
    from toolwire.storage.private_files import approval_store  # noqa: PLC0415 - only with servers

    return Approvals(approval_store(state_paths(environ).config))


def _of_flag(file: Path, notice: Notice) -> dict[str, Configured]:
    """The servers of a file that `--mcp-config` names: JSON with `mcpServers`, or TOML."""
    from toolwire.mcp.entry import Configured, read_entry  # noqa: PLC0415 - only with servers
    from toolwire.mcp.projects import read_json  # noqa: PLC0415 - only with servers

    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--mcp-config: {file} cannot be read: {error}") from error
    if file.suffix == ".toml" or not text.lstrip().startswith("{"):
        try:
            tables = tomllib.loads(text).get("mcp_servers", {})
        except tomllib.TOMLDecodeError as error:
            raise BadInput(f"--mcp-config: {file} is not TOML: {error}") from error
        entries = {name: read_entry(name, table, str(file)) for name, table in tables.items()}
    else:
        entries = read_json(text, str(file), notice)
    return {name: Configured(entry=entry, origin="flag") for name, entry in entries.items()}


def chosen(found: Mapping[str, Configured], choice: ServerChoice) -> dict[str, Configured]:
    """Those that `--mcp` names, all without it; an unknown name is an error."""
    for name in choice.only:
        if name not in found:
            raise UnknownName("MCP server", name, tuple(found))
    return {name: each for name, each in found.items() if not choice.only or name in choice.only}


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How this user reaches servers from a folder."""

    environ: Mapping[str, str]
    cwd: Path
    show: Show | None = None
    """Shows the address of a login; None where no user is present."""

    def reach(self, transport: Transport) -> Reach:
        """The way to servers."""
        from toolwire.mcp.connection import Reach  # noqa: PLC0415 - only with servers

        return Reach(
            directory=self.cwd,
            environ=self.environ,
            transport=transport,
            login=lambda entry: self.login("", entry),
        )

    def login(self, name: str, entry: ServerEntry) -> ServerLogin:
        """The credentials of a server."""
        from toolwire.auth.credentials import open_store  # noqa: PLC0415 - only with servers
        from toolwire.mcp.login import LoginStore, ServerLogin  # noqa: PLC0415 - only with servers

        return ServerLogin(
            name,
            entry,
            self.environ,
            LoginStore(open_store(state_paths(self.environ), self.environ)),
            show=self.show,
            command=self._printed,
        )

    async def log_in(self, name: str, entry: ServerEntry, show: Show) -> None:
        """Logs in with the browser, as the server's own challenge demands."""
        from toolwire.client.http.transport import HttpTransport  # noqa: PLC0415 - only with servers
        from toolwire.mcp.login import challenge_of  # noqa: PLC0415 - only with servers

        if not entry.url:
            raise BadInput(f"the MCP server {name} is a program; it has no login")
        transport = HttpTransport()
        try:
            challenge = await challenge_of(entry.url, transport)
        finally:
            await transport.aclose()
        await self.login(name, entry).log_in(challenge, show)

    async def _printed(self, command: str) -> str:
        """What the user's own command for headers prints."""
        process = await asyncio.create_subprocess_shell(
            command,
            cwd=self.cwd,
            env=dict(self.environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(_COMMAND_SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            raise BadInput(
                f"headers_command did not end within {_COMMAND_SECONDS:g} seconds"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            words = err.decode("utf-8", "replace").strip()[-500:]
            raise BadInput(f"headers_command failed with {process.returncode}: {words}")
        return out.decode("utf-8", "replace")


def open_servers(
    entries: Mapping[str, ServerEntry],
    settings: Settings,
    access: Access,
    notice: Notice,
    elicit: Callable[[str], Elicit] | None = None,
) -> Servers:
    """The servers, none of them started yet."""
    from toolwire.client.http.transport import (  # noqa: PLC0415 - only with servers
        HttpLimits,
        HttpTransport,
    )
    from toolwire.mcp.client import Host  # noqa: PLC0415 - only with servers
    from toolwire.mcp.remembered import Memory  # noqa: PLC0415 - only with servers
    from toolwire.mcp.servers import Servers  # noqa: PLC0415 - only with servers

    folder = access.cwd.resolve()
    # Requests have limits of their own, longer than a model may be silent.
    transport = HttpTransport(HttpLimits(read=None))
    servers = Servers(
        entries,
        settings.mcp,
        reach=access.reach(transport),
        host=Host(roots=((folder.as_uri(), folder.name),)),
        memory=Memory(state_paths(access.environ).cache / "mcp", asking=elicit is not None),
        notice=notice,
        login=access.login,
        elicit=elicit,
        closing=transport.aclose,
    )
    for server in servers.servers.values():
        _learn(server.entry)
    return servers


def _learn(entry: ServerEntry) -> None:
    """Values that are secret are redacted from errors and records from now on."""
    named = (*entry.env.items(), *entry.headers.items())
    for name, value in named:
        if is_secret_name(name) and len(value) >= SHORTEST:
            Secret(value)
            Secret(value.rpartition(" ")[2])
    if entry.url:
        learn_url(entry.url)


async def join_servers(
    toolbox: Toolbox,
    settings: Settings,
    *,
    environ: Mapping[str, str],
    cwd: Path,
    choice: ServerChoice,
    ask: Callable[[str, tuple[str, ...]], Awaitable[str]] | None,
) -> SessionServers | None:
    """Opens the servers and joins their tools to the toolbox; None if none is configured."""
    if not are_configured(settings, cwd, choice):
        return None
    from toolwire.mcp.session import SessionServers  # noqa: PLC0415 - only with servers

    notices: list[str] = []
    found = chosen(configured(settings, environ, cwd, notices.append, choice), choice)
    waiting = [name for name, each in found.items() if not each.approved and each.entry.enabled]
    if waiting:
        notices.append(
            f"MCP servers of this project wait for your approval: {', '.join(waiting)}; "
            'run "toolwire mcp approve"'
        )
    entries = {name: each.entry for name, each in found.items() if each.approved}
    elicit = choice.elicit
    if ask is not None and elicit is None:
        from toolwire.mcp.elicitation import asking  # noqa: PLC0415 - only with servers

        elicit = asking(ask)
    servers = open_servers(
        entries, settings, Access(environ=environ, cwd=cwd), notices.append, elicit
    )
    _trust(toolbox, settings, entries, notices.append)
    try:
        await servers.open(
            0.0 if choice.interactive else settings.mcp.wait_seconds, start=choice.interactive
        )
    except BaseException:
        await servers.close()
        raise
    return SessionServers(
        servers,
        toolbox.registry,
        notices,
        defer=settings.mcp.defer,
        exclude=settings.tools.exclude,
        joined=toolbox.policy.serve,
    )


def _trust(
    toolbox: Toolbox, settings: Settings, entries: Mapping[str, ServerEntry], notice: Notice
) -> None:
    """Allows what servers with `trust = true` offer, in a folder that the user trusts."""
    trusted = [name for name, entry in entries.items() if entry.trust and entry.enabled]
    if trusted and not settings.trusted:
        notice(
            f"trust = true of {', '.join(trusted)} has no effect: this folder is not trusted; "
            'run "toolwire config trust"'
        )
        return
    policy = toolbox.policy
    rules = tuple(
        Rule(decision=Verdict.ALLOW, server=name, origin=f"mcp_servers.{name}.trust")
        for name in trusted
    )
    policy.terms = msgspec.structs.replace(policy.terms, rules=(*policy.terms.rules, *rules))


async def server_command(
    toolbox: Toolbox, words: str, settings: Settings, environ: Mapping[str, str], show: Show
) -> str:
    """What `/mcp words` of a chat prints; `show` shows the address of a login."""
    if toolbox.servers is None:
        return "no MCP servers are configured; add one: toolwire mcp add NAME COMMAND_OR_URL"
    from toolwire.mcp import chat  # noqa: PLC0415 - only with servers

    cwd = toolbox.context.workspace.roots[0]
    access = Access(environ=environ, cwd=cwd)
    actions = chat.ChatActions(
        configured=lambda: configured(settings, environ, cwd, _unheard),
        approve=lambda name, entry: approvals_of(environ).keep(cwd, name, entry, allowed=True),
        log_in=lambda name, entry: access.log_in(name, entry, show),
    )
    return await chat.run(toolbox.servers, words, actions)


class ServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One MCP server in a list."""

    name: str
    state: str
    tools: int = 0
    about: str = ""
    """Where it is, its last error, and the last line that it printed."""


def server_rows(
    toolbox: Toolbox, settings: Settings, environ: Mapping[str, str]
) -> list[ServerRow]:
    """Returns every server of a session and those that are configured but not in use."""
    if toolbox.servers is None:
        return []
    servers = toolbox.servers.servers
    found: list[ServerRow] = []
    for name, state, tools in toolbox.servers.states():
        server = servers.servers.get(name)
        if server is None:
            about = servers.lost.get(name, "")
        else:
            entry = server.entry
            words = map(str, hidden_arguments(entry.args))
            where = hide_in_url(entry.url) if entry.url else shlex.join((entry.command, *words))
            printed = server.connection.last_words
            lines = (where, server.connection.error, f"printed: {printed}" if printed else "")
            about = "\n".join(filter(None, lines))
        row = ServerRow(name=name, state=state.replace("_", " "), tools=tools, about=about)
        found.append(row)
    used = {row.name for row in found}
    cwd = toolbox.context.workspace.roots[0]
    for name, each in configured(settings, environ, cwd, _unheard).items():
        if name not in used:
            state = "disabled" if each.approved else "waits for approval"
            found.append(ServerRow(name=name, state=state))
    return found


def _unheard(words: str) -> None:
    """Notices about files were given when the session opened."""
    del words
