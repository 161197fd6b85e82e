"""The checkpoints of an open session; loads what it needs with the first change."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from toolwire.agent.events import (
    ChildEvent,
    Emit,
    Noticed,
    SessionEvent,
    ToolStarted,
    TurnStarted,
)
from toolwire.errors import SessionError
from toolwire.extensions.settings import CheckpointSettings
from toolwire.storage.paths import SESSION_FILES
from toolwire.tools.spec import Effect, Workspace

if TYPE_CHECKING:
    from toolwire.extensions.checkpoints.folder import Entry
    from toolwire.extensions.checkpoints.recorder import Recorder
    from toolwire.extensions.checkpoints.restore import Done

_READS = (Effect.READ, Effect.NETWORK)


class Checkpoints:
    """The checkpoints of an open session; loads what it needs with the first change."""

    def __init__(
        self,
        journal: Path,
        settings: CheckpointSettings,
        *,
        workspace: Workspace,
        environ: Mapping[str, str],
        turns: int,
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._workspace = workspace
        self._environ = environ
        self._turns = turns
        self._emit: Emit | None = None
        self._recorder: Recorder | None = None

    async def connect(self, emit: Emit, *, ahead: bool) -> None:
        """Sets where events go; `ahead` makes the first snapshot in the background now."""
        self._emit = emit
        if folder_of(self._journal).exists() and (words := self._open().report()):
            await emit(Noticed(kind="checkpoint", message=words))
        if ahead and self._settings.tree != "never":
            self._open().begin()

    async def read(self, received: SessionEvent) -> None:
        """A reader of the session's events."""
        event = received.event
        if self._recorder is not None:
            await self._recorder.read(received)
        elif isinstance(event, TurnStarted):
            self._turns += 1
        else:
            inner = event.event if isinstance(event, ChildEvent) else event
            if isinstance(inner, ToolStarted) and inner.effect not in _READS:
                await self._open().read(received)

    def changing(self, path: Path, after: bytes | None, mode: int, call: str) -> None:
        """Stores a file before an edit tool changes it."""
        self._open().changing(path, after, mode, call)

    async def restore(
        self, n: int, *, force: bool = False, only: frozenset[str] | None = None
    ) -> "Done":
        """Restores the files of a checkpoint, all or only these."""
        return await self._open().restore(n, force=force, only=only)

    def undoable(self) -> int:
        """The checkpoint of the last turn that changed files and is not undone."""
        from toolwire.extensions.checkpoints.restore import undoable  # noqa: PLC0415 - start-up

        found = undoable(self.entries())
        if found is None:
            raise SessionError("no turn of this session is left to undo")
        return found.n

    def entries(self) -> "list[Entry]":
        """Everything recorded."""
        return self._open().folder.entries()

    async def close(self) -> None:
        """Ends what is under way."""
        if self._recorder is not None:
            await self._recorder.close()

    def _open(self) -> "Recorder":
        if self._recorder is None:
            from toolwire.extensions.checkpoints.folder import CheckpointFolder  # noqa: PLC0415
            from toolwire.extensions.checkpoints.recorder import Recorder  # noqa: PLC0415
            from toolwire.extensions.checkpoints.shadow import NAME  # noqa: PLC0415 - start-up

            self._recorder = Recorder(
                self._journal.stem,
                CheckpointFolder(folder_of(self._journal)),
                git_dir=self._journal.parent / NAME,
                workspace=self._workspace,
                settings=self._settings,
                environ=self._environ,
                turns=self._turns,
            )
            if self._emit is not None:
                self._recorder.connect(self._emit)
        return self._recorder


def folder_of(journal: Path) -> Path:
    """The folder of a session's checkpoints."""
    return journal.with_suffix(SESSION_FILES)
