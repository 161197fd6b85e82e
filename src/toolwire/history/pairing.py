"""Calls paired with their results; every call gets one."""

import msgspec

from toolwire.history.drafts import (
    CallIds,
    Draft,
    PendingCall,
    PlacedPart,
    Position,
    Report,
    has_members,
)
from toolwire.messages import Media, Outcome, Part, Text, ToolCall, ToolResult

INTERRUPTED = "interrupted: it is not known whether this call took effect"
NOT_RUN = "not run: the call was cut off before its arguments were complete"


def pair(drafts: list[Draft], ids: CallIds, report: Report) -> list[Draft]:
    """Removes every result from its draft and assigns it to its call; drafts left with
    nothing go.
    """
    pairing = _Pairing(ids, report)
    for draft in drafts:
        pairing.walk(draft)
    return [draft for draft in drafts if draft.parts or draft.takes]


class _Pairing:
    def __init__(self, ids: CallIds, report: Report) -> None:
        self._ids = ids
        self._report = report
        self._open: dict[str, list[list[PendingCall]]] = {}
        """Unanswered calls by their first id: a list per message, the next to answer last."""
        self._answers: dict[str, ToolResult] = {}

    def walk(self, draft: Draft) -> None:
        parts: list[PlacedPart] = []
        for position, part in draft.parts:
            if isinstance(part, ToolCall):
                slot = self._call(position, part)
                draft.slots.append(slot)
                parts.append(PlacedPart(position, slot.call))
            elif isinstance(part, ToolResult):
                slot = self._slot_for(part)
                if slot is None:
                    parts += self._without_call(position, part)
                else:
                    slot.found_in = draft
                    slot.found_behind = bool(parts)
                    slot.result_position = position
                    slot.result = self._fitted(slot, part)
                    draft.takes.append(slot)
            else:
                parts.append(PlacedPart(position, part))
        if draft.parts and not parts and not draft.takes and has_members(draft.kept):
            self._report.add(
                draft.position,
                "removed the message with its members",
                "nothing else was left of it",
            )
        draft.parts = parts
        self._open_calls(draft)

    def _call(self, position: Position, call: ToolCall) -> PendingCall:
        raw_id = call.id
        new_id = self._ids.take(raw_id)
        if new_id != call.id:
            fits = self._ids.fits(call.id)
            self._report.add(
                position,
                f'gave call "{call.id}" the id "{new_id}"',
                "an earlier call has its id" if fits else "the reader does not accept its id",
            )
            call = msgspec.structs.replace(call, id=new_id, made_id=True)
        return PendingCall(call, raw_id, position)

    def _open_calls(self, draft: Draft) -> None:
        batches: dict[str, list[PendingCall]] = {}
        for slot in reversed(draft.slots):
            batches.setdefault(slot.raw_id, []).append(slot)
        for raw_id, slots in batches.items():
            self._open.setdefault(raw_id, []).append(slots)

    def _slot_for(self, result: ToolResult) -> PendingCall | None:
        # Servers repeat ids: the result belongs to the nearest message with an open call, and in
        # it to the first.
        batches = self._open.get(result.call_id)
        if not batches:
            return None
        slot = batches[-1].pop()
        if not batches[-1]:
            batches.pop()
        self._answers[result.call_id] = result
        return slot

    def _fitted(self, slot: PendingCall, result: ToolResult) -> ToolResult:
        call = slot.call
        name = result.name and call.name
        if name != result.name or result.kind != call.kind:
            self._report.add(
                slot.result_position,
                f'made the result one of a {call.kind} call of "{call.name}"',
                "it answers that call",
            )
        return msgspec.structs.replace(result, call_id=call.id, name=name, kind=call.kind)

    def _without_call(self, position: Position, result: ToolResult) -> list[PlacedPart]:
        twin = self._answers.get(result.call_id)
        if twin is not None and twin.parts == result.parts:
            self._report.add(position, "dropped a result", "it is a duplicate")
            return []
        why = "its call is no longer in the history" if twin is None else "its call has another"
        parts = _result_text(
            result, "no longer in the history" if twin is None else "answered already"
        )
        if not parts:
            self._report.add(position, "dropped an empty result", why)
        else:
            self._report.add(position, "made the result text", why)
        return [PlacedPart(position, part) for part in parts]


def answer(slot: PendingCall) -> ToolResult:
    """The result of a call, or a substitute if it has none."""
    if slot.result is not None:
        return slot.result
    call = slot.call
    return ToolResult(
        call_id=call.id,
        name=call.name,
        parts=(Text(INTERRUPTED if call.complete else NOT_RUN),),
        is_error=True,
        outcome=Outcome.INTERRUPTED if call.complete else Outcome.NOT_RUN,
        kind=call.kind,
    )


def _result_text(result: ToolResult, state: str) -> list[Part]:
    of = f" of {result.name}" if result.name else ""
    shown: list[Part] = [part for part in result.parts if isinstance(part, Media)]
    if not shown and not result.text:
        return []
    heading = f"[result of a call{of} that is {state}]"
    return [Text(f"{heading}\n{result.text}" if result.text else heading), *shown]
