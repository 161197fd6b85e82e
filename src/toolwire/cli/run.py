"""`toolwire run`: run one prompt headless and print the answer."""

import asyncio
import os
import sys
from typing import Any

import click

from toolwire.cli.headless import output as exits
from toolwire.cli.headless.output import Output, StreamWriter, failed
from toolwire.cli.leaving import ending_at_once
from toolwire.cli.session_options import check_together, session_options
from toolwire.errors import BadInput, ToolwireError, UnknownName

_FORMATS = ("text", "json", "stream-json")


@click.command("run")
@click.argument("prompt", required=False)
@click.option("-p", "--prompt", "more", metavar="PROMPT", help="The prompt.")
@session_options
@click.option("--output-format", type=click.Choice(_FORMATS), default="text", show_default=True)
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
def command(**options: Any) -> None:
    """Run one prompt without asking questions, and print the answer.

    The prompt is PROMPT, --prompt or standard input; given both, standard input comes first.
    Tools that need approval run only with --approval-mode or --allowed-tools.
    """
    from toolwire.cli.headless.headless_run import Run

    check_together(options)
    out = StreamWriter("standard output", sys.stdout)
    output = _output(out, options["output_format"], options["quiet"])
    try:
        run = Run(options, os.environ)
        with ending_at_once(exits.CANCELLED):
            code = asyncio.run(run.run(output))
    except ToolwireError as error:
        output.end("", failed(error))
        usage = isinstance(error, UnknownName) and not isinstance(error, BadInput)
        code = exits.USAGE if usage else exits.code_of_error(error)
    if out.lost and options["output_format"] != "text":
        click.echo(f"error: {out.lost}", err=True)
    raise SystemExit(code)


def _output(out: StreamWriter, name: str, quiet: bool) -> Output:
    from toolwire.cli.headless.json_output import JsonOutput, StreamJsonOutput
    from toolwire.cli.headless.text_output import TextOutput

    match name:
        case "json":
            return JsonOutput(out)
        case "stream-json":
            return StreamJsonOutput(out)
        case _:
            return TextOutput(
                out, StreamWriter("standard error", sys.stderr, needed=False), quiet=quiet
            )
