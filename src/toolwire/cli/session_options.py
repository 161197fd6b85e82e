"""Options of every command that runs a session, and what they open."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
import msgspec

from toolwire import config
from toolwire.app.options import SessionOptions
from toolwire.cli.consent import asker, check_workspace
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.record import RecordingTransport, ReplayTransport
from toolwire.client.redact import known_secrets
from toolwire.config import Settings, current_folder
from toolwire.errors import BadInput
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers.custom import read_upstream
from toolwire.tools.spec import SandboxSetting

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
SANDBOX = click.option(
    "--sandbox",
    type=click.Choice(get_args(SandboxSetting)),
    help="Sandbox for commands; auto: workspace-write where the system supports it.",
)
_OPTIONS = (
    click.option("-m", "--model", default="", metavar="P/M", help="Model: provider/model."),
    click.option("--provider", default="", help="Provider; uses its default model."),
    click.option("--base-url", default="", metavar="URL", help="Base URL of the provider."),
    click.option(
        "--upstream",
        metavar="DIALECT=URL",
        help="Ad-hoc provider: DIALECT=URL[,key=K][,model=M][,style=S].",
    ),
    click.option(
        "--tool-style",
        type=click.Choice(tuple(map(str, ToolStyle))),
        help="How tools are described to the model.",
    ),
    click.option(
        "--approval-mode",
        type=click.Choice(tuple(map(str, Mode))),
        help="Approval mode: which calls run without asking.",
    ),
    SANDBOX,
    click.option("-y", "--yolo", is_flag=True, help="Same as --approval-mode yolo."),
    click.option(
        "--allowed-tools",
        multiple=True,
        metavar="LIST",
        help="Tools that need no approval, comma-separated; run_shell_command(git) allows one.",
    ),
    click.option("--session", default="", metavar="ID", help="Continue this session."),
    click.option(
        "--continue", "latest", is_flag=True, help="Continue this folder's most recent session."
    ),
    click.option(
        "--max-turns", type=click.IntRange(min=0), help="Maximum number of model requests."
    ),
    click.option("--cwd", "folder", type=_FOLDER, help="Work in this folder."),
    click.option("--system", type=FILE, help="File that replaces the system prompt."),
    click.option("--yes", is_flag=True, help="Download the embedded model without asking."),
    click.option("--weights", type=FILE, help="Use this model file for the embedded model."),
    click.option("--no-mcp", is_flag=True, help="Start no MCP servers."),
    click.option(
        "--record", type=FILE, help="Record every exchange to this file, without secrets."
    ),
    click.option("--replay", type=FILE, help="Replay a file written by --record."),
)


def session_options(command: _Command) -> _Command:
    """Adds all of them to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_together(options: dict[str, Any]) -> None:
    """Raises if options contradict each other."""
    if options["yolo"] and options["approval_mode"] not in (None, "yolo"):
        raise click.UsageError("--yolo and --approval-mode contradict each other; give one")
    for one, other in (("session", "latest"), ("record", "replay")):
        if options[one] and options[other]:
            names = {"latest": "continue"}
            raise click.UsageError(
                f"--{one} and --{names.get(other, other)} contradict each other; give one"
            )


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """A session's settings, options and working folder."""

    settings: Settings
    session: SessionOptions
    cwd: Path


def read_options(
    options: Mapping[str, Any], environ: Mapping[str, str], *, interactive: bool
) -> SessionStart:
    """Merges the command's options with the settings."""
    cwd = options["folder"].resolve() if options["folder"] else current_folder()
    if not options["folder"]:
        check_workspace(cwd, environ)
    flags = {
        "approval_mode": "yolo" if options["yolo"] else options["approval_mode"],
        "tool_style": options["tool_style"],
        "limits.turns": options["max_turns"],
        "tools.sandbox": options["sandbox"],
    }
    settings = config.load(environ, cwd, flags=flags, ask=asker())
    upstream = options["upstream"]
    session = SessionOptions(
        model=options["model"],
        provider=options["provider"],
        base_url=options["base_url"],
        upstream=read_upstream(upstream) if upstream else None,
        mode=settings.approval_mode,
        allowed=_listed(options["allowed_tools"]),
        session=options["session"],
        latest=options["latest"],
        system=options["system"],
        interactive=interactive,
    )
    return SessionStart(settings=settings, session=session, cwd=cwd)


def open_transport(options: Mapping[str, Any], stack: AsyncExitStack) -> Transport:
    """Returns the HTTP transport; records with `--record`, replays with `--replay`."""
    replay, record = options["replay"], options["record"]
    if replay:
        try:
            lines = replay.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"--replay: {replay} cannot be read: {error}") from error
        return ReplayTransport(lines, secrets=known_secrets())
    http = HttpTransport()
    stack.push_async_callback(http.aclose)
    if not record:
        return http
    try:
        file = stack.enter_context(record.open("w", encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--record: {record} cannot be written: {error.strerror}") from error

    def write(line: str) -> None:
        file.write(f"{line}\n")
        file.flush()

    return RecordingTransport(http, write, secrets=known_secrets())


def _listed(values: tuple[str, ...]) -> tuple[str, ...]:
    """Splits comma-separated lists; commas inside brackets belong to the entry."""
    entries: list[str] = []
    for value in values:
        depth, entry = 0, ""
        for letter in value:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth <= 0:
                entries.append(entry)
                entry = ""
            else:
                entry += letter
        entries.append(entry)
    return tuple(entry.strip() for entry in entries if entry.strip())
