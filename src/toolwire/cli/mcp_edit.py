"""`toolwire mcp add`, `add-json`, `remove`, `enable`, `disable` and `import`."""

import os
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from toolwire import config
from toolwire.app.servers import approvals_of
from toolwire.cli.config import trust_kept
from toolwire.cli.mcp_servers import Place, errors_reported
from toolwire.config import edit, layers, trust
from toolwire.config.layers import ConfigFiles, config_files
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.mcp import imports
from toolwire.mcp.entry import ServerEntry, of_json, project_entry, read_entry
from toolwire.wire.json_access import parse_object

_SCOPE = click.option(
    "-s",
    "--scope",
    type=click.Choice(("user", "project")),
    default="user",
    show_default=True,
    help="Your settings, or those of this project.",
)
_REPLACE = click.option("--replace", is_flag=True, help="Replace a server of that name.")
_URL = ("http://", "https://")
_FIELDS = frozenset(ServerEntry.__struct_fields__)
_FOREIGN = frozenset(("type", "transport", "httpUrl"))


class _AddCommand(click.Command):
    """Takes options up to the command; what follows a command are its arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options: list[str] = []
        words: list[str] = []
        rest = list(args)
        while rest and (len(words) < 2 or words[1].startswith(_URL)):
            word = rest.pop(0)
            if word == "--":
                break
            if not word.startswith("-") or word == "-":
                words.append(word)
                continue
            options.append(word)
            if self._takes_value(word) and rest:
                options.append(rest.pop(0))
        if len(words) == 2 and rest[:1] == ["--"]:
            rest.pop(0)
        return super().parse_args(ctx, [*options, "--", *words, *rest])

    def _takes_value(self, word: str) -> bool:
        """Whether the value of an option is the next word."""
        for one in self.params:
            if isinstance(one, click.Option) and word in one.opts:
                return not one.is_flag
        return False


@click.command("add", cls=_AddCommand)
@click.argument("name")
@click.argument("target", metavar="COMMAND_OR_URL")
@click.argument("args", nargs=-1)
@_SCOPE
@click.option("-t", "--transport", type=click.Choice(("stdio", "http", "sse")))
@click.option("-e", "--env", multiple=True, metavar="K=V", help="Variable of the server.")
@click.option("-H", "--header", multiple=True, metavar='"N: v"', help="Header of its requests.")
@click.option("--env-var", multiple=True, metavar="NAME", help="Variable handed over by name.")
@click.option("--cwd", default="", metavar="DIR", help="Where it runs, from the workspace.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds for a call.")
@click.option("--trust", is_flag=True, help="Run its tools without asking, in trusted folders.")
@click.option("--required", is_flag=True, help="End a run if it cannot start.")
@click.option("--description", default="", help="What it is for.")
@click.option("--include-tools", default="", metavar="A,B", help="Offer these tools only.")
@click.option("--exclude-tools", default="", metavar="A,B", help="Do not offer these tools.")
@_REPLACE
def add_command(
    name: str, target: str, args: tuple[str, ...], scope: str, replace: bool, **given: Any
) -> None:
    """Add a server: a command with its arguments, or a URL.

    Options end at the command; everything after it belongs to the server.
    """
    with errors_reported():
        table = _table(target, args, given)
        file = _stored(name, table, scope, replace=replace)
    click.echo(f"{name} is added to {file}", err=True)


def _table(target: str, args: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    by_url = target.startswith(_URL)
    if by_url and args:
        raise click.UsageError("a URL takes no arguments")
    found: dict[str, Any] = {"url": target} if by_url else {"command": target}
    found |= {
        "args": list(args),
        "transport": given["transport"],
        "env": dict(_pair(each, "=", "-e K=V") for each in given["env"]),
        "headers": dict(_pair(each, ":", '-H "NAME: value"') for each in given["header"]),
        "env_vars": list(given["env_var"]),
        "include_tools": _words(given["include_tools"]),
        "exclude_tools": _words(given["exclude_tools"]),
    }
    for key in ("cwd", "timeout", "trust", "required", "description"):
        found[key] = given[key]
    return {key: value for key, value in found.items() if value not in (None, "", False, [], {})}


def _pair(text: str, mark: str, form: str) -> tuple[str, str]:
    name, found, value = text.partition(mark)
    if not found or not name.strip():
        raise click.UsageError(f"{text.partition('=')[0]!r} is not of the form {form}")
    return name.strip(), value.strip() if mark == ":" else value


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


@click.command("add-json")
@click.argument("name")
@click.argument("text", metavar="JSON")
@_SCOPE
@_REPLACE
def add_json_command(name: str, text: str, scope: str, replace: bool) -> None:
    """Add a server given as a JSON object, with our keys or those of `mcpServers`."""
    with errors_reported():
        table = parse_object(text, "JSON")
        unknown = [key for key in table if key not in _FIELDS | _FOREIGN]
        if unknown:
            raise UnknownName(f"setting of mcp_servers.{name}", unknown[0], sorted(_FIELDS))
        own = {key: value for key, value in table.items() if key in _FIELDS - {"transport"}}
        file = _stored(name, {**own, **of_json(table)}, scope, replace=replace)
    click.echo(f"{name} is added to {file}", err=True)


@click.command("remove")
@click.argument("name")
@click.option("-s", "--scope", type=click.Choice(("user", "project")), help="Where to remove it.")
def remove_command(name: str, scope: str | None) -> None:
    """Remove a server from your settings, or from those of this project."""
    with errors_reported():
        files = _files()
        known = _defined(files)
        places = [one for one in ((scope,) if scope else ("user", "project")) if name in known[one]]
        if not places:
            listed = known[scope] if scope else (*known["user"], *known["project"])
            raise UnknownName("MCP server", name, tuple(listed))
        file: Path = getattr(files, places[0])
        with trust_kept():
            edit.unset_value(files, file, f"mcp_servers.{name}")
    click.echo(f"{name} is removed from {file}", err=True)


@click.command("enable")
@click.argument("name")
def enable_command(name: str) -> None:
    """Use a server again."""
    with errors_reported():
        _switch(name, enabled=True)
    click.echo(f"{name} is enabled", err=True)


@click.command("disable")
@click.argument("name")
def disable_command(name: str) -> None:
    """Stop using a server, without removing it."""
    with errors_reported():
        _switch(name, enabled=False)
    click.echo(f"{name} is disabled", err=True)


def _switch(name: str, *, enabled: bool) -> None:
    """In the file that defines it; one of `.mcp.json` or the system in the user's exclusions."""
    place = Place.here()
    each = place.need(name)
    files = _files()
    if each.origin in ("user", "project"):
        file: Path = getattr(files, each.origin)
        with trust_kept():
            edit.set_value(
                files, file, f"mcp_servers.{name}.enabled", str(enabled).lower(), place.cwd
            )
        if each.origin == "project" and each.approved:
            changed = msgspec.structs.replace(each.entry, enabled=enabled)
            approvals_of(place.environ).keep(place.cwd, name, changed, allowed=True)
        if not enabled:
            return
    excluded = [one for one in place.settings.mcp.excluded if one != name]
    if not enabled:
        excluded.append(name)
    if tuple(excluded) != place.settings.mcp.excluded:
        edit.set_value(files, files.user, "mcp.excluded", ",".join(excluded) or "[]", place.cwd)


