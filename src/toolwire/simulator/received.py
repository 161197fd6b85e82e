"""Requests that the simulator received."""

import asyncio
import re
from collections.abc import Mapping

import msgspec

from toolwire.request import JsonObject
from toolwire.wire.json_access import parse_object

_GEMINI_PATH = re.compile(r"/models/(?P<model>.+):(?P<verb>[a-zA-Z]+)$")
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


class Route(msgspec.Struct, frozen=True):
    """The wire format of an address, and the operation."""

    dialect: str
    does: str
    """`answer`, `stream` (an answer that streams by its address), `count`, `load`, `onboard`."""
    model: str = ""


def find(path: str) -> Route | None:
    """Returns the route of a path by its last segments; None for an unknown address."""
    path = path.rstrip("/")
    for ending, dialect, does in _ENDINGS:
        if path.endswith(ending):
            return Route(dialect, does)
    _, internal, verb = path.rpartition("/v1internal:")
    if internal:
        does = _VERBS.get(verb)
        return Route("code-assist", does) if does else None
    found = _GEMINI_PATH.search(path)
    if found is None:
        return None
    if found["verb"] in _RAW_PREDICT:
        return Route("anthropic-messages", "answer", found["model"])
    does = _VERBS.get(found["verb"])
    return Route("gemini", does, found["model"]) if does else None


class Received:
    """One request as received, and how it was answered."""

    def __init__(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        """Names in lower case."""
        self.body = body
        self.route: Route | None = None
        self.status = 0
        """The status it was answered with."""
        self.refusal = ""
        """Why a vendor would reject it; empty if it would not."""
        self.left = asyncio.Event()
        """Set when the answer is complete or the client disconnected."""
        self.finished = False
        """Whether the client stayed connected until the end."""

    @property
    def json(self) -> JsonObject:
        """Returns the body as an object."""
        return parse_object(self.body, "request")

    def __repr__(self) -> str:
        return f"<{self.method} {self.path}: {self.status} {self.refusal}>"
