"""Addresses of the wire formats: the format, the operation and the model in a path."""

import re

import msgspec

_GEMINI_PATH = re.compile(r"(?P<before>.*?)/models/(?P<model>.+):(?P<verb>[a-zA-Z]+)")
_RAW_PREDICT = frozenset({"rawPredict", "streamRawPredict"})
_ENDINGS = (
    ("/chat/completions", "openai-chat", "answer"),
    ("/responses", "openai-responses", "answer"),
    ("/messages/count_tokens", "anthropic-messages", "count"),
    ("/messages", "anthropic-messages", "answer"),
)
_VERBS = {
    "generateContent": "answer",
    "streamGenerateContent": "stream",
    "countTokens": "count",
    "loadCodeAssist": "load",
    "onboardUser": "onboard",
}


class PathMatch(msgspec.Struct, frozen=True):
    """The wire format of an address, and the operation."""

    dialect: str
    does: str
    """`answer`, `stream` (an answer that streams by its address), `count`, `load`, `onboard`."""
    model: str = ""
    before: str = ""
    """The path before the part that was recognised, such as `/v1`."""


def match_path(path: str) -> PathMatch | None:
    """The operation of a path by its last segments; None for an unknown address."""
    path = path.rstrip("/")
    for ending, dialect, does in _ENDINGS:
        if path.endswith(ending):
            return PathMatch(dialect, does, "", path.removesuffix(ending))
    before, internal, verb = path.rpartition("/v1internal:")
    if internal:
        does = _VERBS.get(verb)
        return PathMatch("code-assist", does, "", before) if does else None
    found = _GEMINI_PATH.fullmatch(path)
    if found is None:
        return None
    if found["verb"] in _RAW_PREDICT:
        return PathMatch("anthropic-messages", "answer", found["model"], found["before"])
    does = _VERBS.get(found["verb"])
    return PathMatch("gemini", does, found["model"], found["before"]) if does else None
