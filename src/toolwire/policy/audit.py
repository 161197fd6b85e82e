"""The record of one ruling for the audit log; writing it is the caller's."""

import msgspec

from toolwire.messages import ToolCall
from toolwire.policy.rules import Mode, Verdict
from toolwire.policy.ruling import Ruling
from toolwire.tools.spec import Effect


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, tag="ruling"):
    """Who asked for what, what was ruled, by which rule, and what a person answered."""

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
    """A person's choice, where one was asked for."""


def record(
    ruling: Ruling, call: ToolCall, effect: Effect, mode: Mode, *, at: str, answer: str = ""
) -> AuditRecord:
    """The record of a ruling. Arguments stay out of it: they may hold secrets."""
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
