"""What a reply may claim: sentences about changes that no call made are held back."""

import re
from collections.abc import Iterator, Sequence

from toolwire.embedded.small.past import Ran, RequestKind, excerpt, listed
from toolwire.wire.json_access import object_in

_VERB = (
    r"(?:created|added|wrote|written|saved|generated|made|deleted|removed|erased|moved|renamed"
    r"|copied|duplicated|changed|updated|modified|edited|fixed|corrected|repaired|replaced|set"
    r"|inserted|appended|adjusted|bumped|increased|decreased|doubled|swapped|refactored"
    r"|implemented|switched|converted|rewrote|rewritten|recorded|stored|applied|cleaned up"
    r"|completed|dropped|improved|reverted|restored|cleared|emptied|merged|split|sorted|installed)"
)
_LATELY = r"(?:\s+\w+ly|\s+(?:now|also|just|then|both|all|been))*"
_own = re.compile(
    rf"\b(?:I|we)\b(?:\s+have|\s+had|'ve|’ve)?{_LATELY}\s+{_VERB}\b"
    rf"|\bsuccessfully\s+{_VERB}\b|\b{_VERB}\s+successfully\b",
    re.IGNORECASE,
).search
_perfect = re.compile(
    rf"\b(?:has|have)\b{_LATELY}\s+been{_LATELY}\s+({_VERB})\b"
    rf"|\b(?:is|are|was|were)\b{_LATELY}\s+(?:collected|gathered|combined|copied|moved|merged"
    r"|extracted|saved)\s+(?:in|into|to)\s+\S+\.\w+",
    re.IGNORECASE,
).search
_passive = re.compile(
    rf"\b(?:has|have|had|was|were|been|gets?|got)\b{_LATELY}\s+{_VERB}\b"
    rf"|^\W*(?:(?:done|ok|okay|sure|great|yes)\W+)*{_VERB}\b"
    r"|\b(?:is|are) now\b|\bnow (?:\w+s|have|has|do)\b|\bno longer\b"
    r"|^\W*(?:all )?(?:done|finished|completed)\b|\b(?:is|are) (?:done|complete|finished)\b",
    re.IGNORECASE,
).search
_verbs = re.compile(_VERB).findall
_denial = re.compile(
    r"\b(?:not|never|no|none|nothing|cannot|unable|denied|declined|refused|cancelled|failed|would"
    r"|should|could|can|may|might|if|unless|must|need|neither)\b|n['’]t\b",
    re.IGNORECASE,
).search
_sentence = re.compile(r"(?<=[.!?])\s+|\n+")


def not_allowed(denied: Sequence[Ran]) -> str:
    """Closing words after calls that were not allowed."""
    names: list[str] = []
    for it in denied:
        given = object_in(it.call.arguments) or {}
        names.append(f"`{given['command']}`" if "command" in given else it.call.name)
    return f"{listed(names)} was not allowed and did not run, so I stopped there."


class Honesty:
    """Holds back sentences of a reply that claim a change; what ran is said instead."""

    def __init__(self, ran: Sequence[Ran], kind: RequestKind | None) -> None:
        self._commands = [
            f"`{(object_in(it.call.arguments) or {}).get('command', '')}`"
            for it in ran
            if it.call.name == "run_shell_command" and it.succeeded
        ]
        printed = [it.output for it in ran if it.call.name == "run_shell_command" and it.output]
        self._printed = f"; it printed: {excerpt(printed[-1])}" if printed else ""
        self._kind = kind
        self._results = " ".join(it.result.text for it in ran).lower()
        self._open = ""
        self.held_back = False

    def feed(self, text: str) -> str:
        """The sentences that are complete and claim nothing."""
        *ready, self._open = _split(self._open + text)
        return "".join(filter(self._holds, ready))

    def close(self) -> str:
        """The last sentence, and what ran if one was held back."""
        last, self._open = self._open, ""
        words = last if self._holds(last) else ""
        if not self.held_back:
            return words
        instead = "Nothing was changed: no call changed a file."
        if self._commands:
            instead = f"Ran {listed([*dict.fromkeys(self._commands)])}{self._printed}."
        return f"{words.rstrip()} {instead}".lstrip()

    def _holds(self, sentence: str) -> bool:
        claims = _own(sentence) is not None
        found = _perfect(sentence) if self._kind is RequestKind.QUESTION else None
        if self._kind is RequestKind.COMMAND:
            found = _passive(sentence)
        if found is not None and not claims:
            # A reply may repeat what a result says: "the crash has been fixed in 2.1".
            claims = not any(verb in self._results for verb in _verbs(found[0].lower()))
        if not claims or _denial(sentence):
            return True
        self.held_back = True
        return False


def _split(text: str) -> Iterator[str]:
    start = 0
    for found in _sentence.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]
