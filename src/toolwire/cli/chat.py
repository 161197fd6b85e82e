"""`toolwire chat`: a conversation on a plain terminal."""

import asyncio
import os
import sys
from typing import Any

import click

from toolwire.cli.headless import output
from toolwire.cli.session_options import check_together, session_options
from toolwire.errors import ToolwireError


@click.command("chat")
@session_options
def command(**options: Any) -> None:
    """Chat with a model that works on the files in this folder; it asks before it changes any.

    Without a terminal, use `toolwire run`.
    """
    from toolwire.cli.asked import read_asked
    from toolwire.cli.chatting.talk import Talk

    check_together(options)
    if not sys.stdin.isatty():
        raise click.UsageError("chat needs a terminal; for scripts and pipes use toolwire run")

    async def talk() -> None:
        asked = read_asked(options, os.environ, interactive=True)
        await Talk(
            asked, options, os.environ, source=sys.stdin, out=sys.stdout, err=sys.stderr
        ).run()

    try:
        asyncio.run(talk())
    except ToolwireError as error:
        click.echo(f"toolwire: {error}", err=True)
        raise SystemExit(output.code_of_error(error)) from error
