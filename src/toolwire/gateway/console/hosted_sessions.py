"""The sessions that the gateway runs, opened and resumed, beside those of other processes."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from toolwire.errors import SessionError, ToolwireError
from toolwire.gateway.console.calls import ApiError
from toolwire.gateway.console.journals import Journals, SessionRow
from toolwire.gateway.console.questions import OpenQuestions, ShownQuestion
from toolwire.gateway.watch import Changes
from toolwire.policy import Mode
from toolwire.storage.private_files import read_private, write_private

if TYPE_CHECKING:
    from toolwire.app.options import SessionOptions
    from toolwire.config import Settings
    from toolwire.gateway.console.api import Console
    from toolwire.gateway.console.hosted import HostedSession

_log = logging.getLogger(__name__)


class NewSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session to start."""

    prompt: str
    project: str = ""
    model: str = ""
    mode: Literal["", "default", "auto_edit", "plan", "yolo"] = ""
    tool_style: Literal["", "auto", "xml", "native", "json"] = ""


class StoredOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a session runs here, so that it can go on after a restart."""

    project: str
    model: str = ""
    mode: str = ""
    tool_style: str = ""


class HostedSessions:
    """The sessions that this gateway runs, and what their journals say of the others."""

    def __init__(self, console: Console) -> None:
        self._console = console
        host = console.host
        self.journals = Journals(host.environ)
        self.questions = OpenQuestions()
        self._file = host.state / "console-sessions.json"
        self._hosted: dict[str, HostedSession] = {}
        self._stored: dict[str, StoredOptions] = self._load()
        self.changes = Changes()
        self._resuming: asyncio.Task[None] | None = None
        self.version = 0
        """Grows with each change of a session."""

    def _load(self) -> dict[str, StoredOptions]:
        data = read_private(self._file, lambda text: None)
        try:
            return msgspec.json.decode(data, type=dict[str, StoredOptions]) if data else {}
        except msgspec.MsgspecError:
            return {}

    def _save(self) -> None:
        write_private(self._file, msgspec.json.encode(self._stored))

    def find(self, session: str) -> HostedSession | None:
        """A session that runs here."""
        found = self._hosted.get(session)
        return None if found is None or found.ended else found

    async def resume(self) -> None:
        """Opens the sessions again whose questions were open when the gateway ended."""
        for session, stored in tuple(self._stored.items()):
            try:
                waits = await asyncio.to_thread(self.journals.waits, session)
            except SessionError:
                waits = False
            if not waits:
                self._stored.pop(session, None)
                continue
            try:
                await self._open(session, stored, goes_on=True)
            except (ToolwireError, OSError) as error:
                _log.warning("session %s is not resumed: %s", session, error)
        self._save()

    def begin_resuming(self) -> None:
        """Resumes in the background."""
        if self._stored and self._resuming is None:
            self._resuming = asyncio.create_task(self.resume())

    async def create(self, given: NewSession) -> HostedSession:
        """Starts a new session."""
        folder = _folder(given.project or str(self._console.host.folder))
        stored = StoredOptions(
            project=str(folder), model=given.model, mode=given.mode, tool_style=given.tool_style
        )
        return await self._open("", stored, prompt=given.prompt)

    async def open(self, session: str) -> HostedSession:
        """The session, opened here if no process has it."""
        found = self.find(session)
        if found is not None:
            return found
        row = await self.row(session)
        if row.held_by is not None:
            raise ApiError(409, f"the session is in use: {row.held_by.text}")
        stored = self._stored.get(row.id) or StoredOptions(project=row.project)
        return await self._open(row.id, stored)

    async def _open(
        self, session: str, stored: StoredOptions, *, prompt: str = "", goes_on: bool = False
    ) -> HostedSession:
        from toolwire.gateway.console.hosted import HostedSession  # noqa: PLC0415 - loads the agent

        project = Path(stored.project)
        seq = await asyncio.to_thread(self.journals.last_record, session) if session else 0
        settings, options = await asyncio.to_thread(self._options, session, stored, project)
        hosted = HostedSession(
            options,
            project=project,
            settings=settings,
            environ=self._console.host.environ,
            questions=self.questions,
            changed=self.changed,
            seq=seq,
        )
        if session:
            self._hosted[session] = hosted
        try:
            await hosted.start(prompt, goes_on=goes_on)
        except BaseException:
            self._hosted.pop(session, None)
            raise
        self._hosted[hosted.id] = hosted
        self._stored[hosted.id] = stored
        self._save()
        return hosted

    def _options(
        self, session: str, stored: StoredOptions, project: Path
    ) -> tuple[Settings, SessionOptions]:
        from toolwire import config  # noqa: PLC0415 - only for sessions
        from toolwire.app.options import SessionOptions  # noqa: PLC0415 - loads the agent

        host = self._console.host
        settings = host.settings()
        if project.resolve() != host.folder.resolve():
            settings = config.load(host.environ, project)
        name = stored.model
        route = settings.gateway.routes.get(name)
        if route is not None:
            name = route.targets[0].model
        options = SessionOptions(
            model=name or host.options.model,
            upstream=None if stored.model else host.options.upstream,
            mode=Mode(stored.mode) if stored.mode else None,
            tool_style=stored.tool_style,
            session=session,
            ask_again=True,
            interactive=True,
        )
        return settings, options

    async def changed(self, hosted: HostedSession) -> None:
        """Wakes the streams of pages."""
        self.version += 1
        if hosted.ended:
            if self._hosted.get(hosted.id) is hosted:
                del self._hosted[hosted.id]
        elif hosted.id:
            self._hosted[hosted.id] = hosted
        self.changes.notify()

    def here(self) -> dict[str, HostedSession]:
        """Those that run here."""
        return {name: one for name, one in self._hosted.items() if not one.ended}

    async def row(self, session: str) -> SessionRow:
        """The row of a session; ApiError (404) if there is none."""
        try:
            row = await asyncio.to_thread(self.journals.row, session)
        except SessionError as error:
            raise ApiError(404, str(error)) from error
        return self.with_state(row)

    def with_state(self, row: SessionRow) -> SessionRow:
        """The row with what is known of a session that runs here."""
        hosted = self.find(row.id)
        if hosted is None:
            return row
        return msgspec.structs.replace(
            row,
            here=True,
            held_by=None,
            state=hosted.state,
            mode=hosted.mode,
            model=hosted.model or row.model,
            title=row.title or hosted.title,
            questions=len(self.questions.of_session(row.id)),
        )

    async def questions_everywhere(self) -> list[ShownQuestion]:
        """Open questions of this gateway and of other processes, the oldest first."""
        others = await asyncio.to_thread(self.journals.questions, tuple(self.here()))
        return sorted((*self.questions.shown, *others), key=lambda one: one.asked)

    async def aclose(self) -> None:
        """Ends every session; a question that is open is asked again by the next gateway."""
        if self._resuming is not None:
            self._resuming.cancel()
        for hosted in tuple(self._hosted.values()):
            await hosted.close(later=True)


def _folder(text: str) -> Path:
    folder = Path(text)
    if not folder.is_absolute() or not folder.is_dir():
        raise ApiError(400, f"project: {text[:300]} is not a folder of this machine")
    return folder
