"""`toolwire chat`: a conversation on a plain terminal."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from datetime import datetime
from typing import TYPE_CHECKING, TextIO

import click
import msgspec

from toolwire import __version__
from toolwire.agent.events import AgentEvent, TurnEnd, TurnEnded, reader_of
from toolwire.agent.questions import Approver
from toolwire.agent.usage import Stats
from toolwire.app.builder import open_session
from toolwire.app.options import AS_OPENED, SessionOptions, TurnOptions
from toolwire.app.servers import server_command
from toolwire.app.session import AgentSession
from toolwire.app.stored_sessions import stored_sessions
from toolwire.app.user_input import named_command, names_prompt, read_input
from toolwire.cli import output, redraws
from toolwire.cli.chat_input import LineInput, Questions
from toolwire.cli.consent import consent
from toolwire.cli.login import open_browser
from toolwire.cli.output import OutputOptions
from toolwire.cli.session_options import SessionFlags, open_transport, session_options
from toolwire.cli.terminal import error_line
from toolwire.cli.text_output import TextOutput
from toolwire.errors import SessionError, ToolwireError, UnknownName
from toolwire.ide.discovery import open_companion
from toolwire.messages import Message, Text
from toolwire.platform import handle_signals
from toolwire.policy import Mode
from toolwire.terminal_text import one_line
from toolwire.tui.early_prompt import EarlyPrompt
from toolwire.wire.json_access import dump

if TYPE_CHECKING:
    from toolwire.ide.companion import IdeConnection


@click.command("chat")
@click.argument("prompt", required=False)
@click.option(
    "--plain",
    is_flag=True,
    help="Plain lines: for screen readers, and terminals that cannot redraw.",
)
@session_options
def chat_command(flags: SessionFlags, prompt: str | None, plain: bool) -> None:
    """Chat with a model that works on the files in this folder; it asks before it changes any.

    The chat begins with PROMPT, if there is one. Without a terminal, use `toolwire run`.
    """
    if not sys.stdin.isatty():
        raise click.UsageError("chat needs a terminal; for scripts and pipes use toolwire run")

    async def talk() -> None:
        if not plain and redraws(os.environ) and sys.stdout.isatty():
            await _terminal_app(flags, prompt or "")
            return
        chat = Chat(flags, os.environ, source=sys.stdin, out=sys.stdout, err=sys.stderr)
        await chat.run(prompt or "")

    try:
        asyncio.run(talk())
    except ToolwireError as error:
        click.echo(error_line(error), err=True, nl=False)
        usage = isinstance(error, UnknownName)
        raise SystemExit(output.USAGE if usage else output.code_of_error(error)) from error


async def _terminal_app(flags: SessionFlags, prompt: str) -> None:
    from toolwire.tui.app import TerminalApp
    from toolwire.tui.start import Start
    from toolwire.tui.terminal_input import terminal_input

    early = click.get_current_context().find_object(EarlyPrompt)
    settings, cwd = flags.read_settings(os.environ)
    start = Start(
        options=msgspec.structs.replace(flags.options(interactive=True), ask_again=True),
        settings=settings,
        cwd=cwd,
        environ=os.environ,
        transport=lambda stack: open_transport(flags, stack),
        consent=lambda agrees: consent(flags.weights, flags.yes, agrees),
        prompt=prompt,
        attached=flags.attached,
        chooses=flags.chooses,
        verbose=flags.verbose,
        version=__version__,
        early=early,
    )
    await TerminalApp(start, terminal_input(sys.stdin, early), sys.stdout).run()


_MOST_LISTED = 10
"""Sessions to choose from."""
_TAKEN = (
    "help",
    "tools",
    "stats",
    "compress",
    "model",
    "mode",
    "style",
    "new",
    "mcp",
    "quit",
    "exit",
)
"""Commands of the chat, which win over those of files."""
_HELP = """\
/help      show this list       /tools     list the tools
/stats     usage so far         /compress  shorten the conversation
/model P/M switch models        /mode M    set the approval mode
/style S   set the tool style   /new       start a new session
/undo      undo the last turn's changes of files
/restore   list the checkpoints; /restore N: files and conversation as before that turn
/mcp       MCP servers; /mcp restart|login|approve|enable|disable NAME
/quit      leave (Ctrl-D)       Ctrl-C     stop the turn; twice: leave
Text typed while it works reaches the model at its next step. @path attaches a file.
"""


class Chat:
    """A terminal and the sessions that the user opens on it, one at a time."""

    def __init__(
        self,
        flags: SessionFlags,
        environ: Mapping[str, str],
        *,
        source: TextIO,
        out: TextIO,
        err: TextIO,
    ) -> None:
        self._flags = flags
        self._settings, self._cwd = flags.read_settings(environ)
        self._environ = environ
        self._out = out
        self._output = TextOutput(out, err, OutputOptions(verbose=flags.verbose, still=True))
        self._stats = Stats()
        self._session: AgentSession | None = None
        self._ide: IdeConnection | None = None
        self._turn: asyncio.Task[TurnEnded] | None = None
        self._pressed = 0
        self._main: asyncio.Task[object] | None = None
        self._prompt = ""
        """What the next session begins with."""
        self._next = ""
        """The session that follows; empty for a new one."""
        self._attached = flags.attached
        """Files for the first message."""
        self._lines = LineInput(source, out, self._meanwhile)
        self._questions = Questions(out, self._lines, self._output.paused)

    async def run(self, prompt: str = "") -> None:
        """Runs until the user quits; begins with the prompt, if there is one."""
        self._main, self._prompt = asyncio.current_task(), prompt
        with handle_signals(asyncio.get_running_loop(), (signal.SIGINT,), self._interrupted):
            try:
                with self._lines.pasting():
                    await self._sessions()
            except asyncio.CancelledError:
                if self._pressed < 2 or self._main is None:
                    raise
                self._main.uncancel()

    async def _sessions(self) -> None:
        options = self._flags.options(interactive=True)
        if self._flags.chooses:
            options = msgspec.structs.replace(options, session=await self._chosen())
        while await self._session_ended(options):
            next, self._next = self._next, ""
            source = "resume" if next else "clear"
            options = msgspec.structs.replace(options, session=next, latest=False, source=source)

    async def _session_ended(self, options: SessionOptions) -> bool:
        """Runs one session; returns whether the user wants a new one."""
        async with AsyncExitStack() as stack:
            self._ide, words = await open_companion(
                self._settings.ide.enabled, self._environ, self._cwd, stack
            )
            session = await stack.enter_async_context(
                open_session(
                    options,
                    settings=self._settings,
                    environ=self._environ,
                    cwd=self._cwd,
                    readers=(reader_of(self._receive),),
                    approver=self._approver(),
                    editor=self._questions.edit,
                    ask=self._questions.ask,
                    transport=open_transport(self._flags, stack),
                    consent=consent(self._flags.weights, self._flags.yes, self._questions.agrees),
                )
            )
            self._session = session
            if words:
                await session.note("ide" if self._ide else "setup", words)
            self._say(f"{session.opened.name}; /help for help\n")
            while True:
                self._say("> ")
                line = await self._line()
                if line is None or line.strip() in ("/quit", "/exit"):
                    session.leaving = "prompt_input_exit"
                    return False
                self._pressed = 0
                if line.strip() == "/new":
                    session.leaving = "clear"
                    return True
                if line.startswith("/"):
                    await self._commanded(session, line)
                    if self._next:
                        return True
                elif line.strip():
                    try:
                        await self._prompted(session, line)
                    except ToolwireError as error:
                        self._say(error_line(error))

    def _approver(self) -> Approver:
        """Asks in the terminal, and in the IDE if there is one."""
        if self._ide is None:
            return self._questions.approve
        from toolwire.ide.companion import asking_both

        def show(words: str) -> None:
            self._say(f"\n({one_line(words)})\n")

        return asking_both(self._questions.approve, self._ide, show)

    async def _line(self) -> str | None:
        """Returns the first prompt, then what is typed; None at the end of the input."""
        prompt, self._prompt = self._prompt, ""
        if not prompt:
            return await self._lines.next()
        self._say(f"{prompt}\n")
        # Not a command of the chat: the shell passed it as a prompt.
        return f" {prompt}" if prompt.startswith("/") else prompt

    async def _chosen(self) -> str:
        """Returns the session of this folder that the user chooses; Enter is the most recent."""
        found = stored_sessions(self._environ, self._settings).list(str(self._cwd))[:_MOST_LISTED]
        if not found:
            raise SessionError(f"no session in {self._cwd} yet; omit --resume")
        for number, one in enumerate(found, 1):
            when = datetime.fromtimestamp(one.updated).strftime("%Y-%m-%d %H:%M")
            self._say(f"  {number}. {when}  {one_line(one.title)}\n")
        while True:
            typed = await self._questions.number("Which one to continue? [1] ")
            if typed is None:
                raise SessionError("no session was chosen")
            if 1 <= typed <= len(found):
                return found[typed - 1].id

    async def _commanded(self, session: AgentSession, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        try:
            match name:
                case "/model" | "/mode" | "/style":
                    await self._changed(session, name, rest.strip())
                case "/tools":
                    self._say("\n".join(session.toolbox.registry.names) + "\n")
                case "/stats":
                    stats = msgspec.json.format(dump(self._stats.body()), indent=2)
                    self._say(f"{stats}\n")
                case "/compress":
                    if await session.compress(rest.strip()) is None:
                        self._say("nothing to shorten\n")
                case "/undo" | "/restore":
                    self._next = await self._restored(session, name, rest.strip())
                case "/mcp":
                    self._say(f"{await self._servers(session, rest)}\n")
                case _ if names_prompt(session.toolbox, line):
                    await self._prompted(session, line)
                case _ if not await self._custom(session, line):
                    self._say(_HELP)
                case _:
                    pass
        except ToolwireError as error:
            self._say(error_line(error))

    async def _restored(self, session: AgentSession, name: str, number: str) -> str:
        """Restores files, shows what was done; returns the copy of the conversation up to there."""
        from toolwire.app.checkpoints import stored as checkpoints

        found = session.checkpoints
        if found is None:
            raise SessionError("nothing is recorded: the session is not stored, or it is off")
        records = stored_sessions(self._environ, self._settings).read(session.id).records
        lines = {one.n: one for one in checkpoints.checkpoint_lines(found.entries(), records)}
        if name == "/restore" and not number:
            for one in lines.values():
                what = "a restore" if one.kind == "restore" else f"turn {one.turn}"
                self._say(f"  {one.n}. before {what}: {', '.join(one.calls) or '-'}\n")
            return ""
        n = found.undoable() if name == "/undo" else int(number) if number.isdigit() else 0
        done = await found.restore(n)
        for line in checkpoints.restored_text(done, n, self._cwd):
            self._say(f"{one_line(line)}\n")
        if name == "/undo":
            if text := checkpoints.informed(done):
                session.inform(text)
            return ""
        store = stored_sessions(self._environ, self._settings)
        return checkpoints.copy_conversation(store, session.id, lines[n].turn)

    async def _custom(self, session: AgentSession, line: str) -> bool:
        """Sends the prompt of a command from a file, or of a skill; False if it names none."""
        approve = self._questions.approve
        found = await named_command(line, session, self._settings, self._environ, approve, _TAKEN)
        if found is None:
            return False
        (text, own), options = found
        await self._prompted(session, text, own, options)
        return True

    async def _servers(self, session: AgentSession, words: str) -> str:
        """Returns what `/mcp` prints."""

        def show(url: str) -> None:
            self._say(f"open this address to log in:\n{one_line(url)}\n")
            open_browser(url, self._environ)

        return await server_command(session.toolbox, words, self._settings, self._environ, show)

    async def _changed(self, session: AgentSession, name: str, value: str) -> None:
        """Changes the model, the mode or the style, if a value is given, and shows it."""
        match name:
            case "/model":
                if value:
                    await session.change_model(value)
                self._say(f"{session.opened.name}\n")
            case "/mode":
                if value:
                    if value not in tuple(Mode):
                        raise UnknownName("mode", value, tuple(Mode))
                    await session.set_mode(Mode(value))
                self._say(f"{session.mode}\n")
            case _:
                if value:
                    await session.change_style(value)
                self._say(f"{session.opened.style.style}: {session.opened.style.reason}\n")

    async def _prompted(
        self,
        session: AgentSession,
        line: str,
        own: str | None = None,
        options: TurnOptions = AS_OPENED,
    ) -> None:
        attached, self._attached = self._attached, ()
        prompt = await read_input(
            session.toolbox,
            line,
            attached=attached,
            respect_git_ignore=self._settings.context.respect_git_ignore,
            own=own,
        )
        for words in prompt.notices:
            await session.note("mention", words)
        if self._ide is not None and (context := self._ide.context()):
            session.inform(context)
        await self._turn_ended(session, prompt.message, options)
        while session.waiting:
            # Typed after the turn took its last input, but before it ended.
            await self._turn_ended(session, None)

    async def _turn_ended(
        self, session: AgentSession, message: Message | None, options: TurnOptions = AS_OPENED
    ) -> None:
        self._lines.working(True)
        self._say("working\n")
        self._turn = asyncio.create_task(session.send(message, options))
        try:
            ended = await self._turn
        except asyncio.CancelledError:
            if self._pressed != 1:
                raise
            self._output.end("", TurnEnded(reason=TurnEnd.CANCELLED))
        except ToolwireError as error:
            self._output.end("", output.failed(error))
        else:
            self._output.end("", ended)
        finally:
            self._turn = None
            self._pressed = 0
            self._lines.working(False)

    async def _receive(self, event: AgentEvent) -> None:
        self._stats.add(event)
        await self._output.receive(event)

    def _meanwhile(self, line: str) -> None:
        if self._session is not None and line.strip():
            self._session.say(Message(role="user", parts=(Text(line),)))

    def _interrupted(self) -> None:
        self._pressed += 1
        if self._turn is not None and self._pressed == 1:
            self._turn.cancel()
        elif self._pressed > 1 and self._main is not None:
            self._main.cancel()
        else:
            self._say("\n(Ctrl-C again, or Ctrl-D, to leave)\n> ")

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
