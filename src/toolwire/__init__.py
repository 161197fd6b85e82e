"""toolwire: one exact tool-calling runtime for every model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolwire.answers import Answer, read_answer
    from toolwire.collect import Collector
    from toolwire.errors import (
        BadInput,
        ConnectionFailed,
        ErrorKind,
        IncompleteStream,
        MalformedStream,
        ProviderError,
        ToolwireError,
        UnknownName,
    )
    from toolwire.events import Finished, ModelEvent, StopReason, Usage
    from toolwire.history import repair
    from toolwire.messages import (
        Media,
        Message,
        Origin,
        Refusal,
        ServerBlock,
        Text,
        Thinking,
        ToolCall,
        ToolResult,
    )
    from toolwire.request import FreeformTool, Loss, ModelRequest, ServerTool, ToolChoice, ToolSpec
    from toolwire.translation import Translated, translate

__version__ = "0.1.0"

# Names are loaded when first used: `toolwire --version` pays for none of them.
_HOMES = {
    "answers": ("Answer", "read_answer"),
    "collect": ("Collector",),
    "errors": (
        "BadInput",
        "ConnectionFailed",
        "ErrorKind",
        "IncompleteStream",
        "MalformedStream",
        "ProviderError",
        "ToolwireError",
        "UnknownName",
    ),
    "events": ("Finished", "ModelEvent", "StopReason", "Usage"),
    "history": ("repair",),
    "messages": (
        "Media",
        "Message",
        "Origin",
        "Refusal",
        "ServerBlock",
        "Text",
        "Thinking",
        "ToolCall",
        "ToolResult",
    ),
    "request": ("FreeformTool", "Loss", "ModelRequest", "ServerTool", "ToolChoice", "ToolSpec"),
    "translation": ("Translated", "translate"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Answer",
    "BadInput",
    "Collector",
    "ConnectionFailed",
    "ErrorKind",
    "Finished",
    "FreeformTool",
    "IncompleteStream",
    "Loss",
    "MalformedStream",
    "Media",
    "Message",
    "ModelEvent",
    "ModelRequest",
    "Origin",
    "ProviderError",
    "Refusal",
    "ServerBlock",
    "ServerTool",
    "StopReason",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolChoice",
    "ToolResult",
    "ToolSpec",
    "ToolwireError",
    "Translated",
    "UnknownName",
    "Usage",
    "read_answer",
    "repair",
    "translate",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"toolwire.{home}"), name)
    globals()[name] = value
    return value
