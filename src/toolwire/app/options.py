"""What a front end asks of a session."""

from pathlib import Path

import msgspec

from toolwire.agent.limits import Limits
from toolwire.app.model_stack import Opened
from toolwire.model import Model
from toolwire.policy.rules import Mode
from toolwire.prompted.style import Choice, ToolStyle
from toolwire.providers._spec import NoAuth, Provider
from toolwire.providers.upstream import Upstream
from toolwire.tools.registry import Registry


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
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


NAME = "own"


class HostOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """Its tools and words are all the model is told: no prompt, notes or surroundings of ours."""

    tools: Registry
    system: str = ""
    model: Opened | None = None
    """Asked in place of the one that is wanted."""
    rules: bool = False
    """The user's rule file counts and keeps answers, and rulings are recorded."""
    temp: Path | None = None
    """Where long outputs are kept; the user's cache if not said."""


def opened(ask: Model) -> Opened:
    """Any callable as a model that can be asked; its price is what it says itself."""
    name = getattr(ask, "__name__", type(ask).__name__)
    provider = Provider(name=NAME, title="Own model", dialect="", base_url="", auth=NoAuth())
    style = Choice(style=ToolStyle.NATIVE, reason="the program brings the model")
    return Opened(ask=ask, provider=provider, model=name, style=style, origin="")
