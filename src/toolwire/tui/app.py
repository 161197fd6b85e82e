"""The terminal app: sessions, turns and the user's words, on one inline screen."""

import asyncio
import logging
import signal
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from typing import TextIO

import msgspec
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings

from toolwire.agent.events import AgentEvent, SessionOpened
from toolwire.agent.questions import Approver
from toolwire.agent.usage import Stats
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.session import AgentSession
from toolwire.app.user_input import (
    expand_command,
    names_prompt,
    skill_command,
)
from toolwire.errors import ToolwireError
from toolwire.extensions.commands import CustomCommand, read_commands, sources
from toolwire.ide.discovery import open_companion
from toolwire.messages import Message, Text
from toolwire.platform import handle_signals
from toolwire.policy import Mode
from toolwire.terminal_text import one_line
from toolwire.tools.shell.shells import shells_of
from toolwire.tui import commands
from toolwire.tui.commands.sessions import choose_session
from toolwire.tui.finder import FileNames
from toolwire.tui.keys import bindings
from toolwire.tui.own_words import branch, edited, remembered
from toolwire.tui.start import Start
from toolwire.tui.state import MODE_WORDS
from toolwire.tui.turns import Turns

_CYCLE = (Mode.DEFAULT, Mode.AUTO_EDIT, Mode.PLAN)
_OPENING = 1.0
"""Seconds that the first line waits for the session, whose model it names."""
_AGAIN = 2.0
"""Seconds within which a second Ctrl-C leaves."""


