"""`toolwire config`: show and change settings, trust folders."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec

from toolwire import config
from toolwire.cli.consent import asker
from toolwire.cli.terminal import agrees, echo_table, fail
from toolwire.config import edit, trust
from toolwire.config.display import Row, file_states, rows
from toolwire.config.layers import ConfigFiles, config_files, read_text
from toolwire.config.schema import keys
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.wire.json_access import dump

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_TARGET = click.option(
    "--project/--user",
    "project",
    default=False,
    help="Change the project's file, or your own (default).",
)


@click.group("config")
def config_command() -> None:
    """Show and change the settings; trust a folder."""


@config_command.command("show")
@_JSON
def show(as_json: bool) -> None:
    """Print every setting with its value and origin.

    Secrets are hidden.
    """
    with _errors_reported():
        _print(rows(config.resolve(os.environ, config.current_folder(), ask=asker())), as_json)


@config_command.command("get")
@click.argument("key")
@_JSON
def get(key: str, as_json: bool) -> None:
    """Print the value of a setting, or of every setting in a table."""
    with _errors_reported():
        found = rows(config.resolve(os.environ, config.current_folder()))
        exact = [row for row in found if row.key == key]
        inside = [row for row in found if row.key.startswith(f"{key}.")]
        if not exact and not inside:
            if key in keys():
                return
            raise UnknownName("setting", key, dict.fromkeys((*keys(), *(row.key for row in found))))
    if exact and as_json:
        click.echo(dump(exact[0].value))
    elif exact:
        value = exact[0].value
        click.echo(value if isinstance(value, str) else exact[0].text)
    else:
        _print(inside, as_json)


@config_command.command("set")
@click.argument("key")
@click.argument("value")
@_TARGET
def set_(key: str, value: str, project: bool) -> None:
    """Store a setting in your file or the project's.

    The rest of the file is unchanged. Write a list as a,b or as TOML: ["a", "b"].
    """
    with _errors_reported():
        files, file = _target(project)
        with trust_kept():
            edit.set_value(files, file, key, value, config.current_folder())
        click.echo(f"{key} is set in {file}", err=True)
        _tell_what_wins(key, file)


@config_command.command("unset")
@click.argument("key")
@_TARGET
def unset(key: str, project: bool) -> None:
    """Remove a setting from your file or the project's."""
    with _errors_reported():
        files, file = _target(project)
        with trust_kept():
            edit.unset_value(files, file, key)
        click.echo(f"{key} is no longer set in {file}", err=True)


@config_command.command("edit")
@_TARGET
def edit_(project: bool) -> None:
    """Open your file or the project's in the editor, and check it afterwards.

    The editor is $VISUAL or $EDITOR. A file with an error is not stored: you may edit it again, or
    keep the old one.
    """
    with _errors_reported():
        files, file = _target(project)
        before = read_text(file)
        text: str = before if before is not None else edit.NEW_FILE
        while True:
            edited = click.edit(text, extension=".toml", require_save=False)
            if edited is None or edited == (before if before is not None else edit.NEW_FILE):
                click.echo(f"{file} is unchanged", err=True)
                return
            try:
                with trust_kept():
                    edit.store(files, file, edited, before)
                break
            except ToolwireError as error:
                click.echo(f"toolwire: {error}", err=True)
                if not agrees("Edit it again? Without a yes, the old file stays."):
                    raise BadInput(f"{file} is unchanged") from error
                text = edited
        click.echo(f"{file} is stored", err=True)


@config_command.command("schema")
def schema() -> None:
    """Print the JSON Schema of a settings file, for editors.

    Put "#:schema PATH" in the first line of the file; see the page about settings.
    """
    from toolwire.config.document import settings_schema

    click.echo(msgspec.json.format(msgspec.json.encode(settings_schema()), indent=2).decode())


@config_command.command("path")
@_JSON
def path(as_json: bool) -> None:
    """Print the files that settings are read from.

    The lowest precedence comes first.
    """
    with _errors_reported():
        found = file_states(os.environ, config.current_folder())
    if as_json:
        click.echo(
            dump([{"layer": one, "path": file, "state": state} for one, file, state in found])
        )
        return
    echo_table(("LAYER", "FILE", "STATE"), found)


@config_command.command("trust")
@click.argument(
    "folder",
    metavar="[DIR]",
    default=".",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--no", "refuse", is_flag=True, help="Do not trust it, and never ask again.")
@click.option("--parent", is_flag=True, help="Trust the parent folder and everything in it.")
def trust_(folder: Path, refuse: bool, parent: bool) -> None:
    """Trust a folder's current settings.

    If they change, you are asked again.
    """
    if refuse and parent:
        raise click.UsageError("--no and --parent contradict each other; give one")
    answer = trust.TrustAnswer.NO if refuse else trust.TrustAnswer.YES
    with _errors_reported():
        about = trust.trust(folder, trust.TrustAnswer.PARENT if parent else answer, os.environ)
    click.echo(f"{about} is {'not trusted' if refuse else 'trusted'} from now on", err=True)


@contextmanager
def trust_kept() -> Generator[None]:
    """Keeps a folder trusted after the user changes its settings with a command."""
    cwd = config.current_folder()
    trusted = trust.is_trusted(cwd, os.environ)
    yield
    if trusted and not trust.is_trusted(cwd, os.environ):
        trust.trust(cwd, trust.TrustAnswer.YES, os.environ)


def _target(project: bool) -> tuple[ConfigFiles, Path]:
    files = config_files(os.environ, config.current_folder())
    return files, files.project if project else files.user


def _tell_what_wins(key: str, file: Path) -> None:
    origin = config.resolve(os.environ, config.current_folder()).origins.get(key, "")
    if origin and str(file) not in origin.split(", ") and origin != "default":
        click.echo(f"{key} is also set by {origin}, which wins here", err=True)


def _print(found: list[Row], as_json: bool) -> None:
    if as_json:
        values = {row.key: {"value": row.value, "origin": row.origin} for row in found}
        click.echo(dump(values))
        return
    echo_table(("SETTING", "VALUE", "FROM"), ((row.key, row.text, row.origin) for row in found))


@contextmanager
def _errors_reported() -> Generator[None]:
    try:
        yield
    except UnknownName as error:
        raise click.UsageError(str(error)) from error
    except ToolwireError as error:
        fail(error)
