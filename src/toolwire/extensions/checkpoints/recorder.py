"""Records what a session changes: reads its events, and receives each edit before it is made."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from toolwire.agent.events import (
    Checkpointed,
    ChildEvent,
    Emit,
    Noticed,
    SessionEvent,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from toolwire.errors import SessionError
from toolwire.extensions.checkpoints.folder import (
    Checkpoint,
    CheckpointFolder,
    Edited,
    Ran,
    Snapshot,
    checkpoints_in,
    interrupted,
)
from toolwire.extensions.checkpoints.pruning import prune
from toolwire.extensions.checkpoints.restore import Done, Restorer
from toolwire.extensions.checkpoints.shadow import ShadowRepository
from toolwire.extensions.checkpoints.states import FileState, digest_of
from toolwire.extensions.settings import CheckpointSettings
from toolwire.tools.files.paths import open_file
from toolwire.tools.spec import Effect, ToolFailed, Workspace

_CHANGING = (Effect.WRITE, Effect.EXECUTE, Effect.OTHER)
_AGENT = "run_agent"
"""Its own calls are recorded, one by one."""
_RUNS = (Effect.EXECUTE, Effect.OTHER)
"""Effects that may change any file."""


class Recorder:
    """The checkpoints of one open session. Its `read` is a reader of the session's events."""

    def __init__(
        self,
        session: str,
        folder: CheckpointFolder,
        *,
        git_dir: Path,
        workspace: Workspace,
        settings: CheckpointSettings,
        environ: Mapping[str, str],
        turns: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._session = session
        self._workspace = workspace
        self._settings = settings
        self._environ = environ
        self._git_dir = git_dir
        self._turn = turns
        self._clock = clock
        self._emit: Emit | None = None
        # One thread: snapshots and entries are made one after the other.
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="checkpoints")
        self._shadow: ShadowRepository | None = None
        self._no_tree = "" if settings.tree != "never" else "off"
        self._failure: SessionError | None = None
        """Why there are no snapshots any more; reported once."""
        self._first: Future[Snapshot | None] | None = None
        self._n: int | None = None
        self._current: Checkpoint | None = None
        """The checkpoint of the running turn."""
        self._before: dict[str, Snapshot] = {}
        """The folder before each running command."""
        self._edited: dict[str, list[str]] = {}

    def connect(self, emit: Emit) -> None:
        """Sets where `Checkpointed` events go."""
        self._emit = emit

    def begin(self) -> None:
        """Makes the first snapshot in the background."""
        if self._first is None:
            self._first = self._worker.submit(self._snapshot)

    def _restorer(self) -> Restorer:
        return Restorer(
            self._session,
            self.folder,
            self._git_dir,
            environ=self._environ,
            clock=self._clock,
        )

    async def restore(
        self, n: int, *, force: bool = False, only: frozenset[str] | None = None
    ) -> Done:
        """Restores the files of a checkpoint, all or only these, between snapshots."""

        def work() -> Done:
            try:
                return self._restorer().restore(n, force=force, only=only)
            finally:
                # The index of the snapshots is not what it was.
                self._current = self._n = self._shadow = None

        done = await asyncio.get_running_loop().run_in_executor(self._worker, work)
        if done.n and self._emit is not None:
            await self._emit(Checkpointed(n=done.n))
            await self._note(f"checkpoint {n} was restored")
        return done

    async def close(self) -> None:
        """Ends what is under way."""
        if self._shadow is not None:
            self._shadow.stop()
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def read(self, received: SessionEvent) -> None:
        """Takes one event: a call that may change files waits here for its checkpoint."""
        event = received.event
        if isinstance(event, ChildEvent):
            event = event.event
        elif isinstance(event, TurnStarted):
            self._turn += 1
            self._current = None
        if isinstance(event, ToolStarted) and event.effect in _CHANGING and event.name != _AGENT:
            await self._started(event)
        elif isinstance(event, ToolFinished):
            await self._finished(event)

    async def _started(self, event: ToolStarted) -> None:
        runs = event.effect in _RUNS
        fresh = self._current is None
        try:
            await self._in_worker(self._opened, event.call_id, runs)
        except (SessionError, OSError) as error:
            await self._note(f"no checkpoint was made: {error}")
            return
        if fresh and self._current is not None:
            await self._tell(self._current, ())

    async def _finished(self, event: ToolFinished) -> None:
        files = self._edited.pop(event.call_id, [])
        if event.call_id in self._before:
            with suppress(SessionError, OSError):
                await self._in_worker(self._closed, event.call_id)
        if files and self._current is not None:
            await self._tell(self._current, tuple(dict.fromkeys(files)))

    async def _tell(self, checkpoint: Checkpoint, files: tuple[str, ...]) -> None:
        if self._emit is not None:
            tree = checkpoint.snapshot.tree if checkpoint.snapshot else ""
            await self._emit(Checkpointed(n=checkpoint.n, tree=tree, files=files))

    async def _note(self, message: str) -> None:
        if self._emit is not None:
            await self._emit(Noticed(kind="checkpoint", message=message))

    async def _in_worker(self, work: Callable[..., None], *given: object) -> None:
        loop = asyncio.get_running_loop()
        with suppress(RuntimeError):
            # A worker that has ended: the session is being closed.
            await loop.run_in_executor(self._worker, work, *given)

    # In the worker's thread.

    def _opened(self, call: str, runs: bool) -> None:
        snapshot = self._snapshot() if self._current is None or runs else None
        if self._current is None and snapshot is not None:
            self._current = self._stored(snapshot)
        if runs and snapshot is not None:
            self._before[call] = snapshot
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _closed(self, call: str) -> None:
        before = self._before.pop(call)
        after = self._snapshot()
        if after is not None and after != before:
            self.folder.append(Ran(call=call, before=before, after=after))

    def _snapshot(self) -> Snapshot | None:
        """The folder as it is; None where there are no snapshots."""
        if self._no_tree:
            return None
        root = self._workspace.roots[0]
        if self._shadow is None:
            self._no_tree = ShadowRepository.unavailable(root, self._environ)
            if self._no_tree:
                return None
            self._shadow = ShadowRepository(
                self._git_dir,
                root,
                self.folder,
                environ=self._environ,
                limits="auto" if self._settings.tree == "auto" else "always",
            )
        try:
            found = self._shadow.snapshot()
            self._shadow.name(self._session, found)
            return found
        except SessionError as error:
            self._no_tree, self._failure = str(error), error
            return None

    def _stored(self, snapshot: Snapshot | None) -> Checkpoint:
        if self._n is None:
            known = checkpoints_in(self.folder.entries())
            self._n = known[-1].n if known else 0
        self._n += 1
        found = Checkpoint(
            n=self._n,
            turn=self._turn,
            at=self._clock(),
            kind="tree" if snapshot is not None else "files",
            roots=tuple(map(str, self._workspace.roots)),
            snapshot=snapshot,
            top=str(self._shadow.top) if snapshot is not None and self._shadow else "",
        )
        self.folder.append(found)
        if snapshot is not None and self._shadow is not None:
            self._shadow.name(self._session, snapshot, found.n)
        if found.n == 1:
            self._worker.submit(prune, self.folder.path.parent, self._settings, self._clock())
        return found

    # In the thread of the tool.

    def changing(self, path: Path, after: bytes | None, mode: int, call: str) -> None:
        """Stores a file before an edit tool changes it: to these contents, or None to delete it."""
        try:
            self._worker.submit(self._keep, path, after, mode, call).result()
        except (OSError, SessionError) as error:
            raise ToolFailed(
                f"{path} was not changed: its present contents cannot be stored ({error}); free "
                "some space, or set checkpoints.enabled = false",
                type="file_write_failure",
            ) from error

    def _keep(self, path: Path, after: bytes | None, mode: int, call: str) -> None:
        try:
            before = self.folder.keep_file(open_file(path, self._workspace))
        except FileNotFoundError:
            before = None
        if self._current is None:
            self._current = self._stored(None)
        target = None
        if after is not None:
            target = FileState("file", digest_of(after), mode if before is None else before.mode)
        self.folder.append(Edited(path=str(path), before=before, after=target, call=call))
        self._edited.setdefault(call, []).append(str(path))

    def report(self) -> str:
        """A notice about a restore that was interrupted; empty if there is none."""
        found = interrupted(self.folder.entries())
        return "" if found is None else interrupted_text(self._session, found.to, len(found.steps))


def interrupted_text(session: str, to: int, files: int) -> str:
    """What the user reads about a restore that did not finish."""
    return (
        f"a restore of checkpoint {to} was interrupted: some of its {files} files may be restored "
        f"and others not; toolwire sessions restore {session} {to} --files completes it"
    )