class TerminalApp(Turns):
    """One terminal, and the sessions that the user opens on it, one at a time."""

    def __init__(self, start: Start, terminal: Input, out: TextIO) -> None:
        super().__init__(start, terminal, out)
        self._next: SessionOptions | None = None
        self._pressed = 0.0
        self.agreed_to_yolo = False
        self._prompt = start.prompt
        """What the first session begins with."""
        self._shown = asyncio.Event()
        """Set when the screen is drawn."""
        self._custom: dict[str, CustomCommand] = {}
        self._running: set[asyncio.Task[None]] = set()
        """Commands that keys started, and those that need not wait for the end of a turn."""

    # What keys and commands use.

    def leave(self, *, new: bool = False, resume: str = "") -> None:
        """Ends the session; goes on with a new one, or with another."""
        if new or resume:
            options = self.start.options
            source = "clear" if new else ""
            self._next = msgspec.structs.replace(
                options, session=resume, latest=False, source=source
            )
        if self._session is not None:
            self._session.leaving = "clear" if new else "prompt_input_exit"
        self._lines.send("")

    def submit(self) -> None:
        """Sends what is written: now, or to the turn's next step."""
        if self.questions.editing:
            self.end_edit(use=True)
            return
        if not self.composer.text.strip():
            if self._lines.held and not self.working:
                self._lines.release()
                self._lines.send("")
            return
        text = self.composer.take()
        if text.strip() == "?":
            text = "/help"
        if self.working and not text.startswith(("/", "!", "#")):
            self.drawing.queue(text)
            self._say_now(self.session, text)
        elif self.working and commands.runs_meanwhile(text):
            self.start_command(text)
        elif self.working:
            self._keep(text)
        else:
            if commands.is_command(text):
                self.screen.hold_keys()
            self._lines.send(text)
        self.screen.change()

    def start_command(self, line: str) -> None:
        """Runs a command at once, also while the model works."""
        self.screen.hold_keys()
        task = asyncio.get_running_loop().create_task(commands.run(self, line))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

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
        self._lines.send(text)

    def queue(self) -> None:
        """Keeps what is written for after the turn."""
        if self.questions.editing:
            return
        text = self.composer.take()
        if text.strip():
            self._keep(text)

    def _keep(self, text: str) -> None:
        self._lines.keep(text)
        self.drawing.queue(text)
        self.screen.change()

    def take_back(self) -> bool:
        """Moves the messages that wait into the composer; False if there are none."""
        waiting = self._lines.take_back()
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
            # The next one is the first on an empty composer.
            self._pressed = 0.0
        else:
            self.say("press Ctrl-C again to leave", "dim")

    def to_background(self) -> None:
        """Lets the running command go on in the background."""
        if not shells_of(self.session.toolbox.context.owner).release():
            self.say("no command is running", "dim")

    def quit(self) -> None:
        """Leaves the app."""
        self._ended = True
        self.close_page()
        self.questions.editing = False
        if self._turn is None:
            self.questions.cancel()
        # The end of the turn closes its question, which was not answered.
        self.stop_turn()
        self._lines.send("")

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
        # Without a handler, warnings of libraries are printed over the screen.
        logging.getLogger().addHandler(logging.NullHandler())
        loop = asyncio.get_running_loop()
        # Raw from the first byte on: the terminal would echo its answers, and keys typed ahead.
        with (
            ExitStack() as restored,
            self._terminal.raw_mode(),
            handle_signals(loop, (signal.SIGTERM, signal.SIGHUP), self.quit),
            handle_signals(loop, (signal.SIGTSTP,), self.suspend),
            handle_signals(loop, (signal.SIGCONT,), self.screen.resumed),
        ):
            if self.start.early is not None:
                # As soon as the screen ends: what follows may take a while.
                restored.callback(self.start.early.restore)
            sessions = loop.create_task(self._sessions())
            spinner = loop.create_task(self._spin())
            try:
                await self._show(sessions)
            finally:
                spinner.cancel()
                self.composer.store_draft()
                self._title("")
        if not sessions.done():
            self.quit()
        await sessions

    async def _show(self, sessions: asyncio.Task[None]) -> None:
        """Shows the screen until the sessions end, its first line when the first is open."""
        loop = asyncio.get_running_loop()

        def begun() -> None:
            self._shown.set()
            self._ask_terminal()
            self.composer.set(self.composer.drafts.left_behind())
            loop.call_soon(self.screen.stop if sessions.done() else self.screen.change)

        introduction = loop.create_task(self._introduce(sessions))
        try:
            await self.screen.run(begun, self.start.early)
        finally:
            introduction.cancel()

    async def _introduce(self, sessions: asyncio.Task[None]) -> None:
        """Writes the whole first line when the first session is open, or does not open soon."""
        opened = asyncio.create_task(self._opened.wait())
        waited = {sessions, opened}
        await asyncio.wait(waited, timeout=_OPENING, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        self.screen.introduce()

    async def _sessions(self) -> None:
        try:
            # The prompt is drawn first: a session takes longer to open.
            await self._shown.wait()
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
            self._ide, words = await open_companion(
                start.settings.ide.enabled, start.environ, start.cwd, stack
            )
            session = await stack.enter_async_context(
                open_session(
                    options,
                    settings=start.settings,
                    environ=start.environ,
                    cwd=start.cwd,
                    readers=(self._receive,),
                    approver=self._approver(),
                    editor=self._edit,
                    ask=self.questions.ask,
                    transport=start.transport(stack),
                    consent=start.consent(self.questions.agrees),
                    replayed=self._replay,
                )
            )
            self._session = session
            if words:
                await session.note("ide" if self._ide else "setup", words)
            self._branch = branch(start.cwd)
            self._names = FileNames(
                session.toolbox.context.workspace, trusted=bool(start.settings.trusted)
            )
            self._read_custom()
            # What is written already may name a command that is known only now.
            self._typed()
            self._run_status()
            self.screen.change()
            prompt, self._prompt = self._prompt, ""
            if prompt:
                self._lines.send(prompt)
            try:
                await self._conversation(session)
            finally:
                self._session = None

    def _approver(self) -> Approver:
        """Asks on the screen, and in the IDE if there is one."""
        if self._ide is None:
            return self.questions.approve
        from toolwire.ide.companion import asking_both  # noqa: PLC0415 - only with a companion

        def show(words: str) -> None:
            self.say(one_line(words), "dim")

        return asking_both(self.questions.approve, self._ide, show)

    def _replay(self, events: list[AgentEvent]) -> None:
        opened = [one for one in events if isinstance(one, SessionOpened)]
        if opened:
            self._session_id = opened[-1].session
            for event in events:
                self._stats.add(event)
            self.drawing.replay(events, 2 * self.screen.size.rows)

    async def _conversation(self, session: AgentSession) -> None:
        while not self._ended and self._next is None:
            line = await self._lines.next()
            if not line:
                # The app ends, another session is next, or what a stopped turn left goes on.
                if not self._ended and self._next is None and not self._lines.held:
                    await self._turns_waiting(session)
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
        if not name or commands.known(name):
            return None
        return self._custom.get(name) or skill_command(name, self.session.toolbox)

    async def _run_custom(self, session: AgentSession, command: CustomCommand, line: str) -> None:
        typed = line.partition(" ")[2].strip()
        approver = self.questions.approve
        try:
            found, options = await expand_command(command, typed, session, approver, self._add)
        except ToolwireError as error:
            self.say(f"error: {error}", "failed")
            return
        await self._prompted(session, found.text, own=found.own, options=options)

    def _read_custom(self) -> None:
        start = self.start
        listed = sources(start.environ, start.cwd, trusted=bool(start.settings.trusted))
        self._custom, problems = read_commands(listed, taken=commands.names())
        for words in problems:
            self.say(f"… {words}", "warning")

    # Drawing.

    def _about(self, folder: str) -> tuple[str, ...]:
        found = self._branch or branch(self.start.cwd)
        place = one_line(f"{folder} ({found})" if found and folder else folder)
        begun = self._begun
        if begun is None:
            return (place,)
        return (begun.model, place, MODE_WORDS.get(begun.mode, begun.mode))

    def _below(self) -> list[str]:
        session = self._session
        info = session.opened.info if session is not None else None
        keys = "esc stops" if self.working else ""
        window = (info.context or 0) if info is not None else 0
        row = self.drawing.status(
            window=window,
            branch=f"{self._branch}{'*' if self._branch and self._changes else ''}",
            keys=keys,
            members=self.start.settings.ui.status,
            command=self._status,
            shells=self._background,
            shortened_from=self.start.settings.compression.threshold,
        )
        return [*self.menu.rows(self.drawing.painter), row]

    def _bindings(self) -> KeyBindings:
        return bindings(self)

    def _commands(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        custom = {
            name: (f"{one_line(command.description)} ({command.file})", ())
            for name, command in self._custom.items()
        }
        skills = self._session.toolbox.skills if self._session is not None else None
        by_hand = {
            name: (f"{one_line(skill.description)} ({skill.file})", ())
            for name, skill in ({} if skills is None else skills.skills).items()
        }
        return {**by_hand, **commands.listed(), **custom}

    def _choices(self, name: str) -> tuple[str, ...]:
        command = commands.known(name)
        return command.choices(self) if command is not None and command.choices else ()
