"""Agent sessions that the gateway runs: their turns, what they stream, and their questions."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from toolwire.agent.events import (
    MessageAdded,
    Retrying,
    SessionEvent,
    SessionOpened,
    Streaming,
    ToolFinished,
    ToolOutputText,
    TurnEnded,
)
from toolwire.agent.questions import Confirmation, UserAnswer
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.session import AgentSession
from toolwire.app.user_input import read_input
from toolwire.config import Settings
from toolwire.errors import ToolwireError
from toolwire.events import TextDelta, ThinkingDelta, ToolCallDelta, ToolCallStarted
from toolwire.gateway.console.detachable import DetachableStore
from toolwire.gateway.console.questions import OpenQuestions
from toolwire.messages import Message
from toolwire.policy import Mode
from toolwire.sessions.records import is_stored
from toolwire.sessions.replay import title_of

_IDLE_SECONDS = 900.0
"""After which a session without a turn is released for other processes."""
_ENTRIES = 20_000
_TAIL = 64 * 1024
"""Characters of live output that are shown."""
_log = logging.getLogger(__name__)


class Piece(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a reply or of live output; never stored."""

    kind: str
    id: str = ""
    name: str = ""
    text: str = ""


class PartialCall(msgspec.Struct, kw_only=True):
    """A call as far as it has arrived."""

    id: str
    name: str
    arguments: str = ""


