"""Loop detection: repeated calls, repeated results, repeated text."""

import re
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise

import msgspec

from toolwire.messages import Message, ToolCall

SAME_CALL = 5
"""Equal calls in a row that are a loop, whatever their results."""
SAME_RESULT = 3
"""Equal calls in a row with equal results that are a loop: the model is warned."""
LONGEST_CYCLE = 3
_CHUNK = 50
_TIMES = 10
_NEAR = 1.5 * _CHUNK
_KEPT_TEXT = 5_000
_ARGUMENTS_SHOWN = 500
_FENCE = "```"
_WORD = re.compile(r"(?:^|(?<=\s))\S|[^\x00-\x7f]")
"""Start of a possible repeat: a word, or any letter of a script without spaces."""


class Suspicion(msgspec.Struct, frozen=True, kw_only=True):
    """A suspected loop, described for the model and the user."""

    what: str
    certain: bool = False
    """The model was already warned and continues; stop it."""

    @property
    def note(self) -> str:
        """The first warning for the model."""
        return (
            f"System: Potential loop detected. Details: {self.what}. Please take a step back and "
            "confirm you're making forward progress. If not, analyze your previous actions and "
            "rethink how you're approaching the problem. Avoid repeating the same tool calls or "
            "responses without new results."
        )


class CallLoops:
    """Detects repeats among the calls of one turn, in cycles of up to three calls."""

    def __init__(self) -> None:
        self._calls: list[str] = []
        self._answered: list[str] = []
        self._warned_at: int | None = None

    def before(self, calls: Sequence[ToolCall]) -> Suspicion | None:
        """The loop that these requested calls continue after a warning, if any."""
        self._calls += (_signature(call) for call in calls)
        period, times = _cycle(self._calls)
        if self._warned_at is None:
            return None
        if times < SAME_RESULT or len(self._calls) - period * times >= self._warned_at:
            self._warned_at = None
            return None
        same = _cycle(self._answered)
        stuck = same[0] == period and same[1] >= SAME_CALL
        if times > SAME_CALL and (stuck or times >= 2 * SAME_CALL):
            return Suspicion(what=_words(calls, period, times), certain=True)
        return None

    def after(self, calls: Sequence[ToolCall], answers: Message) -> Suspicion | None:
        """The loop that these calls and results complete, if any; once for each loop."""
        results = {result.call_id: result for result in answers.results}
        for call in calls:
            result = results.get(call.id)
            answer = "" if result is None else f"{result.is_error}{result.text}"
            self._answered.append(_signature(call) + _digest(answer))
        if self._warned_at is not None:
            return None
        period, times = _cycle(self._calls)
        same_period, same_times = _cycle(self._answered)
        if same_times >= SAME_RESULT or times >= SAME_CALL:
            self._warned_at = len(self._calls)
            if times >= SAME_CALL:
                return Suspicion(what=_words(calls, period, times))
            return Suspicion(what=_words(calls, same_period, same_times, ", with equal results"))
        return None


class TextLoops:
    """Detects text that repeats within one answer as it streams."""

    def __init__(self) -> None:
        self._text = ""
        self._dropped = 0
        self._at = 0
        self._places: dict[str, list[int]] = {}
        self._in_code = False
        self._begun = False

    def add(self, text: str) -> Suspicion | None:
        """Add text; returns the loop as soon as one is found."""
        if not self._begun and text.strip():
            self._begun = True
            # An answer in JSON: rows of equal values are honest, and the output limit ends it.
            self._in_code = text.lstrip().startswith("{")
        fences = (self._text[-2:] + text).count(_FENCE)
        if fences:
            # Code, tables and lists repeat themselves for good reasons.
            self._in_code ^= fences % 2 == 1
            self._forget()
            return None
        if self._in_code:
            return None
        self._text += text
        for anchor in _WORD.finditer(self._text, self._at):
            at = anchor.start()
            if at + _CHUNK > len(self._text):
                break
            self._at = at + 1
            chunk = self._text[at : at + _CHUNK]
            if self._repeats(chunk, at + self._dropped):
                return Suspicion(what=f"Repeated text: {chunk.strip()!r}")
        else:
            # Without it, all of a long word is searched again with every letter.
            self._at = len(self._text)
        self._trim()
        return None

    def _repeats(self, chunk: str, at: int) -> bool:
        places = self._places.setdefault(chunk, [])
        places.append(at)
        if len(places) < _TIMES:
            return False
        recent = places[-_TIMES:]
        near = (recent[-1] - recent[0]) / (_TIMES - 1) <= _NEAR
        return near and not _ruled(chunk) and self._periodic(recent)

    def _periodic(self, places: list[int]) -> bool:
        """Whether everything between these occurrences repeats too: numbered items do not."""
        starts = [place - self._dropped for place in places]
        between = [self._text[start:end] for start, end in pairwise(starts)]
        return any(between[period:] == between[:-period] for period in range(1, LONGEST_CYCLE + 1))

    def _trim(self) -> None:
        if len(self._text) < 2 * _KEPT_TEXT:
            return
        extra = len(self._text) - _KEPT_TEXT
        self._text = self._text[extra:]
        self._dropped += extra
        self._at = max(0, self._at - extra)
        self._places = {
            chunk: places for chunk, places in self._places.items() if places[-1] >= self._dropped
        }

    def _forget(self) -> None:
        self._dropped += len(self._text)
        self._text, self._at = "", 0
        self._places.clear()


def _ruled(chunk: str) -> bool:
    """Whether a chunk is a table row or a divider."""
    stripped = chunk.strip()
    return len(set(stripped)) <= 3 or "|" in stripped or stripped.startswith(("- ", "* ", "+--"))


def _cycle(items: Sequence[str]) -> tuple[int, int]:
    """The shortest period at the end that repeats most, and its count."""
    best = (1, 1)
    for period in range(1, LONGEST_CYCLE + 1):
        pattern = items[-period:]
        times = 1
        while (
            len(items) >= (times + 1) * period
            and items[len(items) - (times + 1) * period : len(items) - times * period] == pattern
        ):
            times += 1
        if times * period > best[0] * best[1] and times > 1:
            best = (period, times)
    return best


def _words(calls: Sequence[ToolCall], period: int, times: int, more: str = "") -> str:
    call = calls[-1]
    arguments = call.arguments or "{}"
    if len(arguments) > _ARGUMENTS_SHOWN:
        arguments = f"{arguments[:_ARGUMENTS_SHOWN]}…"
    cycle = "" if period == 1 else f", in a cycle of {period} calls"
    return (
        f"Repeated tool call: {call.name} with arguments {arguments} ({times} times{cycle}{more})"
    )


def _signature(call: ToolCall) -> str:
    return _digest(f"{call.name}:{call.arguments}")


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
