"""Record of one ruling for the audit log; the caller writes it."""

import msgspec

from toolwire.messages import ToolCall
from toolwire.policy.rules import Mode, Verdict
from toolwire.policy.ruling import Ruling
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
