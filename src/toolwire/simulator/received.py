"""What the simulator was asked, kept for whoever wants to look."""

import asyncio
from collections.abc import Mapping

from toolwire.request import JsonObject
from toolwire.simulator.routes import Route
from toolwire.wire.json_access import parse_object


class Received:
    """One request as it came, and what became of it."""

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
        """Why a vendor would refuse it; empty if it would not."""
        self.left = asyncio.Event()
        """Set when the answer is over, or when the client has gone before."""
        self.finished = False
        """Whether the client was there to the end of the answer."""

    @property
    def json(self) -> JsonObject:
        """The body as an object."""
        return parse_object(self.body, "request")

    def __repr__(self) -> str:
        return f"<{self.method} {self.path}: {self.status} {self.refusal}>"