@click.command("import")
@click.option(
    "--from", "program", required=True, type=click.Choice(tuple(imports.PROGRAMS)), help="Program."
)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Its settings file.",
)
@_SCOPE
@_REPLACE
def import_command(program: str, file: Path | None, scope: str, replace: bool) -> None:
    """Take over the servers of another program; prints what was taken and what was not.

    Trust is never taken over.
    """
    with errors_reported():
        cwd = config.current_folder()
        file = file or _settings_file(program, cwd)
        document = imports.parse(file.read_text("utf-8-sig"), str(file))
        found = imports.read(program, document, cwd)
        if not found:
            raise ToolwireError(f"{file} has no MCP servers")
        taken = [_take(name, one, scope, replace) for name, one in found.items()]
    if not any(taken):
        raise SystemExit(1)


def _take(name: str, one: imports.Imported, scope: str, replace: bool) -> bool:
    try:
        if one.why:
            raise BadInput(one.why)
        _stored(name, one.table, scope, replace=replace)
    except ToolwireError as error:
        click.echo(f"{name}: not taken: {error}")
        return False
    rest = f"; not taken: {', '.join(one.left_out)}" if one.left_out else ""
    click.echo(f"{name}: taken{rest}")
    return True


def _settings_file(program: str, cwd: Path) -> Path:
    names = imports.PROGRAMS[program].files
    home = Path(os.environ.get("HOME") or Path.home())
    files = [
        home / name.removeprefix("~/") if name.startswith("~/") else cwd / name for name in names
    ]
    for file in files:
        if file.is_file():
            return file
    raise ToolwireError(f"no settings of {program} at {files[-1]}; name them with --file")


def _files() -> ConfigFiles:
    return config_files(os.environ, config.current_folder())


def _defined(files: ConfigFiles) -> dict[str, tuple[str, ...]]:
    """The names of servers in the user's file and in the project's."""
    found: dict[str, tuple[str, ...]] = {}
    for scope in ("user", "project"):
        file: Path = getattr(files, scope)
        document = layers.parse(file, layers.read_text(file) or "")
        servers = document.get("mcp_servers")
        found[scope] = tuple(cast(dict[str, Any], servers)) if isinstance(servers, dict) else ()
    return found


def _stored(name: str, table: dict[str, Any], scope: str, *, replace: bool) -> Path:
    """Writes a server to a file of settings; one of a project is approved as it is written."""
    cwd = config.current_folder()
    entry = (project_entry if scope == "project" else read_entry)(name, table)
    files = _files()
    file: Path = getattr(files, scope)
    if name in _defined(files)[scope] and not replace:
        raise BadInput(f"there is an MCP server {name} in {file}; use --replace to replace it")
    new = trust.definition(cwd) == trust.NO_DEFINITION
    with trust_kept():
        edit.set_table(files, file, ("mcp_servers", name), table)
    if scope == "project":
        if new:
            trust.trust(cwd, trust.TrustAnswer.YES, os.environ)
        approvals_of(os.environ).keep(cwd, name, entry, allowed=True)
    return file
