"""Ids a reader takes: each once in a conversation, and the same whenever it is asked again."""

import hashlib
import re

from toolwire.errors import BadInput
from toolwire.history.rules import HistoryRules

_SHORT = "0123456789abcdefghijklmnopqrstuvwxyz"
_PRINTABLE = "".join(map(chr, range(33, 127)))
_SUFFIX = 8
_SPARE_TRIES = 1000


class CallIds:
    """Gives each call its id. Only earlier calls count, so that what is appended changes nothing.

    A prompt cache holds as long as the beginning of a conversation stays the same.
    """

    def __init__(self, rules: HistoryRules) -> None:
        self._rules = rules
        self._allowed = re.compile(
            f"[{rules.id_characters}]*" if rules.id_characters else "(?s:.*)"
        )
        self._digits = self._accepted(_SHORT) or self._accepted(_PRINTABLE)
        self._taken: set[str] = set()
        self._turns: dict[str, int] = {}

    def fits(self, call_id: str) -> bool:
        """Whether the reader takes the id as it is."""
        rules = self._rules
        return (
            call_id != ""
            and (not rules.id_limit or len(call_id) <= rules.id_limit)
            and (not rules.id_length or len(call_id) == rules.id_length)
            and self._allowed.fullmatch(call_id) is not None
        )

    def take(self, call_id: str) -> str:
        """The id for the next call that came with this one."""
        wanted = call_id
        turn = self._turns.get(call_id, 1)
        tries = 0
        while wanted in self._taken or not self.fits(wanted):
            if tries > len(self._taken) + _SPARE_TRIES or not self._digits:
                raise BadInput(f'no id left that the reader takes for "{call_id}"')
            wanted = self._derived(call_id, turn)
            turn += 1
            tries += 1
        self._turns[call_id] = turn
        self._taken.add(wanted)
        return wanted

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
        return "".join(letter for letter in letters if self._allowed.fullmatch(letter))
