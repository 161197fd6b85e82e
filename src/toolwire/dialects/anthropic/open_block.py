"""A block of an answer between its start and its stop."""

import msgspec

from toolwire.dialects.anthropic.wire import raw_members
from toolwire.errors import BadInput
from toolwire.messages import Kept
from toolwire.wire.json_access import dump, parse


class OpenBlock:
    """A block that has begun and not ended."""

    __slots__ = ("input", "kept", "kind", "pieces", "raw", "signature")

    def __init__(self, kind: str, raw: bytes) -> None:
        self.kind = kind
        self.raw = raw
        self.kept: Kept | None = None
        self.signature = ""
        self.input = ""
        """Input that came whole with the start; input deltas replace it."""
        self.pieces: list[str] = []

    def merged(self) -> str:
        """A server-side block with the input that was streamed after its start."""
        if not self.pieces:
            return self.raw.decode()
        text = "".join(self.pieces)
        members = raw_members(self.raw)
        try:
            parse(text, "input")
            members["input"] = msgspec.Raw(text.encode())
        except BadInput:
            # Cut by a length stop: what is no JSON can only be carried as a string.
            members["input"] = msgspec.Raw(dump(text).encode())
        return dump(members)
