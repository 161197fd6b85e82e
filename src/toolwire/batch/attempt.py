"""One attempt at a task: workspace, session, patch, check, result; goes on where it was."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from toolwire.agent.events import AgentEvent, TurnEnd, TurnEnded, reader_of
from toolwire.agent.usage import Limits
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.servers import ServerChoice
from toolwire.app.session import AgentSession
from toolwire.app.user_input import read_input
from toolwire.batch.attempt_settings import AttemptSettings
from toolwire.batch.check import keep_artefacts, run_check
from toolwire.batch.commands import CommandWorkspace, SandboxDied
from toolwire.batch.failures import AttemptFailed, failure_of
from toolwire.batch.results import CheckOutcome, Failure, PatchInfo, Result, State, encode
from toolwire.batch.store import Claim, ClaimLost
from toolwire.batch.stores import export_session, note_session, session_of
from toolwire.batch.tasks import Check, Task, text_of
from toolwire.batch.watch import Watch
from toolwire.batch.workspace_files import remove_tree
from toolwire.batch.workspaces import Workplace
from toolwire.config import Settings
from toolwire.errors import SessionInUse, ToolwireError
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.sessions.replay import replay
from toolwire.sessions.store import SessionStore
from toolwire.tools.shell.docker import DockerFailed

_BROKE_OFF = "Your last answer broke off. Go on with the task."
_LIMITS = (
    *(TurnEnd.TURN_LIMIT, TurnEnd.TOKEN_LIMIT, TurnEnd.COST_LIMIT, TurnEnd.TIME_LIMIT),
    *(TurnEnd.LOOP, TurnEnd.LENGTH),
)
_LONGEST_WAIT = 180.0
"""Seconds: longer than any lease."""
_REFUSALS = (TurnEnd.REFUSAL, TurnEnd.CONTENT_FILTER)
RESUMED = ("provider", "session", "host", "sandbox")
"""Where an error happened that leaves workspace and session as they are."""


class TaskAttempt:
    """One try of an attempt."""

    def __init__(
        self, shared: AttemptSettings, claim: Claim, task: Task, begin: Callable[[str], bool]
    ) -> None:
        """`begin` notes the session in the store; False if another host has the attempt."""
        self.claim = claim
        self.watch = Watch(self._probe)
        self._shared = shared
        self._task = task
        self._begin = begin
        self._known = claim.session
        self._seen = 0
        """Records of the session that are counted."""
        self._place: Workplace | None = None
        spec = shared.spec
        self._folder = spec.folder_of(shared.out, claim.id, claim.model, claim.attempt)
        self._outcome: CheckOutcome | None = None
        self._patch: PatchInfo | None = None
        self._stop = ""
        self._spent = 0.0
        self._stalled = 0.0
        """Seconds waited for a session that another host still seems to have."""
        self._session: AgentSession | None = None
        self._interrupted = False

    def interrupt(self) -> None:
        """Makes it end as if its host had died: what is open is settled when it is resumed."""
        self._interrupted = True
        if self._session is not None:
            self._session.give_up("its host ends")

    async def run(self) -> Result:
        """Runs it to its end; whatever happens is a result, unless it is cancelled."""
        began = time.monotonic()
        self._folder.mkdir(parents=True, exist_ok=True)
        failure: Failure | None = None
        score: float | None = None
        try:
            state, score = await self._steps()
        except (ToolwireError, OSError) as error:
            state, failure = State.ERROR, failure_of(error)
        if self._interrupted:
            state, score, failure = State.STOPPED, None, None
        result = self._result(state, score, failure, time.monotonic() - began)
        await self._tidy(result)
        return result

    async def _steps(self) -> tuple[State, float | None]:
        self._place = await self._prepared()
        ended = await self._turn()
        self._stop = ended.reason
        if ended.reason is TurnEnd.CANCELLED or ended.error == "stopped":
            return State.STOPPED, None
        limited = ended.reason in _LIMITS or ended.error == "context_too_long"
        if ended.reason is TurnEnd.FAILED and not limited:
            if ended.error == "sandbox":
                raise SandboxDied(ended.detail)
            if ended.error == "content_filter":
                return State.REFUSED, self._zero()
            where = "session" if ended.error == "session" else "provider"
            raise AttemptFailed(ended.error or "failed", ended.detail, where)
        await self._quiet(self._place)
        await self._record_patch()
        if self._task.artefacts:
            target = self._folder / "artefacts"
            await asyncio.to_thread(
                keep_artefacts, Path(self._place.root), self._task.artefacts, target
            )
        if ended.reason in _REFUSALS:
            return State.REFUSED, self._zero()
        score = await self._checked()
        if score is None:
            return (State.LIMIT if limited else State.FINISHED), None
        if score >= 1.0:
            return State.PASSED, score
        return (State.LIMIT if limited else State.FAILED), score

    def _zero(self) -> float | None:
        return None if self._check() is None else 0.0

    async def _prepared(self) -> Workplace:
        """The workspace: of an earlier try with its session, or a new one."""
        spaces, n, task = self._shared.workspaces, self.claim.n, self._task
        found = spaces.found(n, task)
        if found is not None:
            return await self._revived(found)
        session = self._folder / "session"
        if self._known or session.exists():
            left = spaces.left_behind(n, task)
            if left is None:
                why = "the workspace of the session is gone"
                raise AttemptFailed("workspace_lost", why, "workspace")
            if not (left.container and spaces.is_discarded(n)):
                # Never from the start: calls that its session made would run twice.
                return await self._revived(left)
            await asyncio.to_thread(remove_tree, session)
            self._known = ""
        place = await spaces.make(n, task.workspace)
        if task.setup:
            within = self._within(place)
            log = self._folder / "setup.log"
            ran = await self._shared.commands.run(task.setup, within, seconds=1800.0, log=log)
            if ran.out_of_memory:
                raise AttemptFailed("memory", f"setup ran {ran.out_of_memory}", "setup")
            if ran.code:
                why = "took too long" if ran.timed_out else f"ended with code {ran.code}"
                raise AttemptFailed("setup", f"setup {why}: {ran.output[-300:]}", "setup")
            await self._quiet(place)
        return await spaces.begin(n, place, task)

    async def _revived(self, place: Workplace) -> Workplace:
        """The workspace of an earlier try, its container started again."""
        self._place = place
        try:
            await self._shared.workspaces.revive(place)
        except DockerFailed as error:
            raise SandboxDied(f"the container is gone: {error}") from error
        return place

    async def _quiet(self, place: Workplace) -> None:
        """Ends what runs on in the container, if there is one."""
        try:
            await self._shared.workspaces.quiet(place)
        except DockerFailed as error:
            raise SandboxDied(f"the container no longer runs: {error}") from error

    def _within(self, place: Workplace) -> CommandWorkspace:
        return CommandWorkspace(
            folder=Path(place.folder),
            temp=self._shared.workspaces.place(self.claim.n) / "temp",
            environ=self._shared.environ_of(place),
            hidden=self._hidden(),
            container=place.container,
        )

    def _hidden(self) -> tuple[Path, ...]:
        """What belongs to the batch and not to the task: other results, checks, the start."""
        check, common = self._task.check, self._shared.hidden
        if check is None or not check.copy:
            return common
        return (*common, *(path for path in map(Path, check.copy.values()) if path.exists()))

    async def _probe(self) -> None:
        if self._place is not None:
            await self._shared.commands.probe(self._within(self._place))

    async def _turn(self) -> TurnEnded:
        """How the agent's turn ended: in an earlier try, or in this one."""
        url = self._shared.settings.sessions.store
        store, session = session_of(self._shared.spec, self._folder / "session", url)
        session = self._known or session
        while True:
            if session and (ended := await self._ended_before(store, session)) is not None:
                return ended
            limits = self._limits()
            if isinstance(limits, TurnEnd):
                return TurnEnded(reason=limits)
            try:
                return await self._sent(store, session, limits)
            except SessionInUse as error:
                # A host of another machine ended without a word: its lease will be over.
                if error.until is None or self._stalled > _LONGEST_WAIT:
                    raise
                self._stalled += 1.0
                await asyncio.sleep(1.0)

    async def _ended_before(self, store: SessionStore, session: str) -> TurnEnded | None:
        """Counts what is stored of the session; returns how its turn ended, if it did."""
        contents = await asyncio.to_thread(store.read, session)
        for record in contents.records[self._seen :]:
            self.watch.add(record.event)
        self._seen = len(contents.records)
        if contents.records:
            self._spent = contents.records[-1].at - contents.records[0].at
        self.watch.session = session
        ended = replay(contents.events).ended
        if ended is not None and ended.reason not in (TurnEnd.FAILED, TurnEnd.CANCELLED):
            return ended
        if ended is None and self.watch.finished:
            return TurnEnded(reason=TurnEnd.DONE)
        return None

    def _opened_as_read(self, events: list[AgentEvent]) -> None:
        """Raises if its last host stored more between the reading and the opening of a session."""
        if len(events) > self._seen:
            raise SessionInUse(self.watch.session, "its last host", until=time.time())

    def _note_session(self, id: str) -> None:
        """Notes the session of a batch on a server, for a later try: before it does anything."""
        if not self._shared.spec.shared:
            return
        if id != self._known and not self._begin(id):
            raise ClaimLost(self.claim.id)
        self._known = id
        # Also of one that is known: its host may have been killed between the two.
        note_session(self._folder / "session", id)

    async def _sent(self, store: SessionStore, session: str, limits: Limits) -> TurnEnded:
        shared, task, place = self._shared, self._task, self._place
        assert place is not None  # noqa: S101 - prepared before
        settings = shared.settings
        if task.effort is not None:
            reasoning = msgspec.structs.replace(settings.reasoning, effort=task.effort)
            settings = msgspec.structs.replace(settings, reasoning=reasoning)
        async with open_session(
            self._options(session, limits, place),
            settings=settings,
            environ=shared.environ_of(place),
            cwd=Path(place.folder),
            readers=(reader_of(self.watch.receive),),
            transport=shared.transport,
            store=store,
            replayed=self._opened_as_read,
        ) as opened:
            self._session = opened
            self.watch.session = opened.id
            self._note_session(opened.id)
            if self.watch.prompted:
                note = Message(role="user", parts=(Text(_BROKE_OFF),))
                return await opened.send(note if self.watch.broke_off else None)
            return await opened.send(await self._prompt(opened, settings))

    async def _prompt(self, opened: AgentSession, settings: Settings) -> Message:
        task = self._task
        text = task.prompt or await asyncio.to_thread(text_of, task.prompt_file)
        if not task.attachments and not task.mcp and "@" not in text:
            return Message(role="user", parts=(Text(text),))
        prompt = await read_input(
            opened.toolbox,
            text,
            attached=tuple(map(Path, task.attachments)),
            respect_git_ignore=settings.context.respect_git_ignore,
            own="",
        )
        return prompt.message

    def _options(self, session: str, limits: Limits, place: Workplace) -> SessionOptions:
        shared, task = self._shared, self._task
        mode = shared.spec.approval_mode
        if mode is None:
            mode = shared.settings.approval_mode if shared.spec.sandbox == "none" else Mode.YOLO
        return SessionOptions(
            model=self.claim.model,
            upstream=shared.upstream,
            tool_style=task.tool_style or "",
            mode=mode,
            allowed=task.allowed_tools,
            session=session,
            system=task.system or None,
            limits=limits,
            servers=ServerChoice(off=not task.mcp, only=task.mcp),
            hidden=self._hidden(),
            container=place.container,
            temp=shared.workspaces.place(self.claim.n) / "temp",
        )

    def _limits(self) -> Limits | TurnEnd:
        """What this try may use, less what earlier ones did; or the limit that they reached."""
        task, spec, watch = self._task.limits, self._shared.spec, self.watch
        turns, seconds = task.turns or spec.max_turns, task.seconds or spec.timeout
        tokens, cost = task.tokens, task.cost
        used = watch.usage.input + watch.usage.output
        spent = watch.model_seconds + watch.tool_seconds
        for reached, limit, so_far in (
            (TurnEnd.TURN_LIMIT, turns, watch.turns),
            (TurnEnd.TIME_LIMIT, seconds, spent),
            (TurnEnd.TOKEN_LIMIT, tokens, used),
            (TurnEnd.COST_LIMIT, cost, watch.cost or 0.0),
        ):
            if limit and so_far >= limit:
                return reached
        return Limits(
            turns=turns and turns - watch.turns,
            tokens=tokens and tokens - used,
            cost=cost and cost - (watch.cost or 0.0),
            seconds=seconds and seconds - spent,
        )

    async def _record_patch(self) -> None:
        place, path = self._place, self._folder / "patch.diff"
        assert place is not None  # noqa: S101 - prepared before
        known = self._folder / "patch.json"
        if place.stage == "patched":
            # The check may have put its files in already.
            if known.exists():
                self._patch = msgspec.json.decode(known.read_bytes(), type=PatchInfo)
            return
        found = await self._shared.workspaces.patch(self.claim.n, place, self._task.workspace)
        if found is not None and found.body:
            path.write_bytes(found.body)
            self._patch = PatchInfo(
                files=found.files,
                added=found.added,
                removed=found.removed,
                path=str(path.relative_to(self._shared.out)),
            )
        if self._check() is not None:
            if self._patch is not None:
                known.write_bytes(msgspec.json.encode(self._patch))
            place = msgspec.structs.replace(place, stage="patched")
            self._shared.workspaces.note(self.claim.n, place)

    def _check(self) -> Check | None:
        """The check of the task, or that of the batch."""
        if self._task.check is not None or not self._shared.spec.check:
            return self._task.check
        return Check(command=self._shared.spec.check)

    async def _checked(self) -> float | None:
        """The score of the check; None without one."""
        check, place = self._check(), self._place
        if check is None or place is None:
            return None
        log = self._folder / "check.log"
        self._outcome, score = await run_check(
            check, self._shared.commands, self._within(place), Path(place.root), log
        )
        return score

    def _result(
        self, state: State, score: float | None, failure: Failure | None, seconds: float
    ) -> Result:
        watch, claim = self.watch, self.claim
        return Result(
            id=claim.id,
            model=claim.model,
            attempt=claim.attempt,
            state=state,
            stop=self._stop,
            score=score,
            check=self._outcome,
            response=watch.response,
            session=watch.session,
            patch=self._patch,
            usage=watch.usage,
            cost=watch.cost,
            requests=watch.requests,
            calls=watch.calls,
            unknown=watch.unknown,
            seconds=watch.seconds(self._spent + seconds),
            tries=claim.tries,
            host=self._shared.host,
            error=failure,
            tags=self._task.tags,
            meta=self._task.meta,
        )

    async def _tidy(self, result: Result) -> None:
        """Writes the attempt's files; a workspace that could not be made is made anew."""
        if result.state is State.STOPPED:
            return
        (self._folder / "result.json").write_bytes(encode(result) + b"\n")
        (self._folder / "stdout").write_text(result.response, encoding="utf-8", errors="replace")
        if self._known and self._shared.spec.shared:
            url = self._shared.settings.sessions.store
            await asyncio.to_thread(export_session, url, self._known, self._folder / "session")
        if result.error is not None and not self._goes_on_after(result.error.where):
            await asyncio.to_thread(self._shared.workspaces.discard, self.claim.n)

    def _goes_on_after(self, where: str) -> bool:
        """Whether another try goes on in the same workspace: its calls are not run again."""
        if where == "sandbox" and self._place is not None and self._place.container:
            # A container that died took its state along.
            return False
        return where in RESUMED or bool(self._known) or (self._folder / "session").exists()

    async def remove(self, result: Result) -> None:
        """Removes the workspace if it is no longer needed; only once the result is stored."""
        goes_on = result.state in (State.STOPPED, State.ERROR)
        if not goes_on and not self._shared.spec.keep:
            await self._shared.workspaces.remove(self.claim.n)
