"""Turns of the terminal app: the user's words go to the model, its events to the screen."""

import asyncio
import time
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit.input import Input

from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    SessionEvent,
    SessionOpened,
    TurnEnd,
    TurnEnded,
)
from toolwire.agent.usage import Stats
from toolwire.app.options import AS_OPENED, TurnOptions
from toolwire.app.session import AgentSession
from toolwire.app.stored_sessions import stored_sessions
from toolwire.app.user_input import agent_names, read_input
from toolwire.compaction.summary import media_name
from toolwire.context.mentions import Mentioned
from toolwire.errors import BadInput, ToolwireError
from toolwire.messages import Media, Message, Text
from toolwire.request import JsonObject
from toolwire.sessions.files import media_folder
from toolwire.storage.paths import state_paths
from toolwire.storage.private_files import write_private
from toolwire.tools.proposals import Proposal
from toolwire.tools.shell.shells import shells_of
from toolwire.tui.finder import has_changes
from toolwire.tui.front import Front
from toolwire.tui.history import starred
from toolwire.tui.line_queue import LineQueue
from toolwire.tui.own_words import branch, edited, first_line, run_command
from toolwire.tui.start import Start
from toolwire.tui.transcript import said

if TYPE_CHECKING:
    from toolwire.ide.companion import IdeConnection

_AFTER_DRAWING = 0.2
"""Seconds after which the repository is looked at: the screen is drawn first."""
_PROMPTS = 2000
"""Prompts of earlier sessions that are searched."""
_LONG = 10.0
"""Seconds of a turn from which its end is announced."""


