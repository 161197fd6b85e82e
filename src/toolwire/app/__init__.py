"""Composition root: builds sessions from settings."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolwire.app.builder import open_session
    from toolwire.app.model_stack import Opened, open_model
    from toolwire.app.options import SessionOptions
    from toolwire.app.session import AgentSession
    from toolwire.app.toolbox import Toolbox, open_toolbox

# Names are loaded on first use: opening a model does not load the tools.
_HOMES = {
    "model_stack": ("Opened", "open_model"),
    "builder": ("open_session",),
    "session": ("AgentSession",),
    "options": ("SessionOptions",),
    "toolbox": ("Toolbox", "open_toolbox"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AgentSession",
    "Opened",
    "SessionOptions",
    "Toolbox",
    "open_model",
    "open_session",
    "open_toolbox",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"toolwire.app.{home}"), name)
    globals()[name] = value
    return value
