"""`toolwire run`: one prompt, worked on without a person, its answer printed."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import click

from toolwire.cli.headless import exits
from toolwire.cli.headless.output import Output, failed
from toolwire.errors import BadInput, ToolwireError, UnknownName

_MODES = ("default", "auto_edit", "yolo", "plan")
_FORMATS = ("text", "json", "stream-json")
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("run")
@click.argument("prompt", required=False)
@click.option("-p", "--prompt", "more", metavar="PROMPT", help="The prompt, as an option.")
@click.option("-m", "--model", default="", metavar="P/M", help="Model to ask: provider/model.")
@click.option("--provider", default="", help="Provider to ask, with its first choice of model.")
@click.option("--base-url", default="", metavar="URL", help="Where the provider is reached.")
@click.option(
    "--upstream",
    metavar="DIALECT=URL",
    help="A nameless provider: DIALECT=URL[,key=K][,model=M][,style=S].",
)
@click.option(
    "--tool-style", type=click.Choice(("auto", "native", "xml", "json")), help="How tools are told."
)
@click.option("--approval-mode", type=click.Choice(_MODES), help="What runs without a question.")
@click.option("-y", "--yolo", is_flag=True, help="The same as --approval-mode yolo.")
@click.option(
    "--allowed-tools",
    multiple=True,
    metavar="LIST",
    help="Tools that need no approval, by comma; run_shell_command(git) allows one command.",
)
@click.option("--output-format", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("--session", default="", metavar="ID", help="Go on with this session.")
@click.option("--continue", "latest", is_flag=True, help="Go on with this folder's last session.")
@click.option("--max-turns", type=click.IntRange(min=0), help="Requests to the model at most.")
@click.option("--cwd", "folder", type=_FOLDER, help="Work in this folder.")
@click.option("--system", type=_FILE, help="File that takes the place of the system prompt.")
@click.option("--no-mcp", is_flag=True, help="Start no MCP server.")
@click.option("--record", type=_FILE, help="Write every exchange to this file, without secrets.")
@click.option("--replay", type=_FILE, help="Answer from a file that --record wrote.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
def command(**options: Any) -> None:
    """Work on one prompt without asking anybody, and print the answer.

    The prompt is PROMPT, --prompt or standard input; of both, standard input comes first.
    Tools that need approval run only with --approval-mode or --allowed-tools.
    """
    from toolwire.cli.headless.running import Run

    if options["yolo"] and options["approval_mode"] not in (None, "yolo"):
        raise click.UsageError("--yolo and --approval-mode contradict each other; give one")
    if options["session"] and options["latest"]:
        raise click.UsageError("--session and --continue contradict each other; give one")
    if options["record"] and options["replay"]:
        raise click.UsageError("--record and --replay contradict each other; give one")
    output = _output(options["output_format"], options["quiet"])
    try:
        run = Run(options, os.environ)
        code = asyncio.run(run.run(output))
    except ToolwireError as error:
        output.end("", failed(error))
        usage = isinstance(error, UnknownName) and not isinstance(error, BadInput)
        raise SystemExit(exits.USAGE if usage else exits.code_of_error(error)) from error
    raise SystemExit(code)


def _output(name: str, quiet: bool) -> Output:
    from toolwire.cli.headless.json_output import JsonOutput, StreamJsonOutput
    from toolwire.cli.headless.text_output import TextOutput

    match name:
        case "json":
            return JsonOutput(sys.stdout)
        case "stream-json":
            return StreamJsonOutput(sys.stdout)
        case _:
            return TextOutput(sys.stdout, sys.stderr, quiet=quiet)
