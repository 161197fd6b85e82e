"""The options of every command that holds a session."""

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
    help="How commands are confined; auto: to the workspace, where the system can.",
)
_OPTIONS = (
    click.option("-m", "--model", default="", metavar="P/M", help="Model to ask: provider/model."),
    click.option("--provider", default="", help="Provider to ask, with its first choice of model."),
    click.option("--base-url", default="", metavar="URL", help="Where the provider is reached."),
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
    click.option("-y", "--yolo", is_flag=True, help="The same as --approval-mode yolo."),
    click.option(
        "--allowed-tools",
        multiple=True,
        metavar="LIST",
        help="Tools that need no approval, by comma; run_shell_command(git) allows one command.",
    ),
    click.option("--session", default="", metavar="ID", help="Go on with this session."),
    click.option(
        "--continue", "latest", is_flag=True, help="Go on with this folder's last session."
    ),
    click.option("--max-turns", type=click.IntRange(min=0), help="Requests to the model at most."),
    click.option("--cwd", "folder", type=_FOLDER, help="Work in this folder."),
    click.option("--system", type=FILE, help="File that takes the place of the system prompt."),
    click.option("--yes", is_flag=True, help="Fetch the embedded model without a question."),
    click.option("--weights", type=FILE, help="Use this model file for the embedded model."),
    click.option("--no-mcp", is_flag=True, help="Start no MCP server."),
    click.option("--record", type=FILE, help="Write every exchange to this file, without secrets."),
    click.option("--replay", type=FILE, help="Answer from a file that --record wrote."),
)


def session_options(command: _Command) -> _Command:
    """The command with them all."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def check_together(options: dict[str, Any]) -> None:
    """Refuses options that contradict each other."""
    if options["yolo"] and options["approval_mode"] not in (None, "yolo"):
        raise click.UsageError("--yolo and --approval-mode contradict each other; give one")
    for one, other in (("session", "latest"), ("record", "replay")):
        if options[one] and options[other]:
            names = {"latest": "continue"}
            raise click.UsageError(
                f"--{one} and --{names.get(other, other)} contradict each other; give one"
            )
