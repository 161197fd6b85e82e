"""The end of an answer: finish reasons, token counts and the members beside the parts."""

from typing import Any

import msgspec

from toolwire.dialects.gemini.shapes import (
    NAME,
    UNREADABLE,
    RawMembers,
    camel_case,
    listed,
    value,
    whole_number,
)
from toolwire.errors import IncompleteStream
from toolwire.events import (
    UNMARKED_END,
    CitationAdded,
    Finished,
    ModelEvent,
    Notice,
    StopReason,
    Usage,
)
from toolwire.messages import Citation, Kept
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, is_object

STOP, MAX_TOKENS = "STOP", "MAX_TOKENS"
UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"

REASONS = {
    STOP: StopReason.END,
    MAX_TOKENS: StopReason.LENGTH,
    "SAFETY": StopReason.CONTENT_FILTER,
    "RECITATION": StopReason.CONTENT_FILTER,
    "BLOCKLIST": StopReason.CONTENT_FILTER,
    "PROHIBITED_CONTENT": StopReason.CONTENT_FILTER,
    "SPII": StopReason.CONTENT_FILTER,
    "MODEL_ARMOR": StopReason.CONTENT_FILTER,
    "IMAGE_SAFETY": StopReason.CONTENT_FILTER,
    "IMAGE_PROHIBITED_CONTENT": StopReason.CONTENT_FILTER,
    "IMAGE_RECITATION": StopReason.CONTENT_FILTER,
    "IMAGE_OTHER": StopReason.CONTENT_FILTER,
    "MALFORMED_FUNCTION_CALL": StopReason.MALFORMED_CALL,
    "UNEXPECTED_TOOL_CALL": StopReason.MALFORMED_CALL,
    "TOO_MANY_TOOL_CALLS": StopReason.MALFORMED_CALL,
    "MALFORMED_RESPONSE": StopReason.MALFORMED_CALL,
    "LANGUAGE": StopReason.ERROR,
    "OTHER": StopReason.ERROR,
    "NO_IMAGE": StopReason.ERROR,
    "MISSING_THOUGHT_SIGNATURE": StopReason.ERROR,
    "CONTINUATION": StopReason.PAUSE,
}
WIRE_REASONS = {
    StopReason.END: STOP,
    StopReason.TOOL_CALLS: STOP,
    StopReason.LENGTH: MAX_TOKENS,
    StopReason.REFUSAL: "SAFETY",
    StopReason.CONTENT_FILTER: "SAFETY",
    StopReason.PAUSE: "CONTINUATION",
    StopReason.MALFORMED_CALL: "MALFORMED_FUNCTION_CALL",
    StopReason.ERROR: "OTHER",
}

