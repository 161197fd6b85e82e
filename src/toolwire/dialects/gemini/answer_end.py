"""The end of an answer: finish reason, usage, sources and everything said beside the parts."""

from typing import Any

import msgspec

from toolwire.dialects.gemini.chunks import UNREADABLE, RawMembers, value
from toolwire.dialects.gemini.finish import (
    MAX_TOKENS,
    REASONS,
    STOP,
    block_word,
    finish_word,
)
from toolwire.dialects.gemini.json_kinds import is_object, listed
from toolwire.dialects.gemini.spelling import NAME, camel_case
from toolwire.dialects.gemini.usage import read_usage
from toolwire.errors import IncompleteStream
from toolwire.events import CitationAdded, Finished, ModelEvent, Notice, StopReason, Usage
from toolwire.messages import Citation, Kept
from toolwire.request import JsonObject
from toolwire.wire.json_access import dump

_READ = frozenset({"content", "finishReason", "index"})
_NULL = msgspec.Raw(b"null")
_NO_USAGE = Usage(reasoning_in_output=False)


class AnswerEnd:
    """Gathers what comes with the chunks and is only known when the last one is in."""

    def __init__(self, *, whole: bool) -> None:
        self.vertex = False
        """Numbers for words differ between the two services; Vertex also tells the time."""
        self._whole = whole
        self.usage: msgspec.Raw | None = None
        self.model = ""
        self.response_id = ""
        self._reason: object = None
        self._answered = False
        self._blocked = ""
        self._beside: JsonObject = {}

    def note(self, usage: msgspec.Raw | None, model: str | None, response_id: str | None) -> None:
        """The members most chunks repeat; the last counts."""
        if usage and usage != _NULL:
            self.usage = usage
        if model:
            self.model = model
        if response_id:
            self.response_id = response_id

    def finish(self, reason: object) -> None:
        """A finish reason; more chunks may follow."""
        if finish_word(reason, vertex=False):
            self._reason = reason

    def prompt_feedback(self, feedback: Any) -> None:
        """What the prompt was found to be; a block reason means there is no answer."""
        if is_object(feedback):
            feedback = {camel_case(key): inner for key, inner in feedback.items()}
            self._blocked = block_word(feedback.get("blockReason")) or self._blocked
            self._beside["promptFeedback"] = feedback

    def candidate(self, candidate: RawMembers) -> None:
        """Everything a candidate says beside its content."""
        self._answered = True
        self.finish(value(candidate.get("finishReason")))
        for key, raw in candidate.items():
            if key not in _READ:
                self._beside[key] = value(raw)

    def close(self, *, calls: int, said: bool, text_open: bool) -> list[ModelEvent]:
        """The last events."""
        usage, rest = self._counts()
        self.vertex = self.vertex or "trafficType" in rest
        events: list[ModelEvent] = []
        if text_open:
            events += [CitationAdded(citation) for citation in _citations(self._beside)]
        reason, detail = self._ending(calls, said, events)
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

    def _counts(self) -> tuple[Usage, JsonObject]:
        try:
            metadata = value(self.usage)
        except UNREADABLE:
            metadata = None
        if not is_object(metadata):
            return _NO_USAGE, {}
        return read_usage({camel_case(key): count for key, count in metadata.items()})

    def _ending(self, calls: int, said: bool, events: list[ModelEvent]) -> tuple[StopReason, str]:
        word = finish_word(self._reason, vertex=self.vertex)
        if not word:
            return self._without_word(calls, said, events)
        reason = REASONS.get(word)
        if reason is StopReason.END and calls:
            reason = StopReason.TOOL_CALLS
        if reason is None:
            if not calls and not said:
                return StopReason.ERROR, self._worded(word)
            events.append(Notice("unknown_finish", f'unknown finish reason "{word}"'))
            return StopReason.TOOL_CALLS if calls else StopReason.END, self._worded(word)
        return reason, "" if word in (STOP, MAX_TOKENS) else self._worded(word)

    def _without_word(
        self, calls: int, said: bool, events: list[ModelEvent]
    ) -> tuple[StopReason, str]:
        if self._blocked:
            message = self._beside["promptFeedback"].get("blockReasonMessage")
            detail = f"{self._blocked}: {message}" if message else self._blocked
            return StopReason.CONTENT_FILTER, detail
        if not self._whole:
            raise IncompleteStream("the stream ended without a finishReason")
        if not (self._answered or said or calls):
            return StopReason.ERROR, "no candidates"
        events.append(Notice("no_finish_reason", "the answer does not say why it ended"))
        return StopReason.TOOL_CALLS if calls else StopReason.END, ""

    def _worded(self, word: str) -> str:
        message = self._beside.get("finishMessage")
        if not isinstance(message, str) or not message:
            return word
        del self._beside["finishMessage"]
        return f"{word}: {message}"


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
