"""How an answer ends: stop reasons and token counts, both ways."""

from toolwire.dialects.anthropic.shapes import NAME
from toolwire.events import Finished, StopReason, Usage
from toolwire.messages import Kept
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump, is_object, parse_object, text_or_empty

_REASONS = {
    "end_turn": StopReason.END,
    "stop_sequence": StopReason.END,
    "tool_use": StopReason.TOOL_CALLS,
    "max_tokens": StopReason.LENGTH,
    "model_context_window_exceeded": StopReason.LENGTH,
    "pause_turn": StopReason.PAUSE,
    "compaction": StopReason.PAUSE,
    "refusal": StopReason.REFUSAL,
}
_WIRE_REASONS = {
    StopReason.END: "end_turn",
    StopReason.TOOL_CALLS: "tool_use",
    StopReason.LENGTH: "max_tokens",
    StopReason.PAUSE: "pause_turn",
    StopReason.REFUSAL: "refusal",
    StopReason.CONTENT_FILTER: "refusal",
}
_SEQUENCE = "stop_sequence: "
_COUNTED = frozenset(
    {
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens_details",
    }
)
CUT = frozenset({StopReason.LENGTH, StopReason.REFUSAL})
"""Stop reasons that may cut a call."""


class Ending:
    """Collects the end of one answer: stop reason, usage, id and model."""

    def __init__(self) -> None:
        self.response_id = ""
        self.model = ""
        self.stop_reason = ""
        self._sequence = ""
        self._usage: JsonObject = {}
        self._rest: JsonObject = {}

    def message(self, message: JsonObject) -> None:
        """Adds the members of `message_start.message`, or of a whole answer."""
        members = dict(message)
        for key in ("type", "role", "content"):
            members.pop(key, None)
        self.response_id = text_or_empty(members.pop("id", None)) or self.response_id
        self.model = text_or_empty(members.pop("model", None)) or self.model
        self._take(members)

    def delta(self, event: JsonObject) -> None:
        """Adds a `message_delta`; its counts are totals and replace those of the start."""
        members = dict(event)
        members.pop("type", None)
        delta = members.pop("delta", None)
        self._take(members)
        if is_object(delta):
            self._take(dict(delta))

    def finished(self, has_calls: bool) -> Finished:
        """The end as an event."""
        reason = self.reason(has_calls)
        detail = ""
        if self.stop_reason == "stop_sequence" and self._sequence:
            detail = _SEQUENCE + self._sequence
        elif reason is StopReason.REFUSAL:
            detail = self._refusal()
        elif self.stop_reason and self.stop_reason != _WIRE_REASONS[reason]:
            detail = self.stop_reason
        return Finished(
            reason=reason,
            usage=_usage(self._usage),
            detail=detail,
            response_id=self.response_id,
            model=self.model,
            kept=self._kept(),
        )

    def usage(self) -> Usage | None:
        """The counts so far; None without any."""
        return _usage(self._usage) if self._usage else None

    def reason(self, has_calls: bool) -> StopReason:
        """Why the answer ended; calls outrank an ordinary end."""
        reason = _REASONS.get(self.stop_reason, StopReason.END)
        if has_calls and reason in (StopReason.END, StopReason.PAUSE):
            return StopReason.TOOL_CALLS
        return reason

    def _take(self, members: JsonObject) -> None:
        self.stop_reason = text_or_empty(members.pop("stop_reason", None)) or self.stop_reason
        self._sequence = text_or_empty(members.pop("stop_sequence", None)) or self._sequence
        usage = members.pop("usage", None)
        if is_object(usage):
            self._usage |= _present(usage)
        self._rest |= _present(members)

    def _refusal(self) -> str:
        details = self._rest.get("stop_details")
        if not is_object(details):
            return ""
        detail = text_or_empty(details.get("explanation")) or text_or_empty(details.get("category"))
        if details == _refusal_details(detail):
            del self._rest["stop_details"]
        return detail

    def _kept(self) -> Kept | None:
        rest = dict(self._rest)
        uncounted = {key: value for key, value in self._usage.items() if key not in _COUNTED}
        if uncounted:
            rest["usage"] = uncounted
        return Kept(dialect=NAME, fields=dump(rest)) if rest else None


def stop_members(finished: Finished) -> JsonObject:
    """`stop_reason`, `stop_sequence` and, for a refusal, `stop_details`."""
    reason = _WIRE_REASONS.get(finished.reason, "end_turn")
    sequence: str | None = None
    if finished.reason is StopReason.END and finished.detail.startswith(_SEQUENCE):
        reason, sequence = "stop_sequence", finished.detail.removeprefix(_SEQUENCE)
    elif _REASONS.get(finished.detail) is finished.reason:
        reason = finished.detail
    members: JsonObject = {"stop_reason": reason, "stop_sequence": sequence}
    if reason == "refusal" and finished.detail:
        members["stop_details"] = _refusal_details(finished.detail)
    return members


def usage_members(finished: Finished) -> JsonObject:
    """Token counts as this vendor counts: cached tokens not in input, thinking in output."""
    usage = finished.usage
    fresh = usage.input or 0
    if usage.cache_in_input:
        fresh = max(0, fresh - (usage.cached or 0) - (usage.cache_write or 0))
    members: JsonObject = {"input_tokens": fresh, "output_tokens": usage.total_output}
    if usage.cached is not None:
        members["cache_read_input_tokens"] = usage.cached
    if usage.cache_write is not None:
        members["cache_creation_input_tokens"] = usage.cache_write
    if usage.reasoning is not None:
        members["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return members


def kept_members(finished: Finished) -> JsonObject:
    """Members of this vendor's end that our values do not carry."""
    if finished.kept is None or finished.kept.dialect != NAME:
        return {}
    return parse_object(finished.kept.fields, "kept members")


def _refusal_details(detail: str) -> JsonObject:
    return {"type": "refusal", "category": None, "explanation": detail}


def _usage(counts: JsonObject) -> Usage:
    details = counts.get("output_tokens_details")
    thinking = details.get("thinking_tokens") if is_object(details) else None
    return Usage(
        input=_count(counts.get("input_tokens")),
        output=_count(counts.get("output_tokens")),
        cached=_count(counts.get("cache_read_input_tokens")),
        cache_write=_count(counts.get("cache_creation_input_tokens")),
        reasoning=_count(thinking),
        cache_in_input=False,
    )


def _present(members: JsonObject) -> JsonObject:
    return {key: value for key, value in members.items() if value is not None}


def _count(value: object) -> int | None:
    return value if type(value) is int else None
