"""Rules and result of a repair, and the drafts of messages that it works on."""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple, TypeVar

import msgspec

from toolwire.errors import BadInput
from toolwire.messages import Kept, Loss, Message, Part, Role, ToolCall, ToolResult


class HistoryRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules of a reader for a conversation."""

    id_characters: str = ""
    """Characters allowed in a call id, as inside a regular expression's brackets; empty for any."""
    id_limit: int = 0
    """Longest id; 0 for any."""
    id_length: int = 0
    """Exact length of an id; 0 for any."""
    alternate: bool = False
    """User and assistant must alternate: neighbours of one role are merged."""
    user_first: bool = False
    """The first message that is not a system message must be the user's."""
    results_first: bool = True
    """All results of a message precede its other parts. Gemini's may be followed each by
    what belongs to it, such as the contents of the files a call read; Anthropic answers 400 then.
    """
    thinking_leads: bool = False
    """What sealed thinking led to must follow it: at the end of a turn it loses its seal. Anthropic
    and Responses answer 400 otherwise.
    """


class Repaired(msgspec.Struct, frozen=True):
    """The repaired conversation; without changes it is the original."""

    messages: tuple[Message, ...]
    changes: tuple[Loss, ...] = ()
    """For the user; their paths are those of the input."""


P = TypeVar("P", bound=Part)


class Position(NamedTuple):
    """A position in the input."""

    message: int
    part: int | None = None

    def __str__(self) -> str:
        """The path shown to the user."""
        message = f"messages[{self.message}]"
        return message if self.part is None else f"{message}.parts[{self.part}]"


class PlacedPart(NamedTuple):
    """A part and its position in the input."""

    position: Position
    part: Part


class PendingCall:
    """A call and its result, once found."""

    __slots__ = (
        "call",
        "found_behind",
        "found_in",
        "position",
        "raw_id",
        "result",
        "result_position",
    )

    def __init__(self, call: ToolCall, raw_id: str, position: Position) -> None:
        self.call = call
        self.raw_id = raw_id
        """The id in the input, which its result refers to."""
        self.position = position
        self.result: ToolResult | None = None
        self.result_position = position
        self.found_in: Draft | None = None
        self.found_behind = False
        """Whether other parts precede the result in its message."""


class Draft:
    """A message during the repair. Results are removed from `parts` while calls are paired."""

    __slots__ = ("kept", "parts", "position", "role", "slots", "takes")

    def __init__(self, role: Role, position: Position, parts: Iterable[PlacedPart] = ()) -> None:
        self.role: Role = role
        self.position = position
        self.parts = list(parts)
        self.kept: Kept | None = None
        self.slots: list[PendingCall] = []
        """The calls in `parts`, in order."""
        self.takes: list[PendingCall] = []
        """The calls whose results were in this message, in that order."""


class Report:
    """Collects the changes, reported in the order of the conversation."""

    def __init__(self) -> None:
        self._changes: list[tuple[int, Loss]] = []

    def add(self, position: Position, what: str, why: str) -> None:
        """Adds a change."""
        self._changes.append((position.message, Loss(str(position), what, why)))

    def done(self) -> tuple[Loss, ...]:
        """All of them, by message."""
        return tuple(change for _, change in sorted(self._changes, key=lambda entry: entry[0]))


def without_seal(part: P) -> P:
    """The part without its seal."""
    return msgspec.structs.replace(part, seal=None)


def has_members(kept: Kept | None) -> bool:
    """Whether wire members would be lost with it."""
    return kept is not None and kept.fields != "{}"


_SHORT = "0123456789abcdefghijklmnopqrstuvwxyz"
_PRINTABLE = "".join(map(chr, range(33, 127)))
_SUFFIX = 8
_SPARE_TRIES = 1000


class CallIds:
    """Assigns the ids of calls. Only earlier calls count, so that appended ones change nothing.

    A prompt cache holds as long as the beginning of a conversation stays the same.
    """

    def __init__(self, rules: HistoryRules) -> None:
        self._rules = rules
        self._allowed, self._digits = _alphabet(rules.id_characters)
        self._taken: set[str] = set()
        self._turns: dict[str, int] = {}

    def fits(self, call_id: str) -> bool:
        """Whether the reader accepts the id."""
        rules = self._rules
        return (
            call_id != ""
            and (not rules.id_limit or len(call_id) <= rules.id_limit)
            and (not rules.id_length or len(call_id) == rules.id_length)
            and self._allowed.fullmatch(call_id) is not None
        )

    def take(self, call_id: str) -> str:
        """The id for the next call with this id in the input."""
        chosen = call_id
        turn = self._turns.get(call_id, 1)
        tries = 0
        while chosen in self._taken or not self.fits(chosen):
            if tries > len(self._taken) + _SPARE_TRIES or not self._digits:
                raise BadInput(f'no id left that the reader takes for "{call_id}"')
            chosen = self._derived(call_id, turn)
            turn += 1
            tries += 1
        self._turns[call_id] = turn
        self._taken.add(chosen)
        return chosen

    def _derived(self, call_id: str, turn: int) -> str:
        rules = self._rules
        seed = f"{turn}:{call_id}"
        if rules.id_length:
            return self._hash(seed, rules.id_length)
        joint = self._accepted("_") or self._accepted("-")
        body = "".join(
            letter if self._accepted(letter) else joint for letter in call_id
        ) or self._accepted("call")
        suffix = joint + self._hash(seed, _SUFFIX)
        if not rules.id_limit:
            return body + suffix
        return body[: max(rules.id_limit - len(suffix), 0)] + suffix[-rules.id_limit :]

    def _hash(self, seed: str, length: int) -> str:
        base = len(self._digits)
        digits: list[str] = []
        number = 0
        room = 0
        while len(digits) < length:
            if room < base:
                block = f"{len(digits)}:{seed}".encode("utf-8", "surrogatepass")
                number = int.from_bytes(hashlib.sha256(block).digest()[:16])
                room = 1 << 128
            number, digit = divmod(number, base)
            room //= base
            digits.append(self._digits[digit])
        return "".join(digits)

    def _accepted(self, letters: str) -> str:
        return _accepted(letters, self._allowed)


@cache
def _alphabet(characters: str) -> tuple[re.Pattern[str], str]:
    """The pattern of ids of these characters, and the characters that new ids are made of.

    Cached: it takes longer than the repair of a short conversation, and there are few rules.
    """
    allowed = re.compile(f"[{characters}]*" if characters else "(?s:.*)")
    return allowed, _accepted(_SHORT, allowed) or _accepted(_PRINTABLE, allowed)


def _accepted(letters: str, allowed: re.Pattern[str]) -> str:
    return "".join(letter for letter in letters if allowed.fullmatch(letter))