class Partial(msgspec.Struct, kw_only=True):
    """What was streamed since the last stored message."""

    text: str = ""
    thinking: str = ""
    calls: list[PartialCall] = []
    outputs: dict[str, str] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing was."""
        return not (self.text or self.thinking or self.calls or self.outputs)

    def add(self, piece: Piece) -> None:
        """Adds a piece."""
        match piece.kind:
            case "text":
                self.text += piece.text
            case "thinking":
                self.thinking += piece.text
            case "call":
                self.calls.append(PartialCall(id=piece.id, name=piece.name))
            case "arguments":
                for call in self.calls:
                    if call.id == piece.id:
                        call.arguments += piece.text
            case "output":
                tail = self.outputs.get(piece.id, "") + piece.text
                self.outputs[piece.id] = tail[-_TAIL:]
            case _:
                self.clear()

    def clear(self) -> None:
        """Forgets the reply; the outputs of running calls stay."""
        self.text = self.thinking = ""
        self.calls = []


Entry: TypeAlias = Piece | int
"""A piece, or the number of the last stored record."""


class LiveLog:
    """The last pieces of a session in order with the numbers of its records."""

    def __init__(self, seq: int) -> None:
        self.seq = seq
        """The number of the last stored record."""
        self.n = 0
        self.partial = Partial()
        self._entries: deque[Entry] = deque(maxlen=_ENTRIES)

    def add(self, entry: Entry) -> None:
        """Adds what has happened."""
        self.n += 1
        self._entries.append(entry)
        if isinstance(entry, int):
            self.seq = entry
        else:
            self.partial.add(entry)

    def since(self, n: int) -> list[Entry] | None:
        """The entries after the first `n`; None if some of them are gone."""
        behind = self.n - n
        if behind > len(self._entries):
            return None
        return [self._entries[-behind + i] for i in range(behind)]


class HostedSession:
    """One session that runs here."""

    def __init__(
        self,
        options: SessionOptions,
        *,
        project: Path,
        settings: Settings,
        environ: Mapping[str, str],
        questions: OpenQuestions,
        changed: Callable[[HostedSession], Awaitable[None]],
        seq: int = 0,
    ) -> None:
        self._options = options
        self.project = project
        self._settings = settings
        self._environ = environ
        self._questions = questions
        self._changed = changed
        self._store = DetachableStore(environ)
        self._inbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._turn: asyncio.Task[TurnEnded] | None = None
        self._turning = False
        """Whether a message is read or its turn runs."""
        self._main: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.id = options.session
        self.title = ""
        self.model = ""
        self.mode = ""
        self.session: AgentSession | None = None
        self.live = LiveLog(seq)
        self.error = ""
        self._opening = True
        self.ended = False
        """Whether it was released."""

    @property
    def state(self) -> str:
        """`running`, `waiting` for an answer, or `idle`."""
        if self._questions.of_session(self.id):
            return "waiting"
        busy = self._opening or self._turning or not self._inbox.empty()
        return "running" if busy else "idle"

    async def start(self, prompt: str = "", *, goes_on: bool = False) -> None:
        """Opens the session; its errors are raised here. Returns once it has its id."""
        if prompt:
            self._inbox.put_nowait(prompt)
        elif goes_on:
            self._inbox.put_nowait(None)
        self._main = asyncio.create_task(self._run())
        await asyncio.shield(self._ready)

    def say(self, text: str) -> None:
        """Adds a message of the user, to the running turn or for a new one."""
        self._inbox.put_nowait(text)

    def stop(self) -> bool:
        """Cancels the running turn; whether there was one."""
        if self._turn is None:
            return False
        self._turn.cancel()
        return True

    async def set_mode(self, mode: Mode) -> None:
        """Changes the approval mode."""
        if self.session is not None:
            await self.session.set_mode(mode)
            self.mode = str(mode)

    async def close(self, *, later: bool = False) -> None:
        """Ends the session; its journal is released.

        `later`: a question that is open stays open in the journal, and is asked again when the
        session is opened next.
        """
        if later and self.state == "waiting":
            self._store.detached = True
        if self._main is not None and not self._main.done():
            self._main.cancel()
            with suppress(asyncio.CancelledError):
                await self._main

    async def _run(self) -> None:
        try:
            async with open_session(
                self._options,
                settings=self._settings,
                environ=self._environ,
                cwd=self.project,
                readers=(self._receive,),
                approver=self._approve,
                store=self._store,
            ) as session:
                self.session, self._opening = session, False
                await self._turns(session)
        except ToolwireError as error:
            self._failed(error)
        except asyncio.CancelledError:
            if not self._ready.done():
                self._ready.cancel()
            raise
        except Exception as error:
            _log.exception("session %s failed", self.id)
            self._failed(error)
        finally:
            self.session, self._opening, self.ended = None, False, True
            await self._changed(self)

    def _failed(self, error: Exception) -> None:
        self.error = str(error)
        if not self._ready.done():
            self._ready.set_exception(error)

    async def _turns(self, session: AgentSession) -> None:
        while True:
            try:
                async with asyncio.timeout(_IDLE_SECONDS):
                    text = await self._inbox.get()
            except TimeoutError:
                return
            self._turning = True
            try:
                await self._one_turn(session, text)
                while session.waiting:
                    await self._one_turn(session, None)
            finally:
                self._turning = False
                await self._changed(self)

    async def _one_turn(self, session: AgentSession, text: str | None) -> None:
        message = None
        if text is not None:
            message = await self._message(session, text)
        self._turn = asyncio.create_task(session.send(message))
        reading = asyncio.create_task(self._listen(session))
        await self._changed(self)
        try:
            await asyncio.wait({self._turn})
            if not self._turn.cancelled() and self._turn.exception() is not None:
                self.error = str(self._turn.exception())
        except asyncio.CancelledError:
            # Not only the turn but the session is to end.
            self._turn.cancel()
            await asyncio.wait({self._turn})
            raise
        finally:
            reading.cancel()
            self._turn = None
            self.live.partial = Partial()

    async def _message(self, session: AgentSession, text: str) -> Message:
        read = await read_input(session.toolbox, text)
        for words in read.notices:
            await session.note("mention", words)
        return read.message

    async def _listen(self, session: AgentSession) -> None:
        """Passes on what the user says while a turn runs."""
        while True:
            text = await self._inbox.get()
            if text is not None:
                session.say(await self._message(session, text))

    async def _approve(self, question: Confirmation) -> UserAnswer:
        content = await self._proposed(question)
        asking = asyncio.ensure_future(
            self._questions.ask(
                question,
                session=self.id,
                title=self.title,
                project=str(self.project),
                content=content,
                again=self._opening,
            )
        )
        await asyncio.sleep(0)
        await self._changed(self)
        try:
            return await asking
        finally:
            asking.cancel()
            await self._changed(self)

    async def _proposed(self, question: Confirmation) -> str | None:
        """The new text of an edit, which the page may change."""
        if self.session is None:
            return None
        tool = self.session.toolbox.registry.get(question.call.name)
        if tool is None or tool.preview is None or tool.adopt is None:
            return None
        try:
            arguments = msgspec.json.decode(question.call.arguments or "{}")
            context = self.session.toolbox.context
            found = await asyncio.to_thread(tool.preview, arguments, context)
        except (ToolwireError, msgspec.MsgspecError, OSError):
            return None
        return found[0].after if len(found) == 1 else None

    async def _receive(self, received: SessionEvent) -> None:
        if self.id and received.session != self.id:
            return
        event = received.event
        if isinstance(event, SessionOpened):
            self.id, self.model, self.mode = event.session, event.model, event.mode
            if not self._ready.done():
                self._ready.set_result(None)
        elif isinstance(event, MessageAdded):
            self._titled(event)
            self.live.partial.clear()
        elif isinstance(event, ToolFinished):
            self.live.partial.outputs.pop(event.call_id, None)
        elif isinstance(event, Retrying) and event.void:
            self.live.add(Piece(kind="void"))
        elif isinstance(event, ToolOutputText):
            self.live.add(Piece(kind="output", id=event.call_id, text=event.text))
        elif isinstance(event, Streaming):
            piece = piece_of(event)
            if piece is not None:
                self.live.add(piece)
        if is_stored(event):
            self.live.add(self.live.seq + 1)
        await self._changed(self)

    def _titled(self, event: MessageAdded) -> None:
        if not self.title and not event.context and event.message.role == "user":
            self.title = title_of(event.message.text)


def piece_of(event: Streaming) -> Piece | None:
    """A piece of a reply for the page."""
    match event.event:
        case TextDelta(text):
            return Piece(kind="text", text=text)
        case ThinkingDelta(text):
            return Piece(kind="thinking", text=text)
        case ToolCallStarted() as call:
            return Piece(kind="call", id=call.id, name=call.name)
        case ToolCallDelta(id, arguments):
            return Piece(kind="arguments", id=id, text=arguments)
        case _:
            return None


def merged(pieces: list[Piece]) -> list[Piece]:
    """The pieces with neighbours of one text joined."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if last is not None and (last.kind, last.id) == (piece.kind, piece.id) and piece.text:
            found[-1] = msgspec.structs.replace(last, text=last.text + piece.text)
        else:
            found.append(piece)
    return found
