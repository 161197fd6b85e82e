"""Options of every command that runs a session."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
SANDBOX = click.option(
    "--sandbox",
    type=click.Choice(("auto", "off", "none", "read-only", "workspace-write")),
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
        type=click.Choice(("auto", "native", "xml", "json")),
        help="How tools are described to the model.",
    ),
    click.option(
        "--approval-mode",
        type=click.Choice(("default", "auto_edit", "yolo", "plan")),
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
