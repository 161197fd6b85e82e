"""What the reader can read at all: foreign seals, foreign server blocks and empty parts go."""

from collections.abc import Iterable

import msgspec

from toolwire.history.drafts import Draft, Place, Placed, Report, has_members, without_seal
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
    """One draft per message, and one more for results that stood in an assistant's message."""
    reader = _Reader(target, report)
    drafts: list[Draft] = []
    for number, message in enumerate(messages):
        place = Place(number)
        draft = Draft(message.role, place, reader.parts(message, number))
        draft.kept = message.kept
        if not draft.parts and (not message.parts or has_members(message.kept)):
            report.add(place, f"removed the message{_with(message.kept)}", "it is empty")
        drafts.append(draft)
        results = [placed for placed in draft.parts if isinstance(placed.part, ToolResult)]
        if results and message.role != "user":
            draft.parts = [
                placed for placed in draft.parts if not isinstance(placed.part, ToolResult)
            ]
            report.add(place, "moved its results out", "results stand in a user message")
            drafts.append(Draft("user", place, results))
    return drafts


class _Reader:
    def __init__(self, target: Origin, report: Report) -> None:
        self._target = target
        self._report = report

    def parts(self, message: Message, number: int) -> list[Placed]:
        parts: list[Placed] = []
        for position, part in enumerate(message.parts):
            place = Place(number, position)
            if isinstance(part, ServerBlock):
                if not self._takes(place, part):
                    unseal_end(parts, self._target, self._report)
                    continue
            elif isinstance(part, ToolResult):
                part = self._result(place, part)
            elif isinstance(part, ToolCall) and message.role != "assistant":
                part = self._told(place, part)
            else:
                part = self._unsealed(place, part)
                if _is_nothing(part, self._target):
                    if part is message.parts[position] or has_members(part.kept):
                        what = f"dropped an empty part{_with(part.kept)}"
                        self._report.add(place, what, "it says nothing")
                    continue
            parts.append(Placed(place, part))
        return parts

    def _takes(self, place: Place, block: ServerBlock) -> bool:
        if self._target.reads(block.origin):
            return True
        self._report.add(place, f"dropped {block.kind}", f"only {_name(block.origin)} reads it")
        return False

    def _unsealed(
        self, place: Place, part: Text | Thinking | Refusal | Media | ToolCall
    ) -> Text | Thinking | Refusal | Media | ToolCall:
        if part.seal is None or self._target.reads(part.seal.origin):
            return part
        maker = _name(part.seal.origin)
        self._report.add(place, "dropped the seal", f"only {maker} reads it")
        return without_seal(part)

    def _result(self, place: Place, result: ToolResult) -> ToolResult:
        parts: list[ResultPart] = []
        for part in result.parts:
            if isinstance(part, ServerBlock):
                if self._takes(place, part):
                    parts.append(part)
            elif part.seal is None or self._target.reads(part.seal.origin):
                parts.append(part)
            else:
                maker = _name(part.seal.origin)
                self._report.add(place, "dropped a seal", f"only {maker} reads it")
                parts.append(without_seal(part))
        return msgspec.structs.replace(result, parts=tuple(parts))

    def _told(self, place: Place, call: ToolCall) -> Text:
        self._report.add(place, f'made the call of "{call.name}" text', "only a model makes calls")
        return Text(f"[call of {call.name}: {call.arguments}]")


def unseal_end(parts: list[Placed], target: Origin, report: Report) -> None:
    """Takes the seals off thinking at the end: readers refuse one without what it led to."""
    stays: list[Placed] = []
    while parts and isinstance(thinking := parts[-1].part, Thinking):
        place = parts.pop().place
        if thinking.seal is not None:
            report.add(place, "dropped the seal", "what the thinking led to is not there")
            thinking = without_seal(thinking)
        if not _is_nothing(thinking, target):
            stays.append(Placed(place, thinking))
    parts.extend(reversed(stays))


def _is_nothing(part: Part, target: Origin) -> bool:
    if not isinstance(part, Text | Thinking | Refusal) or part.text or part.seal is not None:
        return False
    return part.kept is None or part.kept.dialect != target.dialect


def _name(origin: Origin) -> str:
    return "/".join(filter(None, (origin.dialect, origin.provider, origin.model)))


def _with(kept: Kept | None) -> str:
    return f" with members of {kept.dialect}" if kept is not None and has_members(kept) else ""
