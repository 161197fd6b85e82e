"""The terminal app: sessions, turns and the user's words, on one inline screen."""

import asyncio
import logging
import signal
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from typing import TextIO

import msgspec
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings

from toolwire.agent.usage import Stats
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.session import AgentSession, stored_sessions
from toolwire.app.user_input import names_prompt
from toolwire.errors import ToolwireError
from toolwire.extensions.commands import CustomCommand, read_commands, sources
from toolwire.messages import Message, Text
from toolwire.platform import handle_signals
from toolwire.policy import Mode
from toolwire.terminal_text import one_line
from toolwire.tools.shell.shells import shells_of
from toolwire.tui import commands
from toolwire.tui.commands.sessions import choose_session
from toolwire.tui.custom import expanded
from toolwire.tui.finder import FileNames
from toolwire.tui.front import Start
from toolwire.tui.keys import bindings
from toolwire.tui.own_words import branch, edited, remembered
from toolwire.tui.turns import Turns

_CYCLE = (Mode.DEFAULT, Mode.AUTO_EDIT, Mode.PLAN)
_AGAIN = 2.0
"""Seconds within which a second Ctrl-C leaves."""


class TerminalApp(Turns):
    """One terminal, and the sessions that the user opens on it, one at a time."""

    def __init__(self, start: Start, terminal: Input, out: TextIO) -> None:
        super().__init__(start, terminal, out)
        self._inbox: asyncio.Queue[str] = asyncio.Queue()
        self._next: SessionOptions | None = None
        self._pressed = 0.0
        self.agreed_to_yolo = False
        self._prompt = start.prompt
        """What the first session begins with."""
        self._custom: dict[str, CustomCommand] = {}

    # What keys and commands use.

    def leave(self, *, new: bool = False, resume: str = "") -> None:
        """Ends the session; goes on with a new one, or with another."""
        if new or resume:
            options = self.start.options
            self._next = msgspec.structs.replace(options, session=resume, latest=False)
        self._inbox.put_nowait("")

    def submit(self) -> None:
        """Sends what is written: now, or to the turn's next step."""
        if self.questions.editing:
            self.end_edit(use=True)
            return
        if not self.composer.text.strip():
            return
        text = self.composer.take()
        if self.working and not text.startswith(("/", "!", "#")):
            self.drawing.queue(text)
            self._say_now(self.session, text)
        elif self.working and commands.runs_meanwhile(text):
            self.start_command(text)
        elif self.working:
            self._keep(text)
        else:
            self._inbox.put_nowait(text)
        self.screen.change()

    def start_command(self, line: str) -> None:
        """Runs a command at once, also while the model works."""
        task = asyncio.get_running_loop().create_task(commands.run(self, line))
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)

    def _say_now(self, session: AgentSession, text: str) -> None:
        """Says something to the running turn, with the files and pictures that it mentions."""
        if "@" not in text and not self.composer.images(text):
            session.say(Message(role="user", parts=(Text(text),)))
            return

        async def read_and_say() -> None:
            session.say((await self._read(session, text)).message)

        task = asyncio.create_task(read_and_say())
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)

    def send(self, text: str) -> None:
        """Sends a prompt of a command."""
        self._inbox.put_nowait(text)

    def queue(self) -> None:
        """Keeps what is written for after the turn."""
        if self.questions.editing:
            return
        text = self.composer.take()
        if text.strip():
            self._keep(text)

    def _keep(self, text: str) -> None:
        self._inbox.put_nowait(text)
        self.drawing.queue(text)
        self.screen.change()

    def take_back(self) -> bool:
        """Moves the messages that wait into the composer; False if there are none."""
        waiting: list[str] = []
        while not self._inbox.empty():
            waiting.append(self._inbox.get_nowait())
        for text in waiting:
            self.drawing.unqueue(text)
        if waiting:
            self.composer.set("\n".join(waiting))
        return bool(waiting)

    def interrupt(self) -> None:
        """Ctrl-C: stops the turn, clears the composer, leaves if pressed again."""
        now = time.monotonic()
        again = now - self._pressed < _AGAIN
        self._pressed = now
        if self.questions.editing:
            self.end_edit(use=False)
        if self.questions.open:
            self.questions.cancel()
        if again:
            self.quit()
        elif self._turn is not None:
            self.stop_turn()
        elif self.composer.text:
            self.composer.set("")
        else:
            self.say("press Ctrl-C again to leave", "dim")

    def to_background(self) -> None:
        """Lets the running command go on in the background."""
        if not shells_of(self.session.toolbox.context.owner).release():
            self.say("no command is running", "dim")

    def quit(self) -> None:
        """Leaves the app."""
        self._ended = True
        self.questions.editing = False
        self.questions.cancel()
        self.stop_turn()
        self._inbox.put_nowait("")

    def cycle_mode(self) -> None:
        """Changes to the next approval mode."""
        if self._session is None:
            return
        now = self.session.mode
        after = _CYCLE[(_CYCLE.index(now) + 1) % len(_CYCLE)] if now in _CYCLE else _CYCLE[0]
        self.start_command(f"/mode {after}")

    async def write_in_editor(self) -> None:
        """Opens the composer's text in the user's editor."""
        text = self.composer.whole(self.composer.text)
        with self.screen.suspended():
            found = await asyncio.to_thread(edited, text, ".md")
        if found is not None:
            self.composer.set(found.rstrip("\n"))

    # Running.

    async def run(self) -> None:
        """Runs until the user leaves; raises what ended the session."""
        self._banner()
        # Without a handler, warnings of libraries are printed over the screen.
        logging.getLogger().addHandler(logging.NullHandler())
        loop = asyncio.get_running_loop()
        task: asyncio.Task[None] | None = None

        def begun() -> None:
            nonlocal task
            self._ask_terminal()
            self.composer.set(self.composer.drafts.left_behind())
            task = loop.create_task(self._sessions())

        spinner = loop.create_task(self._spin())
        try:
            with (
                handle_signals(loop, (signal.SIGTERM, signal.SIGHUP), self.quit),
                handle_signals(loop, (signal.SIGTSTP,), self.suspend),
                handle_signals(loop, (signal.SIGCONT,), self.screen.resumed),
            ):
                await self.screen.run(begun)
        finally:
            spinner.cancel()
            self.composer.store_draft()
            self._title("")
        if task is not None:
            if not task.done():
                self.quit()
            await task

    async def _sessions(self) -> None:
        try:
            options: SessionOptions | None = self.start.options
            if self.start.chooses:
                chosen = await choose_session(self)
                options = msgspec.structs.replace(options, session=chosen) if chosen else None
            while options is not None and not self._ended:
                self._next = None
                await self._one_session(options)
                options = self._next
        finally:
            self.screen.stop()

    async def _one_session(self, options: SessionOptions) -> None:
        start = self.start
        async with AsyncExitStack() as stack:
            self._stats = Stats()
            self.drawing.reset()
            if options.session or options.latest:
                self._replay(options)
            session = await stack.enter_async_context(
                open_session(
                    options,
                    settings=start.settings,
                    environ=start.environ,
                    cwd=start.cwd,
                    readers=(self._receive,),
                    approver=self.questions.approve,
                    editor=self._edit,
                    ask=self.questions.ask,
                    transport=start.transport(stack),
                    consent=start.consent(self.questions.agrees),
                )
            )
            self._session = session
            self._names = FileNames(session.toolbox.context.workspace)
            self._branch = branch(start.cwd)
            self._read_custom()
            self._run_status()
            self.screen.change()
            prompt, self._prompt = self._prompt, ""
            if prompt:
                self._inbox.put_nowait(prompt)
            try:
                await self._conversation(session)
            finally:
                self._session = None

    def _replay(self, options: SessionOptions) -> None:
        store = stored_sessions(self.start.environ)
        found = store.latest(str(self.start.cwd)) if options.latest else None
        name = options.session or (found.id if found is not None else "")
        with suppress(ToolwireError):
            events = store.read(name).events
            for event in events:
                self._stats.add(event)
            self.drawing.replay(events, 2 * self.screen.size.rows)

    async def _conversation(self, session: AgentSession) -> None:
        while not self._ended and self._next is None:
            line = await self._inbox.get()
            if not line:
                # Only wakes this loop: the app ends, or another session is next.
                continue
            self.drawing.unqueue(line)
            if custom := self._custom_of(line):
                await self._run_custom(session, custom, line)
            elif commands.is_command(line) and not self._is_prompt(session, line):
                await commands.run(self, line)
            elif line.startswith("!") and line[1:].strip():
                await self._own_command(line[1:].strip())
            elif line.startswith("# ") or (line.startswith("#") and line[1:2].isalpha()):
                self.say(await remembered(line[1:].strip(), session.toolbox.context), "dim")
            else:
                await self._prompted(session, line)

    def _is_prompt(self, session: AgentSession, line: str) -> bool:
        """Whether a line is a prompt of a server, and not a command of the app."""
        name = line[1:].partition(" ")[0]
        return commands.known(name) is None and names_prompt(session.toolbox, line)

    def _custom_of(self, line: str) -> CustomCommand | None:
        name = line[1:].split(maxsplit=1)[0] if line[:1] == "/" and line[1:].strip() else ""
        return None if commands.known(name) else self._custom.get(name)

    async def _run_custom(self, session: AgentSession, command: CustomCommand, line: str) -> None:
        typed = line.partition(" ")[2].strip()
        approver = self.questions.approve
        try:
            found = await expanded(command, typed, session.toolbox, approver, self._add)
        except ToolwireError as error:
            self.say(f"error: {error}", "failed")
            return
        await self._prompted(session, found.text, own=found.own)

    def _read_custom(self) -> None:
        start = self.start
        listed = sources(start.environ, start.cwd, trusted=bool(start.settings.trusted))
        self._custom, problems = read_commands(listed, taken=commands.names())
        for words in problems:
            self.say(f"… {words}", "warning")

    # Drawing.

    def _below(self) -> list[str]:
        session = self._session
        info = session.opened.info if session is not None else None
        keys = "esc stops" if self.working else ""
        window = (info.context or 0) if info is not None else 0
        row = self.drawing.status(
            window=window,
            branch=self._branch,
            keys=keys,
            members=self.start.settings.ui.status,
            command=self._status,
        )
        return [*self.menu.rows(self.drawing.painter), row]

    def _takes_images(self) -> tuple[str, bool | None]:
        opened = self._session.opened if self._session is not None else None
        info = opened.info if opened is not None else None
        return opened.name if opened is not None else "", info.images if info is not None else None

    def _prompts(self) -> list[str]:
        listed = stored_sessions(self.start.environ).list(str(self.start.cwd))
        return [one.title for one in listed if one.title]

    def _mentionable(self) -> tuple[str, ...]:
        servers = self._session.toolbox.servers if self._session is not None else None
        if servers is None:
            return ()
        found = servers.servers.resources()
        return tuple(f"{server.name}:{resource.uri}" for server, resource in found)

    def _bindings(self) -> KeyBindings:
        return bindings(self)

    def _commands(self) -> Mapping[str, str]:
        custom = {
            name: f"{one_line(command.description)} ({command.file})"
            for name, command in self._custom.items()
        }
        return {**commands.listed(), **custom}

    def _choices(self, name: str) -> tuple[str, ...]:
        command = commands.known(name)
        return command.choices(self) if command is not None and command.choices else ()