class Turns(Front):
    """The open session, and the turn that is under way."""

    def __init__(self, start: Start, terminal: Input, out: TextIO) -> None:
        super().__init__(start, terminal, out)
        self._stats = Stats()
        self._session_id = ""
        self._begun: SessionOpened | None = None
        """The beginning of the first session, if the first line names it."""
        self._opened = asyncio.Event()
        """Set when the first session has begun."""
        self._session: AgentSession | None = None
        self._ide: IdeConnection | None = None
        """The IDE whose terminal this is."""
        self._turn: asyncio.Task[TurnEnded] | None = None
        self._idle: asyncio.Task[None] | None = None
        """Waits for the user's next message."""
        self._lines = LineQueue()
        self._spoken = False
        """Whether the model said something in this turn."""
        self._sent = ""
        self._attached = start.attached
        self._shell_output = ""
        """Output of the user's own commands, for the next message."""
        self._saying: set[asyncio.Task[None]] = set()
        """Messages to the running turn whose files are being read."""
        self._branch = ""
        self._changes = False
        """Whether the repository has changes that are not committed."""
        self._status = ""
        """What the command of the status line printed."""

    @property
    def session(self) -> AgentSession:
        """The open session."""
        if self._session is None:
            raise BadInput("the session is not open yet")
        return self._session

    @property
    def working(self) -> bool:
        """Whether a turn is under way."""
        return self._turn is not None

    def statistics(self) -> JsonObject:
        """Usage so far."""
        return self._stats.body()

    def stop_turn(self) -> None:
        """Stops the running turn; a command that is edited is left first."""
        if self.questions.editing:
            self.end_edit(use=False)
        elif self._turn is not None:
            self._turn.cancel()

    async def _own_command(self, command: str) -> None:
        self.say(f"$ {command}", "call")
        output = await run_command(command, self.start.cwd, self.start.environ)
        self.say(output.rstrip("\n") or "(no output)", "dim")
        self._shell_output += f"I ran `{command}`:\n{output}\n"

    async def _prompted(
        self,
        session: AgentSession,
        line: str,
        own: str | None = None,
        options: TurnOptions = AS_OPENED,
    ) -> None:
        prompt = await self._read(session, line, own)
        if self._ide is not None and (context := self._ide.context()):
            session.inform(context)
        self._sent = line
        await self._turn_ended(session, prompt.message, options)
        await self._turns_waiting(session)

    async def _turns_waiting(self, session: AgentSession) -> None:
        """Runs turns for what was written while one ended; none if it was stopped."""
        while not self._ended and not self._lines.held:
            # Written while the turn ended: its files may still be read.
            if self._saying:
                await asyncio.wait(self._saying)
            if not session.waiting:
                break
            await self._turn_ended(session, None)

    async def _read(self, session: AgentSession, line: str, own: str | None = None) -> Mentioned:
        """The message of a line, with pictures, mentioned files and the output of own commands."""
        attached, self._attached = self._attached, ()
        piped, self._shell_output = self._shell_output, ""
        prompt = await read_input(
            session.toolbox,
            line,
            piped=piped,
            attached=(*attached, *self.composer.images(line)),
            respect_git_ignore=self.start.settings.context.respect_git_ignore,
            own=own,
        )
        for words in prompt.notices:
            await session.note("mention", words)
        return prompt

    async def _turn_ended(
        self, session: AgentSession, message: Message | None, options: TurnOptions = AS_OPENED
    ) -> None:
        began = time.monotonic()
        self._spoken = False
        self._lines.release()
        if self._idle is not None:
            self._idle.cancel()
        self._title("working")
        self._turn = asyncio.create_task(session.send(message, options))
        try:
            await self._turn
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._stopped()
        except ToolwireError as error:
            self.say(f"error: {error}", "failed")
        finally:
            self._turn = None
            self._title("toolwire")
            if time.monotonic() - began > _LONG:
                self._announce("the turn has ended")
            self._branch = branch(self.start.cwd)
            self._run_status()
            self._idle = self.screen.app.create_background_task(self._await_user(session))
            self.screen.change()

    async def _await_user(self, session: AgentSession) -> None:
        seconds = self.start.settings.hooks.idle_seconds
        if seconds and self.start.settings.hooks.any:
            await asyncio.sleep(seconds)
            if session is self._session and not self.composer.text:
                await session.waited()

    async def _look_for_changes(self) -> None:
        await asyncio.sleep(_AFTER_DRAWING)
        found = await asyncio.to_thread(has_changes, self.start.cwd)
        if found != self._changes:
            self._changes = found
            self.screen.change()

    def _run_status(self) -> None:
        """Runs the command of the status line; a folder that is not trusted could change it."""
        start = self.start
        if self._branch and start.settings.trusted:
            self.screen.app.create_background_task(self._look_for_changes())
        command = start.settings.ui.status_command
        if command and start.settings.trusted:

            async def run() -> None:
                self._status = await first_line(command, start.cwd, start.environ)
                self.screen.change()

            self.screen.app.create_background_task(run())

    def _stopped(self) -> None:
        self._lines.hold()
        if self.drawing.state.working:
            self._add(TurnEnded(reason=TurnEnd.CANCELLED))
        if not self._spoken and not self.composer.text:
            self.composer.set(self._sent)

    async def _edit(self, proposal: Proposal) -> str:
        with self.screen.suspended():
            found = await asyncio.to_thread(edited, proposal.after, proposal.path.suffix or ".txt")
        return proposal.after if found is None else found

    def _stored(self, media: Media) -> str:
        """Stores a picture or sound of the model below the session; returns the file."""
        if not media.base64 or not self._session_id:
            return ""
        folder = media_folder(state_paths(self.start.environ).sessions, self._session_id)
        file = folder / media_name(media)
        try:
            if not file.exists():
                write_private(file, media.data)
        except (OSError, ToolwireError, ValueError):
            # A full disk, or no base64: the answer itself is shown and stored.
            return ""
        return str(file)

    async def _receive(self, received: SessionEvent) -> None:
        self._add(received.event)

    def _add(self, event: AgentEvent) -> None:
        self._stats.add(event)
        if isinstance(event, SessionOpened):
            self._session_id = event.session
            self._opened.set()
            if self._heading.open and not event.forked_from:
                # The first line names model and mode.
                self._begun = event
                self.drawing.add(event, silent=True)
                return
        if isinstance(event, MessageAdded):
            self._spoken = self._spoken or event.message.role == "assistant"
            for part in event.message.parts:
                if isinstance(part, Text):
                    self.drawing.unqueue(part.text)
        self.questions.note(event)
        self.drawing.add(event)
        # The end of an answer is not kept waiting for the next frame.
        ends = isinstance(event, MessageAdded) and event.message.role == "assistant"
        self.screen.change(at_once=ends)

    def _takes_images(self) -> tuple[str, bool | None]:
        opened = self._session.opened if self._session is not None else None
        info = opened.info if opened is not None else None
        return opened.name if opened is not None else "", info.images if info is not None else None

    def _count_background(self) -> int:
        session = self._session
        return 0 if session is None else len(shells_of(session.toolbox.context.owner).running())

    def _prompts(self) -> list[str]:
        found = stored_sessions(self.start.environ, self.start.settings).prompts(
            str(self.start.cwd), _PROMPTS
        )
        return [starred(words) for message in found if (words := said(message).strip())]

    def _mentionable(self) -> tuple[str, ...]:
        session = self._session
        names = () if session is None else agent_names(session.toolbox)
        servers = session.toolbox.servers if session is not None else None
        if servers is None:
            return names
        found = servers.servers.resources()
        return names + tuple(f"{server.name}:{resource.uri}" for server, resource in found)
