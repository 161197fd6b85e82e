"""What a front end asks of a session."""

from pathlib import Path

import msgspec

from toolwire.agent.limits import Limits
from toolwire.agent.rules import Mode
from toolwire.providers.upstream import Upstream


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is empty is left to the settings."""

    model: str = ""
    provider: str = ""
    base_url: str = ""
    key: str = ""
    tool_style: str = ""
    upstream: Upstream | None = None
    mode: Mode | None = None
    allowed: tuple[str, ...] = ()
    session: str = ""
    """The id of a session to go on with."""
    latest: bool = False
    """Go on with the session last worked on in this folder."""
    system: Path | None = None
    limits: Limits | None = None
    interactive: bool = False
    kept: bool = True
    """Whether the session is written to disk."""

    def __repr__(self) -> str:
        return f"Wanted(model={self.model!r}, session={self.session!r})"
