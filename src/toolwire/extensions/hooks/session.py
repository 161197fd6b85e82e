"""The hooks of one session: run side by side for each event, their answers combined."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from toolwire.agent.events import Emit, HookRan, Noticed
from toolwire.agent.hooks import (
    Allow,
    Ask,
    CallDecision,
    Change,
    Deny,
    Halt,
    HookedCall,
    HookedResult,
    HookEvent,
    Hooks,
    Notification,
    Reaction,
    ResultChange,
    SessionStart,
    UserPromptSubmit,
)
from toolwire.client.redact import without_secrets
from toolwire.errors import ToolwireError
from toolwire.extensions.hooks import inputs
from toolwire.extensions.hooks.answers import HookAnswer, read_answer_of_hook, strictest
from toolwire.extensions.hooks.changes import may_be_set, see_changes, unchanged_files
from toolwire.extensions.hooks.definitions import Definition, digest_of_hook
from toolwire.extensions.hooks.inputs import AskedCall, Subject, event_of, input_of, matched_by
from toolwire.extensions.hooks.run import run_hook
from toolwire.extensions.hooks.transcript import reads_transcript, write_transcript
from toolwire.extensions.hooks.vocabulary import (
    MODIFIED,
    blocked_text,
    hook_context,
    our_input,
    refused_text,
)
from toolwire.ids import new_id
from toolwire.messages import Message, Text
from toolwire.request import JsonObject
from toolwire.tools.shell.environment import find_shell, is_powershell
from toolwire.tools.shell.limits import ProcessLimits
from toolwire.tools.shell.shells import run_program
from toolwire.tools.spec import ToolOutput, capped
from toolwire.wire.json_access import encode

LONGEST = 50_000
"""Characters of one text of a hook that the model gets; the rest is in a file."""
_MOST_SHOWN = 2_000
_LAST_SECONDS = 5.0
"""What hooks that are not waited for have at the end of a session."""

_Answers = list[tuple[Definition, HookAnswer]]


class HookSession(msgspec.Struct, frozen=True, kw_only=True):
    """The session that hooks belong to."""

    id: str
    cwd: Path
    temp: Path
    environ: dict[str, str]
    """Of its commands; secrets are out of it. Variables of SessionStart hooks are added."""
    seen: dict[str, str]
    """Versions of the files that the model has seen."""
    emit: Emit
    mode: Callable[[], str]
    messages: Callable[[], tuple[Message, ...]]


class SessionHooks(Hooks):
    """Runs what the settings define for each event."""

    def __init__(self, hooks: Iterable[Definition], session: HookSession) -> None:
        self._hooks = tuple(hooks)
        self._session = session
        self._digests = {
            hook.key: digest_of_hook(hook, session.cwd) for hook in self._hooks if hook.project
        }
        self._contexts: dict[str, list[str]] = {}
        """Texts of PreToolUse hooks by call, for its result."""
        self._modified: set[str] = set()
        """Calls whose arguments a hook of gemini-cli changed."""
        self._background: set[asyncio.Task[None]] = set()
        self._prompt = ""

    async def before_call(self, call: HookedCall) -> CallDecision | None:
        """The strictest decision of PreToolUse hooks, with the input that they changed."""
        answers = await self._run(call, call.id)
        self._remember_context(call, answers)
        return self._decided(call, answers)

    async def before_question(self, call: HookedCall, reason: str) -> CallDecision | None:
        """The answer of PermissionRequest hooks."""
        return self._decided(call, await self._run(AskedCall(call, reason), call.id))

    async def after_call(self, result: HookedResult) -> ResultChange | None:
        """The result with what hooks add to it."""
        call = result.call
        answers = await self._run(result, call.id)
        texts = self._contexts.pop(call.id, [])
        output, notes = result.output, list[str]()
        for hook, answer in answers:
            if answer.verdict == "deny":
                if hook.program == "gemini":
                    return Deny(answer.reason, self._fitting(answer.reason))
                notes.append(blocked_text(hook, call, self._fitting(answer.reason)))
            if answer.output is not None and not result.error:
                output = ToolOutput(text=answer.output, stat=output.stat, diff=output.diff)
            if answer.context:
                texts.append(self._fitting(answer.context))
        halted = next((one.halt for _, one in answers if one.halt is not None), None)
        if halted is not None:
            return Halt(halted)
        if call.id in self._modified:
            self._modified.discard(call.id)
            notes.insert(0, MODIFIED)
        added = hook_context(texts) + "".join(f"\n\n{note}" for note in notes)
        if not added and output is result.output:
            return None
        return _with_text(output, added)

    async def on_event(self, event: HookEvent) -> Reaction | None:
        """What hooks answer to an event of the session."""
        if isinstance(event, UserPromptSubmit):
            self._prompt = new_id("")
        if isinstance(event, Notification):
            # The user is asked meanwhile.
            self._in_background(self._noted(event))
            return None
        environ = self._env_file() if isinstance(event, SessionStart) else None
        answers = await self._run(event, environ=environ)
        if environ is not None:
            await self._take_environment(environ["CLAUDE_ENV_FILE"])
        denied = [one.reason for _, one in answers if one.verdict == "deny"]
        contexts = [
            f"<hook_context>{_headed(hook, answer)}{self._fitting(answer.context)}</hook_context>"
            for hook, answer in answers
            if answer.context
        ]
        return Reaction(
            blocked=self._fitting("\n".join(denied)) if denied else None,
            context=tuple(contexts),
            halted=next((one.halt for _, one in answers if one.halt is not None), None),
        )

    async def close(self) -> None:
        """Waits a little for hooks in the background, then ends them."""
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=_LAST_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def _decided(self, call: HookedCall, answers: _Answers) -> CallDecision | None:
        halted = next((one.halt for _, one in answers if one.halt is not None), None)
        if halted is not None:
            return Halt(halted)
        found = strictest([answer for _, answer in answers])
        if found is not None and found.verdict == "deny":
            hook = next(hook for hook, answer in answers if answer is found)
            reason = self._fitting(found.reason)
            text = refused_text(hook, call, reason, by_code=found.by_code)
            return Deny(found.reason, text + hook_context(self._contexts.pop(call.id, [])))
        arguments = self._arguments(call, answers)
        if found is None:
            return None if arguments is None else Change(arguments)
        if found.verdict == "ask":
            return Ask(found.reason, arguments)
        return Allow(arguments)

    def _arguments(self, call: HookedCall, answers: _Answers) -> JsonObject | None:
        """Our arguments with every change in the order of the hooks; None without one."""
        changed = False
        for hook, answer in answers:
            if answer.changed_input is None:
                continue
            arguments = our_input(hook.program, call, answer.changed_input, merged=answer.merged)
            call, changed = msgspec.structs.replace(call, arguments=arguments), True
        return call.arguments if changed else None

    def _remember_context(self, call: HookedCall, answers: _Answers) -> None:
        texts = [self._fitting(answer.context) for _, answer in answers if answer.context]
        if any(hook.program == "gemini" and one.changed_input for hook, one in answers):
            self._modified.add(call.id)
        if texts:
            self._contexts[call.id] = texts

    def _fitting(self, text: str) -> str:
        """The text; one that is too long is in a file, and the model gets its ends."""
        if len(text) <= LONGEST:
            return text
        return capped(text, LONGEST, self._session.temp, f"hook-{new_id('')}")

    async def _run(
        self, subject: Subject, call: str = "", environ: Mapping[str, str] | None = None
    ) -> _Answers:
        """The answers of all hooks that match, in their order."""
        event = event_of(subject)
        chosen = self._chosen(event, subject)
        if not chosen:
            return []
        seen = await asyncio.to_thread(unchanged_files, self._session.seen)
        groups: dict[object, list[int]] = {}
        for at, hook in enumerate(chosen):
            groups.setdefault(hook.sequential or f"one {at}", []).append(at)
        found: dict[int, HookAnswer] = {}

        async def in_turn(numbers: list[int]) -> None:
            for at in numbers:
                found[at] = await self._answer(chosen[at], subject, call, environ or {})

        async with asyncio.TaskGroup() as group:
            for numbers in groups.values():
                group.create_task(in_turn(numbers))
        await asyncio.to_thread(see_changes, self._session.seen, seen)
        return [(hook, found[at]) for at, hook in enumerate(chosen)]

    def _chosen(self, event: str, subject: Subject) -> list[Definition]:
        """The hooks that match; of those that run the same, the first."""
        found: dict[tuple[object, ...], Definition] = {}
        for hook in self._hooks:
            if hook.event == event and matched_by(hook, subject):
                found.setdefault((hook.command, hook.args, hook.url), hook)
        return list(found.values())

    async def _answer(
        self, hook: Definition, subject: Subject, call: str, environ: Mapping[str, str]
    ) -> HookAnswer:
        if hook.background:
            self._in_background(self._unheeded(hook, subject, call))
            return HookAnswer()
        if self._was_changed(hook):
            words = "was changed since it was approved and does not run; run toolwire approve"
            answer, seconds = HookAnswer(failure=words), 0.0
        else:
            answer, seconds = await self._ran(hook, subject, environ)
        if answer.failure and hook.required:
            reason = f"the hook {hook.shown} {answer.failure}"
            answer = msgspec.structs.replace(answer, verdict="deny", reason=reason)
        await self._report(hook, answer, seconds, call)
        return answer

    async def _ran(
        self, hook: Definition, subject: Subject, environ: Mapping[str, str]
    ) -> tuple[HookAnswer, float]:
        session = self._session
        given = encode(input_of(hook, subject, await self._facts(hook)))
        ran = await run_hook(
            hook,
            given,
            cwd=session.cwd,
            environ={**session.environ, **self._variables(hook), **environ},
            temp=session.temp,
        )
        return read_answer_of_hook(ran, hook.event), ran.seconds

    async def _unheeded(self, hook: Definition, subject: Subject, call: str) -> None:
        if not self._was_changed(hook):
            answer, seconds = await self._ran(hook, subject, {})
            await self._report(hook, HookAnswer(failure=answer.failure), seconds, call)

    async def _noted(self, event: Notification) -> None:
        await self._run(event)

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _report(
        self, hook: Definition, answer: HookAnswer, seconds: float, call: str
    ) -> None:
        emit = self._session.emit
        await emit(
            HookRan(
                event=hook.event,
                name=hook.shown,
                decision=answer.word,
                reason=without_secrets(answer.failure or answer.halt or answer.reason)[
                    :_MOST_SHOWN
                ],
                seconds=seconds,
                call_id=call,
            )
        )
        said = (
            f"the {hook.event} hook {hook.shown} {answer.failure}" if answer.failure else "",
            answer.message,
            f"{hook.event} hook {hook.shown}: {answer.shown}" if answer.shown else "",
        )
        for words in filter(None, said):
            message = without_secrets(words)[:_MOST_SHOWN]
            await emit(Noticed(kind="hook", message=message))

    def _was_changed(self, hook: Definition) -> bool:
        """Whether a hook of the project, or a file that it names, is not as it was approved."""
        if not hook.project:
            return False
        return digest_of_hook(hook, self._session.cwd) != self._digests[hook.key]

    async def _facts(self, hook: Definition) -> inputs.Session:
        session = self._session
        file = session.temp / "transcripts" / f"{session.id}.jsonl"
        if await asyncio.to_thread(reads_transcript, hook, session.cwd):
            common = {"sessionId": session.id, "cwd": str(session.cwd)}
            await asyncio.to_thread(write_transcript, file, session.messages(), common)
        return inputs.Session(
            id=session.id,
            cwd=str(session.cwd),
            mode=session.mode(),
            transcript=str(file),
            time=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            prompt=self._prompt,
        )

    def _variables(self, hook: Definition) -> dict[str, str]:
        cwd = str(self._session.cwd)
        if hook.program != "gemini":
            return {"CLAUDE_PROJECT_DIR": cwd}
        return {
            "GEMINI_PROJECT_DIR": cwd,
            "GEMINI_SESSION_ID": self._session.id,
            "GEMINI_CWD": cwd,
            "CLAUDE_PROJECT_DIR": cwd,
        }

    def _env_file(self) -> dict[str, str]:
        """The variable with a file in which SessionStart hooks set variables of later commands."""
        file = self._session.temp / "hooks" / f"{self._session.id}.env"
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
        return {"CLAUDE_ENV_FILE": str(file)}

    async def _take_environment(self, file: str) -> None:
        environ = self._session.environ
        shell = find_shell(environ)
        if not await asyncio.to_thread(os.path.getsize, file) or not shell or is_powershell(shell):
            return
        words = (shell, "-c", 'set -a; . "$1" >/dev/null 2>&1; exec env -0', "env", file)
        try:
            _, out, _ = await run_program(
                words,
                b"",
                directory=self._session.cwd,
                environ=environ,
                temp=self._session.temp,
                limits=ProcessLimits(wall=10, idle=0),
                most=1 << 20,
            )
        except (OSError, ToolwireError) as error:
            words = f"variables of SessionStart hooks are not set: {error}"
            await self._session.emit(Noticed(kind="hook", message=words))
            return
        for entry in out.split("\0"):
            name, equals, value = entry.partition("=")
            if equals and environ.get(name) != value and may_be_set(name):
                environ[name] = value


def _headed(hook: Definition, answer: HookAnswer) -> str:
    """How Claude Code introduces the context."""
    if hook.program == "gemini":
        return ""
    kind = "success" if answer.plain else "additional context"
    return f"{hook.event} hook {kind}: "


def _with_text(output: ToolOutput, added: str) -> ToolOutput:
    if output.blocks and not output.text:
        return msgspec.structs.replace(output, blocks=(*output.blocks, Text(added.strip())))
    return msgspec.structs.replace(
        output, text=output.text + added, display=output.display or output.text
    )
