"""The repair itself: what the reader reads, calls paired, results placed, turns in order."""

from collections.abc import Iterable

from toolwire.history.call_ids import CallIds
from toolwire.history.drafts import Draft, Placed, Report, Slot, has_members
from toolwire.history.pairing import answer, pair
from toolwire.history.readable import readable, unseal_end
from toolwire.history.rules import HistoryRules, Repaired
from toolwire.messages import Message, Origin, Text, Thinking

_ANY = HistoryRules()
EARLIER = "[the conversation before this point is not shown]"


def repair(messages: Iterable[Message], target: Origin, rules: HistoryRules = _ANY) -> Repaired:
    """The conversation as `target` takes it, however it was cut, merged or switched before."""
    report = Report()
    drafts = readable(messages, target, report)
    drafts = pair(drafts, CallIds(rules), report)
    drafts = _placed(drafts, rules, report)
    if rules.thinking_leads:
        drafts = _led(drafts, target, report)
    if rules.user_first:
        drafts = _user_first(drafts, report)
    if rules.alternate:
        drafts = _alternating(drafts, report)
    return Repaired(tuple(draft.message() for draft in drafts), report.done())


def _placed(drafts: list[Draft], rules: HistoryRules, report: Report) -> list[Draft]:
    """Each message with calls followed by the message with their results."""
    placed: list[Draft] = []
    host: Draft | None = None
    for draft, following in zip(drafts, [*drafts[1:], None], strict=False):
        if draft.slots:
            host = Draft("user", draft.place)
            if following is not None and any(slot.found_in is following for slot in draft.slots):
                host = following
            _answer(draft, host, rules, report)
            placed += (draft, host)
        elif draft is not host:
            if draft.parts:
                placed.append(draft)
            elif has_members(draft.kept):
                report.add(draft.place, "removed the message with its members", "its results moved")
    return placed


def _answer(draft: Draft, host: Draft, rules: HistoryRules, report: Report) -> None:
    """Puts the results of a draft's calls into the message after it, in the order of the calls."""
    for slot in draft.slots:
        _tell(slot, host, report)
    here = [slot for slot in draft.slots if slot.found_in is host]
    mine = set(here)
    was = [slot for slot in host.takes if slot in mine]
    first = rules.results_first or any(slot.found_behind for slot in was[:1])
    if here != was or (first and any(slot.found_behind for slot in here)):
        what = "put the results first" if first else "put the results in order"
        why = "they stand before all else, in the order of calls" if first else "that of the calls"
        report.add(host.place, what, why)
    followers = {} if first or not was else _followers(host, was)
    rest = host.parts if first else []
    host.parts = []
    for slot in draft.slots:
        host.parts += (Placed(slot.result_place, answer(slot)), *followers.get(slot, ()))
    host.parts += rest


def _tell(slot: Slot, host: Draft, report: Report) -> None:
    if slot.result is None:
        word = "interrupted" if slot.call.complete else "not run"
        report.add(slot.place, f'answered the call "{slot.call.id}": {word}', "it had no result")
    elif slot.found_in is not host:
        report.add(
            slot.result_place,
            f'moved the result of "{slot.call.id}"',
            "a result follows its call directly",
        )


def _followers(host: Draft, slots: list[Slot]) -> dict[Slot, list[Placed]]:
    """What stood between each result and the next; nothing stood before the first."""
    found: dict[Slot, list[Placed]] = {slot: [] for slot in slots}
    behind = iter(slots[1:])
    current, following = slots[0], next(behind, None)
    for placed in host.parts:
        while following is not None and following.result_place < placed.place:
            current, following = following, next(behind, None)
        found[current].append(placed)
    return found


def _led(drafts: list[Draft], target: Origin, report: Report) -> list[Draft]:
    """Takes the seals off thinking that leads to nothing before the other side speaks."""
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
            report.add(draft.place, "removed the message with its members", "nothing else was left")
    led.reverse()
    return led


def _user_first(drafts: list[Draft], report: Report) -> list[Draft]:
    for number, draft in enumerate(drafts):
        if draft.role == "system":
            continue
        if draft.role == "assistant":
            report.add(draft.place, "put a user message before it", "the reader wants one first")
            opening = Draft("user", draft.place, [Placed(draft.place, Text(EARLIER))])
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
            draft.place,
            "joined it to the message before" + (", without their members" if lost else ""),
            "the reader wants user and assistant to take turns",
        )
        last.parts += draft.parts
        last.kept = None
    return turns
