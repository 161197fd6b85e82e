"""What a program that holds a session itself brings, in place of the coding agent's parts."""

from pathlib import Path

import msgspec

from toolwire.app.models import Opened
from toolwire.model import Model
from toolwire.prompted.style import Choice, ToolStyle
from toolwire.providers._spec import NoAuth, Provider
from toolwire.tools.registry import Registry

NAME = "own"


class Own(msgspec.Struct, frozen=True, kw_only=True):
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
