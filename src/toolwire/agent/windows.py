"""What a vendor says of its limits when a request was too long."""

import re

import msgspec

_NUMBER = r"(\d[\d,_.]*\d|\d)"
_WINDOW = (
    rf"\d(?: tokens)? > {_NUMBER}",
    rf"maximum number of (?:input )?tokens allowed \(?{_NUMBER}",
    rf"(?:context|prompt) (?:length|window|size|limit)(?: is| of)? \(?{_NUMBER}",
    rf"with {_NUMBER} maximum context",
    rf'"n_ctx"\s*:\s*{_NUMBER}',
)
_ASKED = (
    rf"\({_NUMBER} in (?:the messages|your prompt)",
    rf"contains (?:at least )?{_NUMBER} (?:input )?tokens",
    rf"(?:too long|limit): {_NUMBER}(?: tokens)? [>+]",
    rf"input token count \(?{_NUMBER}\)? exceeds",
    rf"(?:resulted in|requested(?: about)?) {_NUMBER} tokens",
    rf"(?:prompt|requested) tokens \({_NUMBER}\) exceed",
    rf'"n_prompt_tokens"\s*:\s*{_NUMBER}',
)
_SMALLEST = 256
_LARGEST = 100_000_000


class Told(msgspec.Struct, frozen=True):
    """The figures in a refusal; 0 where it names none."""

    window: int = 0
    asked: int = 0


def told_by(words: str) -> Told:
    """What a refusal says the model takes, and what it was given."""
    return Told(_first(_WINDOW, words), _first(_ASKED, words))


def _first(patterns: tuple[str, ...], words: str) -> int:
    for pattern in patterns:
        # Read when they are needed: few sessions ever meet such a refusal.
        for found in re.finditer(pattern, words, re.IGNORECASE):
            number = int(re.sub(r"\D", "", found.group(1)))
            if _SMALLEST <= number <= _LARGEST:
                return number
    return 0
