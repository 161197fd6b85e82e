"""Repair of a conversation: readable parts, paired calls, placed results, ordered turns."""

from collections.abc import Iterable
from operator import is_

import msgspec

from toolwire.history.drafts import (
    CallIds,
    Draft,
    HistoryRules,
    PendingCall,
    PlacedPart,
    Position,
    Repaired,
    Report,
    has_members,
    without_seal,
)
from toolwire.history.pairing import answer, pair
from toolwire.messages import (
    Kept,
    Media,
    Message,
    Origin,
    Part,
    Refusal,
    ResultPart,
    ServerBlock,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)


def readable(messages: Iterable[Message], target: Origin, report: Report) -> list[Draft]:
    """One draft per message, and one more for results in an assistant message."""
    reader = _Reader(target, report)
    drafts: list[Draft] = []
    for number, message in enumerate(messages):
        position = Position(number)
        draft = Draft(message.role, position, reader.parts(message, number))
        draft.kept = message.kept
        if not draft.parts and (not message.parts or has_members(message.kept)):
            report.add(position, f"removed the message{_with(message.kept)}", "it is empty")
        drafts.append(draft)
        results = [placed for placed in draft.parts if isinstance(placed.part, ToolResult)]
        if results and message.role != "user":
            draft.parts = [
                placed for placed in draft.parts if not isinstance(placed.part, ToolResult)
            ]
            report.add(position, "moved its results out", "results belong in a user message")
            drafts.append(Draft("user", position, results))
    return drafts


class _Reader:
    def __init__(self, target: Origin, report: Report) -> None:
        self._target = target
        self._report = report

    def parts(self, message: Message, number: int) -> list[PlacedPart]:
        parts: list[PlacedPart] = []
        for index, part in enumerate(message.parts):
            position = Position(number, index)
            if isinstance(part, ServerBlock):
                if not self._takes(position, part):
                    unseal_end(parts, self._target, self._report)
                    continue
            elif isinstance(part, ToolResult):
                part = self._result(position, part)
            elif isinstance(part, ToolCall) and message.role != "assistant":
                part = self._call_text(position, part)
            else:
                part = self._unsealed(position, part)
                if _is_nothing(part, self._target):
                    if part is message.parts[index] or has_members(part.kept):
                        what = f"dropped an empty part{_with(part.kept)}"
                        self._report.add(position, what, "it is empty")
                    continue
            parts.append(PlacedPart(position, part))
        return parts

    def _takes(self, position: Position, block: ServerBlock) -> bool:
        if self._target.reads(block.origin):
            return True
        self._report.add(position, f"dropped {block.kind}", f"only {_name(block.origin)} reads it")
        return False

    def _unsealed(
        self, position: Position, part: Text | Thinking | Refusal | Media | ToolCall
    ) -> Text | Thinking | Refusal | Media | ToolCall:
        if part.seal is None or self._target.reads(part.seal.origin):
            return part
        maker = _name(part.seal.origin)
        self._report.add(position, "dropped the seal", f"only {maker} reads it")
        return without_seal(part)

    def _result(self, position: Position, result: ToolResult) -> ToolResult:
        parts: list[ResultPart] = []
        for part in result.parts:
            if isinstance(part, ServerBlock):
                if self._takes(position, part):
                    parts.append(part)
            elif part.seal is None or self._target.reads(part.seal.origin):
                parts.append(part)
            else:
                maker = _name(part.seal.origin)
                self._report.add(position, "dropped a seal", f"only {maker} reads it")
                parts.append(without_seal(part))
        return msgspec.structs.replace(result, parts=tuple(parts))

    def _call_text(self, position: Position, call: ToolCall) -> Text:
        self._report.add(
            position, f'made the call of "{call.name}" text', "only a model makes calls"
        )
        return Text(f"[call of {call.name}: {call.arguments}]")


def unseal_end(parts: list[PlacedPart], target: Origin, report: Report) -> None:
    """Drops the seals of trailing thinking: vendors reject it without its output."""
    stays: list[PlacedPart] = []
    while parts and isinstance(thinking := parts[-1].part, Thinking):
        position = parts.pop().position
        if thinking.seal is not None:
            report.add(position, "dropped the seal", "the output of the thinking is missing")
            thinking = without_seal(thinking)
        if not _is_nothing(thinking, target):
            stays.append(PlacedPart(position, thinking))
    parts.extend(reversed(stays))


def _is_nothing(part: Part, target: Origin) -> bool:
    if not isinstance(part, Text | Thinking | Refusal) or part.text or part.seal is not None:
        return False
    return part.kept is None or part.kept.dialect != target.dialect


def _name(origin: Origin) -> str:
    return "/".join(filter(None, (origin.dialect, origin.provider, origin.model)))


def _with(kept: Kept | None) -> str:
    return f" with members of {kept.dialect}" if kept is not None and has_members(kept) else ""


_ANY = HistoryRules()
EARLIER = "[the conversation before this point is not shown]"


def repair(messages: Iterable[Message], target: Origin, rules: HistoryRules = _ANY) -> Repaired:
    """The conversation as `target` accepts it, even if it was cut, merged or switched before."""
    given = tuple(messages)
    if _is_plain(given):
        return Repaired(given, ())
    report = Report()
    drafts = readable(given, target, report)
    drafts = pair(drafts, CallIds(rules), report)
    drafts = _place_results(drafts, rules, report)
    if rules.thinking_leads:
        drafts = _drop_trailing_seals(drafts, target, report)
    if rules.user_first:
        drafts = _user_first(drafts, report)
    if rules.alternate:
        drafts = _alternating(drafts, report)
    repaired = tuple(_finished(draft, given) for draft in drafts)
    unchanged = len(repaired) == len(given) and all(map(is_, repaired, given))
    return Repaired(given if unchanged else repaired, report.done())


