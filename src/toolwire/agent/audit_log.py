"""Audit log: one line for every ruling, written from the agent's events."""

import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from toolwire.agent.events import (
    AgentEvent,
    ApprovalOutcome,
    Emit,
    ToolAsked,
    ToolDecided,
    ToolFinished,
    ToolRequested,
)
from toolwire.messages import ToolCall
from toolwire.policy import Mode
from toolwire.policy.engine import Policy
from toolwire.policy.rules import Verdict
from toolwire.policy.ruling import Ruling
from toolwire.tools.registry import Registry
from toolwire.tools.spec import Effect


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, tag="ruling"):
    """The call, the ruling, the rule that decided, and the user's answer."""

    at: str
    """Time in ISO 8601, given by the caller."""
    call_id: str
    tool: str
    effect: Effect
    mode: Mode
    decision: Verdict
    reason: str
    """Empty for commands: it would quote them."""
    rule: str
    roots: tuple[str, ...] = ()
    answer: str = ""
    """The user's choice, if asked."""


def record(
    ruling: Ruling, call: ToolCall, effect: Effect, mode: Mode, *, at: str, answer: str = ""
) -> AuditRecord:
    """The record of a ruling. It leaves out arguments: they may contain secrets."""
    return AuditRecord(
        at=at,
        call_id=call.id,
        tool=call.name,
        effect=effect,
        mode=mode,
        decision=ruling.decision,
        reason="" if effect is Effect.EXECUTE else ruling.reason,
        rule=ruling.rule,
        roots=ruling.roots,
        answer=answer,
    )


_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
_RULED = (ToolRequested, ToolAsked, ToolDecided, ToolFinished)
_log = logging.getLogger(__name__)


class AuditFile:
    """JSON lines in a private file; a failed write never stops the session."""

    def __init__(self, file: Path, notice: Callable[[str], None] = _log.warning) -> None:
        self._file = file
        self._notice = notice
        self._failed = False
        self._torn = False

    def write(self, entry: AuditRecord) -> None:
        """Append a record in one write; only the first failure is reported."""
        # One write at the end of the file: lines of several processes do not mix.
        line = (b"\n" if self._torn else b"") + msgspec.json.encode(entry) + b"\n"
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self._file, _APPEND, 0o600)
            try:
                self._torn = os.write(handle, line) < len(line)
            finally:
                os.close(handle)
        except OSError as error:
            self._fail(error.strerror or str(error))
        else:
            if self._torn:
                self._fail("the disk is full")

    def _fail(self, why: str) -> None:
        if not self._failed:
            self._notice(f"rulings are not recorded: cannot write {self._file}: {why}")
        self._failed = True


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Open:
    """A requested call that is not yet recorded."""

    __slots__ = ("asked", "before", "call")

    def __init__(self, call: ToolCall, before: Ruling | None) -> None:
        self.call = call
        self.before = before
        """The ruling on an earlier call of the same id: servers repeat ids."""
        self.asked = False


class Audit:
    """Collects the ruling and the user's answer for each call from the events."""

    def __init__(
        self,
        policy: Policy,
        registry: Registry,
        write: Callable[[AuditRecord], None],
        now: Callable[[], str] = _now,
    ) -> None:
        self._policy = policy
        self._registry = registry
        self._write = write
        self._now = now
        self._open: dict[str, _Open] = {}

    def within(self, policy: Policy, registry: Registry) -> "Audit":
        """An audit of the calls of a session inside this one, in the same file."""
        return Audit(policy, registry, self._write, self._now)

    def listening(self, emit: Emit) -> Emit:
        """The emitter, wrapped: each ruling is written before its event is emitted."""

        async def recorded(event: AgentEvent) -> None:
            if isinstance(event, _RULED):
                self._record(event)
            await emit(event)

        return recorded

    def _record(self, event: ToolRequested | ToolAsked | ToolDecided | ToolFinished) -> None:
        match event:
            case ToolRequested():
                call = event.call
                self._open[call.id] = _Open(call, self._policy.ruling(call.id))
            case ToolAsked() if event.call_id in self._open:
                self._open[event.call_id].asked = True
            case ToolDecided():
                refused = event.decision is ApprovalOutcome.REJECT
                self._close(event.call_id, event.scope or ("cancel" if refused else ""))
            case ToolFinished():
                # Refused before any ruling, or cancelled while it waited for one or for an answer.
                self._close(event.call_id, "", decided=False)
            case _:
                pass

    def _close(self, call_id: str, answer: str, *, decided: bool = True) -> None:
        found = self._open.pop(call_id, None)
        tool = None if found is None else self._registry.get(found.call.name)
        if found is None or tool is None:
            return
        ruling = self._policy.ruling(call_id)
        if ruling is found.before:
            if not decided and not found.asked:
                return
            ruling = None
        self._write(
            record(
                ruling or Ruling(decision=Verdict.ASK, rule="engine error"),
                msgspec.structs.replace(found.call, name=tool.name),
                tool.effect,
                self._policy.terms.mode,
                at=self._now(),
                answer=answer if found.asked else "",
            )
        )
