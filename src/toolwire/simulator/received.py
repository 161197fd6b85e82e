"""Requests that the simulator received."""

import asyncio
from collections.abc import Mapping

from toolwire.dialects.paths import PathMatch
from toolwire.request import JsonObject
from toolwire.wire.json_access import parse_object


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
        self.route: PathMatch | None = None
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