def _is_plain(messages: tuple[Message, ...]) -> bool:
    """Whether user and assistant take turns with words alone, which every reader accepts."""
    expected = "user"
    for message in messages:
        if message.role != expected or not message.parts:
            return False
        for part in message.parts:
            if type(part) is not Text or not part.text or part.seal is not None:
                return False
        expected = "assistant" if expected == "user" else "user"
    return True


class _AnyReader(Origin, frozen=True, gc=False):
    def reads(self, maker: Origin) -> bool:
        del maker
        return True


def balance(messages: Iterable[Message]) -> Repaired:
    """The conversation with a result for every call, and every other part as it was."""
    return repair(messages, _AnyReader(dialect=""))


def _finished(draft: Draft, given: tuple[Message, ...]) -> Message:
    """The repaired message: the given one, or at least its parts, where nothing was changed."""
    before = given[draft.position.message]
    parts: list[Part] = []
    for position, part in draft.parts:
        was = given[position.message].parts[position.part] if position.part is not None else part
        parts.append(was if was == part else part)
    unchanged = len(parts) == len(before.parts) and all(map(is_, parts, before.parts))
    if unchanged and draft.role == before.role and draft.kept == before.kept:
        return before
    return Message(role=draft.role, parts=tuple(parts), kept=draft.kept)


def _place_results(drafts: list[Draft], rules: HistoryRules, report: Report) -> list[Draft]:
    """Each message with calls followed by the message with their results."""
    placed: list[Draft] = []
    host: Draft | None = None
    for draft, following in zip(drafts, [*drafts[1:], None], strict=False):
        if draft.slots:
            host = Draft("user", draft.position)
            if following is not None and any(slot.found_in is following for slot in draft.slots):
                host = following
            _answer(draft, host, rules, report)
            placed += (draft, host)
        elif draft is not host:
            if draft.parts:
                placed.append(draft)
            elif has_members(draft.kept):
                report.add(
                    draft.position, "removed the message with its members", "its results moved"
                )
    return placed


def _answer(draft: Draft, host: Draft, rules: HistoryRules, report: Report) -> None:
    """Puts the results of a draft's calls into the message after it, in the order of the calls."""
    for slot in draft.slots:
        _report_result(slot, host, report)
    here = [slot for slot in draft.slots if slot.found_in is host]
    mine = set(here)
    was = [slot for slot in host.takes if slot in mine]
    first = rules.results_first or any(slot.found_behind for slot in was[:1])
    if here != was or (first and any(slot.found_behind for slot in here)):
        what = "put the results first" if first else "put the results in order"
        why = "they come first, in the order of calls" if first else "that of the calls"
        report.add(host.position, what, why)
    followers = {} if first or not was else _followers(host, was)
    rest = host.parts if first else []
    together = all(slot.found_in in (host, None) for slot in draft.slots)
    if followers and together and not any(followers[slot] for slot in was[:-1]):
        # What follows only the last result is the user's, not part of that result.
        rest = followers.pop(was[-1])
    host.parts = []
    for slot in draft.slots:
        host.parts += (PlacedPart(slot.result_position, answer(slot)), *followers.get(slot, ()))
    host.parts += rest


def _report_result(slot: PendingCall, host: Draft, report: Report) -> None:
    if slot.result is None:
        word = "interrupted" if slot.call.complete else "not run"
        report.add(slot.position, f'answered the call "{slot.call.id}": {word}', "it had no result")
    elif slot.found_in is not host:
        report.add(
            slot.result_position,
            f'moved the result of "{slot.call.id}"',
            "a result follows its call directly",
        )


def _followers(host: Draft, slots: list[PendingCall]) -> dict[PendingCall, list[PlacedPart]]:
    """The parts between each result and the next."""
    found: dict[PendingCall, list[PlacedPart]] = {slot: [] for slot in slots}
    behind = iter(slots[1:])
    current, following = slots[0], next(behind, None)
    for placed in host.parts:
        while following is not None and following.result_position < placed.position:
            current, following = following, next(behind, None)
        found[current].append(placed)
    return found


def _drop_trailing_seals(drafts: list[Draft], target: Origin, report: Report) -> list[Draft]:
    """Drops seals from thinking that ends a turn: vendors reject it without its output."""
    led: list[Draft] = []
    leads_on = False
    for draft in reversed(drafts):
        if draft.role != "assistant":
            leads_on = False
        elif not leads_on:
            unseal_end(draft.parts, target, report)
            leads_on = any(not isinstance(placed.part, Thinking) for placed in draft.parts)
        if draft.parts:
            led.append(draft)
        elif has_members(draft.kept):
            report.add(
                draft.position, "removed the message with its members", "nothing else was left"
            )
    led.reverse()
    return led


def _user_first(drafts: list[Draft], report: Report) -> list[Draft]:
    for number, draft in enumerate(drafts):
        if draft.role == "system":
            continue
        if draft.role == "assistant":
            report.add(
                draft.position, "put a user message before it", "the reader requires one first"
            )
            opening = Draft("user", draft.position, [PlacedPart(draft.position, Text(EARLIER))])
            return [*drafts[:number], opening, *drafts[number:]]
        break
    return drafts


def _alternating(drafts: list[Draft], report: Report) -> list[Draft]:
    turns: list[Draft] = []
    for draft in drafts:
        last = turns[-1] if turns else None
        if last is None or last.role != draft.role or draft.role == "system":
            turns.append(draft)
            continue
        lost = has_members(last.kept) or has_members(draft.kept)
        report.add(
            draft.position,
            "joined it to the message before" + (", without their members" if lost else ""),
            "the reader requires user and assistant to alternate",
        )
        last.parts += draft.parts
        last.kept = None
    return turns