# With enum-encoding=int the two services number the same reasons differently.
_STUDIO = (
    UNSPECIFIED,
    STOP,
    MAX_TOKENS,
    "SAFETY",
    "RECITATION",
    "OTHER",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "IMAGE_SAFETY",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
)
_VERTEX = (
    UNSPECIFIED,
    STOP,
    MAX_TOKENS,
    "SAFETY",
    "RECITATION",
    "OTHER",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "MALFORMED_FUNCTION_CALL",
    "MODEL_ARMOR",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "IMAGE_OTHER",
    "UNEXPECTED_TOOL_CALL",
    "NO_IMAGE",
)
_BLOCKS = ("", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY")


def finish_name(value: object, *, vertex: bool) -> str:
    """The name of a `finishReason`, which may be a number; empty if it is unspecified."""
    if isinstance(value, str):
        return "" if value == UNSPECIFIED else value
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    names = _VERTEX if vertex else _STUDIO
    name = names[value] if 0 <= value < len(names) else str(value)
    return "" if name == UNSPECIFIED else name


def block_name(value: object) -> str:
    """The name of a `blockReason`; empty if the prompt was not blocked."""
    if isinstance(value, str):
        return "" if value in ("BLOCK_REASON_UNSPECIFIED", "BLOCKED_REASON_UNSPECIFIED") else value
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    return _BLOCKS[value] if 0 <= value < len(_BLOCKS) else str(value)


def finish_of(reason: StopReason, detail: str) -> tuple[str, str]:
    """The `finishReason` and `finishMessage` for an end of ours.

    The detail holds both if the end was decoded from this format.
    """
    head, _, message = detail.partition(": ")
    if REASONS.get(head) is reason:
        return head, message
    return WIRE_REASONS[reason], ""


_COUNTS = (
    ("promptTokenCount", "input"),
    ("candidatesTokenCount", "output"),
    ("cachedContentTokenCount", "cached"),
    ("thoughtsTokenCount", "reasoning"),
)
_TOTAL, _TOOLS = "totalTokenCount", "toolUsePromptTokenCount"


def read_usage(metadata: JsonObject) -> tuple[Usage, JsonObject]:
    """The counts, and the members that no count of ours carries."""
    rest = dict(metadata)
    counts: JsonObject = {}
    for wire_name, name in _COUNTS:
        if whole_number(rest.get(wire_name)) is not None:
            counts[name] = rest.pop(wire_name)
    usage = Usage(**counts, reasoning_in_output=False)
    if _TOTAL in rest and rest[_TOTAL] == _total(usage, rest):
        del rest[_TOTAL]
    return usage, rest


def write_usage(usage: Usage, rest: JsonObject) -> JsonObject:
    """`usageMetadata`; empty if nothing was counted."""
    metadata: JsonObject = dict(rest)
    if usage.input is not None:
        metadata["promptTokenCount"] = usage.total_input
    output, reasoning = usage.output, usage.reasoning
    if output is not None and reasoning and usage.reasoning_in_output:
        output = max(0, output - reasoning)
    for name, count in (
        ("candidatesTokenCount", output),
        ("cachedContentTokenCount", usage.cached),
        ("thoughtsTokenCount", reasoning),
    ):
        if count is not None:
            metadata[name] = count
    if _TOTAL not in metadata:
        counted = Usage(input=usage.input and usage.total_input, output=output, reasoning=reasoning)
        total = _total(counted, rest)
        if total is not None:
            metadata[_TOTAL] = total
    return metadata


def _total(usage: Usage, rest: JsonObject) -> int | None:
    if usage.input is None and usage.output is None and usage.reasoning is None:
        return None
    extra = whole_number(rest.get(_TOOLS)) or 0
    return (usage.input or 0) + (usage.output or 0) + (usage.reasoning or 0) + extra


_READ = frozenset({"content", "finishReason", "index"})
_NULL = msgspec.Raw(b"null")
_NO_USAGE = Usage(reasoning_in_output=False)


class AnswerEnd:
    """Collects what is only known when the last chunk is in."""

    def __init__(self, *, whole: bool) -> None:
        self.vertex = False
        """Which service answers: they number reasons differently, and only Vertex sends a time."""
        self._whole = whole
        self.usage: msgspec.Raw | None = None
        self.model = ""
        self.response_id = ""
        self._reason: object = None
        self._answered = False
        self._blocked = ""
        self._beside: JsonObject = {}

    def note(self, usage: msgspec.Raw | None, model: str | None, response_id: str | None) -> None:
        """Add the members that most chunks repeat; the last counts."""
        if usage and usage != _NULL:
            self.usage = usage
        if model:
            self.model = model
        if response_id:
            self.response_id = response_id

    def finish(self, reason: object) -> None:
        """Add a finish reason; more chunks may follow."""
        if finish_name(reason, vertex=False):
            self._reason = reason

    def prompt_feedback(self, feedback: Any) -> None:
        """Add the verdict on the prompt; a block reason means there is no answer."""
        if is_object(feedback):
            feedback = {camel_case(key): inner for key, inner in feedback.items()}
            self._blocked = block_name(feedback.get("blockReason")) or self._blocked
            self._beside["promptFeedback"] = feedback

    def candidate(self, candidate: RawMembers) -> None:
        """Add the members of a candidate beside its content."""
        self._answered = True
        self.finish(value(candidate.get("finishReason")))
        for key, raw in candidate.items():
            if key not in _READ:
                self._beside[key] = value(raw)

    def close(
        self, *, calls: int, has_content: bool, text_open: bool, whole: bool
    ) -> list[ModelEvent]:
        """The last events; `whole` if text or calls arrived and none of them is cut."""
        usage, rest = self._counts()
        self.vertex = self.vertex or "trafficType" in rest
        events: list[ModelEvent] = []
        if text_open:
            events += [CitationAdded(citation) for citation in _citations(self._beside)]
        reason, detail = self._ending(calls, has_content, whole, events)
        fields = dict(self._beside)
        if rest:
            fields["usageMetadata"] = rest
        events.append(
            Finished(
                reason=reason,
                usage=usage,
                detail=detail,
                response_id=self.response_id,
                model=self.model,
                kept=Kept(dialect=NAME, fields=dump(fields)) if fields else None,
            )
        )
        return events

    def counts(self) -> Usage:
        """The counts so far."""
        return self._counts()[0]

    def _counts(self) -> tuple[Usage, JsonObject]:
        try:
            metadata = value(self.usage)
        except UNREADABLE:
            metadata = None
        if not is_object(metadata):
            return _NO_USAGE, {}
        return read_usage({camel_case(key): count for key, count in metadata.items()})

    def _ending(
        self, calls: int, has_content: bool, whole: bool, events: list[ModelEvent]
    ) -> tuple[StopReason, str]:
        name = finish_name(self._reason, vertex=self.vertex)
        if not name:
            return self._without_reason(calls, has_content, whole, events)
        reason = REASONS.get(name)
        if reason is StopReason.END and calls:
            reason = StopReason.TOOL_CALLS
        if reason is None:
            if not calls and not has_content:
                return StopReason.ERROR, self._detail(name)
            events.append(Notice("unknown_finish", f'unknown finish reason "{name}"'))
            return StopReason.TOOL_CALLS if calls else StopReason.END, self._detail(name)
        return reason, "" if name in (STOP, MAX_TOKENS) else self._detail(name)

    def _without_reason(
        self, calls: int, has_content: bool, whole: bool, events: list[ModelEvent]
    ) -> tuple[StopReason, str]:
        if self._blocked:
            message = self._beside["promptFeedback"].get("blockReasonMessage")
            detail = f"{self._blocked}: {message}" if message else self._blocked
            return StopReason.CONTENT_FILTER, detail
        if not self._whole:
            if not whole:
                raise IncompleteStream("the stream ended without a finishReason")
            events.append(Notice(UNMARKED_END, "the stream ended without a finishReason"))
        elif not (self._answered or has_content or calls):
            return StopReason.ERROR, "no candidates"
        else:
            events.append(Notice("no_finish_reason", "the answer has no finishReason"))
        return StopReason.TOOL_CALLS if calls else StopReason.END, ""

    def _detail(self, name: str) -> str:
        message = self._beside.get("finishMessage")
        if not isinstance(message, str) or not message:
            return name
        del self._beside["finishMessage"]
        return f"{name}: {message}"


def _citations(beside: JsonObject) -> list[Citation]:
    """The sources an answer names; where in the text they belong stays in the vendor's object."""
    found: list[Citation] = []
    for holder, member in (
        ("groundingMetadata", "groundingChunks"),
        ("citationMetadata", "citations"),
    ):
        metadata = beside.get(holder)
        chunks = metadata.get(member) if is_object(metadata) else None
        for chunk in listed(chunks):
            if not is_object(chunk):
                continue
            source: JsonObject = next(filter(is_object, chunk.values()), chunk)
            url, title = source.get("uri"), source.get("title")
            if isinstance(url, str) and url:
                found.append(
                    Citation(
                        dialect=NAME,
                        data=dump(chunk),
                        url=url,
                        title=title if isinstance(title, str) else "",
                    )
                )
    return found
