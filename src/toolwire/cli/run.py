"""`toolwire run`: run one prompt headless and print the answer."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

import click
import msgspec

from toolwire.agent.events import AgentEvent, Emit, Noticed, TurnEnd, TurnEnded, reader_of
from toolwire.agent.structured import OutputSchema
from toolwire.app.builder import open_session
from toolwire.app.options import AS_OPENED
from toolwire.app.session import AgentSession, PromptRefused
from toolwire.app.stored_sessions import stored_sessions
from toolwire.app.user_input import named_command, read_input
from toolwire.cli import output as exits
from toolwire.cli.consent import consent
from toolwire.cli.output import (
    JsonOutput,
    Output,
    OutputOptions,
    StreamJsonOutput,
    StreamWriter,
    failed,
)
from toolwire.cli.session_options import (
    FILE,
    SessionFlags,
    open_transport,
    read_schema,
    session_options,
)
from toolwire.cli.terminal import end_soon, ending_at_once, error_line
from toolwire.cli.text_output import TextOutput
from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.platform import handle_signals, wait_for_input
from toolwire.terminal_text import one_line

_FORMATS = ("text", "json", "stream-json")


@click.command("run")
@click.argument("prompt", required=False)
@click.option(
    "-p",
    "--prompt",
    "--print",
    "more",
    metavar="PROMPT",
    help="The prompt, instead of the argument.",
)
@session_options
@click.option(
    "--output-format",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="Format of the answer; stream-json prints one event per line.",
)
@click.option(
    "--output-schema",
    type=FILE,
    metavar="FILE",
    help="JSON Schema that the answer must fit; one that does not is requested again, then fails.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no progress to standard error.")
def run_command(
    flags: SessionFlags,
    prompt: str | None,
    more: str | None,
    output_format: str,
    output_schema: Path | None,
    quiet: bool,
) -> None:
    """Run one prompt without asking questions, and print the answer.

    The prompt is PROMPT, --prompt or standard input; given both, standard input comes first.
    Tools that need approval run only with --approval-mode or --allowed-tools.
    """
    out = StreamWriter("standard output", sys.stdout)
    shown = OutputOptions(
        verbose=flags.verbose,
        quiet=quiet,
        structured=output_schema is not None,
        headless=True,
    )
    output = _output(out, output_format, shown)
    try:
        with ending_at_once(exits.CANCELLED):
            schema = read_schema(output_schema) if output_schema is not None else None
            run = Run(flags, read_prompt(prompt, more), os.environ, schema)
            code = asyncio.run(run.run(output))
    except ToolwireError as error:
        output.end("", failed(error))
        usage = isinstance(error, UnknownName) and not isinstance(error, BadInput)
        code = exits.USAGE if usage else exits.code_of_error(error)
    if out.lost and output_format != "text":
        click.echo(error_line(out.lost), err=True, nl=False)
    raise SystemExit(code)


def _output(out: StreamWriter, name: str, shown: OutputOptions) -> Output:
    match name:
        case "json":
            return JsonOutput(out, shown)
        case "stream-json":
            return StreamJsonOutput(out, shown)
        case _:
            return TextOutput(out, StreamWriter("standard error", sys.stderr, needed=False), shown)


_PATIENCE = 0.5
"""Seconds to wait for the first byte of a pipe when there is a prompt: some callers leave standard
input open and never write to it.
"""


class Prompt(msgspec.Struct, frozen=True):
    """The typed prompt and the piped input; at least one is not empty."""

    typed: str
    piped: str


def read_prompt(argument: str | None, option: str | None) -> Prompt:
    """Returns both; BadInput if both are empty."""
    if argument and option:
        raise BadInput("the prompt is given twice, as an argument and with --prompt; give one")
    typed = argument or option or ""
    # The parent may have closed standard input.
    source: TextIO | None = sys.stdin
    piped = "" if source is None or source.isatty() else _piped(source.buffer, typed)
    if not typed.strip() and not piped.strip():
        raise BadInput('no prompt; give one: toolwire run "what is in this folder?"')
    return Prompt(typed if typed.strip() else "", piped if piped.strip() else "")


def _piped(source: BinaryIO, typed: str) -> str:
    if typed and not _ready(source):
        return ""
    data = source.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"standard input is not UTF-8 (byte {error.start}); convert it, or name the file with @"
        ) from error


def _ready(source: BinaryIO) -> bool:
    mode = os.fstat(source.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return True
    return wait_for_input(source.fileno(), _PATIENCE)


class Run:
    """A headless run with its options."""

    def __init__(
        self,
        flags: SessionFlags,
        prompt: Prompt,
        environ: Mapping[str, str],
        schema: OutputSchema | None = None,
    ) -> None:
        self._flags = flags
        self._environ = environ
        self._prompt = prompt
        self._settings, self._cwd = flags.read_settings(environ)
        self._options = flags.options(interactive=False, output=schema)
        self._new = ""
        """The id of the session if this run created it."""

    async def run(self, output: Output) -> int:
        """Runs it; returns the exit code."""
        try:
            return await self._opened(output)
        except PromptRefused:
            # Nothing of it is stored, not even an empty session.
            if self._new:
                stored_sessions(self._environ, self._settings).delete(self._new)
            raise

    async def _opened(self, output: Output) -> int:
        async with AsyncExitStack() as stack:
            transport = open_transport(self._flags, stack)
            session = await stack.enter_async_context(
                open_session(
                    self._options,
                    settings=self._settings,
                    environ=self._environ,
                    cwd=self._cwd,
                    readers=(reader_of(output.receive), reader_of(_warn_of_servers(output))),
                    transport=transport,
                    consent=consent(self._flags.weights, self._flags.yes),
                )
            )
            options = self._options
            self._new = (
                session.id if options.kept and not (options.session or options.latest) else ""
            )
            try:
                with interruptible():
                    ended = await self._sent(session)
            except asyncio.CancelledError:
                _uncancel()
                ended = TurnEnded(reason=TurnEnd.CANCELLED)
            output.end(session.id, ended)
            code = exits.code_of(ended)
            if code == exits.CANCELLED:
                end_soon(code)
            return code

    async def _sent(self, session: AgentSession) -> TurnEnded:
        typed, own, options = self._prompt.typed, None, AS_OPENED
        if typed.startswith("/"):
            found = await named_command(typed, session, self._settings, self._environ)
            if found is not None:
                (typed, own), options = found
        prompt_message = await read_input(
            session.toolbox,
            typed,
            piped=self._prompt.piped,
            attached=self._flags.attached,
            respect_git_ignore=self._settings.context.respect_git_ignore,
            own=own,
        )
        for words in prompt_message.notices:
            await session.note("mention", words)
        return await session.send(prompt_message.message, options)


def _warn_of_servers(output: Output) -> Emit:
    """Prints what happens to MCP servers on standard error, where the output does not."""

    async def warn(event: AgentEvent) -> None:
        shown = isinstance(output, TextOutput)
        if isinstance(event, Noticed) and event.kind == "mcp" and not shown:
            click.echo(f"toolwire: {one_line(event.message)}", err=True)

    return warn


@contextmanager
def interruptible() -> Generator[None]:
    """The first Ctrl-C (or SIGTERM) cancels the turn, the second exits at once."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - we are in one
    pressed = 0

    def stop() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            task.cancel()
        else:
            # The watchdogs end commands that still run.
            os._exit(exits.CANCELLED)

    with handle_signals(loop, (signal.SIGINT, signal.SIGTERM), stop):
        yield


def _uncancel() -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
