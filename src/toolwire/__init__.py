"""toolwire: one exact tool-calling runtime for every model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolwire.agent.events import (
        AgentEvent,
        ChildEvent,
        Streaming,
        ToolFinished,
        ToolStarted,
        TurnEnd,
        TurnEnded,
    )
    from toolwire.agent.hooks import (
        Allow,
        Ask,
        Blocked,
        CallDecision,
        Change,
        Context,
        Deny,
        EventAnswer,
        Halt,
        HookedCall,
        HookedResult,
        HookEvent,
        Hooks,
    )
    from toolwire.agent.questions import Choice, Confirmation, UserAnswer
    from toolwire.agent.usage import Limits
    from toolwire.codec import Answer, Translated, read_answer, translate
    from toolwire.collect import Collector
    from toolwire.config.telemetry import TelemetrySettings
    from toolwire.errors import (
        BadInput,
        ConnectionFailed,
        ErrorKind,
        IncompleteStream,
        InvalidOutput,
        MalformedStream,
        ProviderError,
        ToolwireError,
        UnknownName,
    )
    from toolwire.events import Finished, ModelEvent, StopReason, TextDelta, Usage
    from toolwire.history import repair
    from toolwire.library.agent import Agent, load_settings
    from toolwire.library.result import NoOutput, Result, TurnFailed
    from toolwire.messages import (
        Media,
        MediaKind,
        Message,
        Origin,
        Refusal,
        ServerBlock,
        Text,
        Thinking,
        ToolCall,
        ToolResult,
    )
    from toolwire.model import Model
    from toolwire.policy import Mode
    from toolwire.request import (
        Effort,
        FreeformTool,
        Loss,
        ModelRequest,
        ModelSettings,
        ServerTool,
        ToolChoice,
        ToolSpec,
    )
    from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput
    from toolwire.tools.typed import tool

__version__ = "0.1.0"

# Names are loaded on first use: `toolwire --version` loads none of them.
_HOMES = {
    "agent.hooks": (
        "Allow",
        "Ask",
        "Blocked",
        "CallDecision",
        "Change",
        "Context",
        "Deny",
        "EventAnswer",
        "Halt",
        "HookEvent",
        "HookedCall",
        "HookedResult",
        "Hooks",
    ),
    "agent.questions": ("Choice", "Confirmation", "UserAnswer"),
    "agent.events": (
        "AgentEvent",
        "ChildEvent",
        "Streaming",
        "ToolFinished",
        "ToolStarted",
        "TurnEnd",
        "TurnEnded",
    ),
    "agent.usage": ("Limits",),
    "policy": ("Mode",),
    "codec": ("Answer", "Translated", "read_answer", "translate"),
    "collect": ("Collector",),
    "config.telemetry": ("TelemetrySettings",),
    "errors": (
        "BadInput",
        "ConnectionFailed",
        "ErrorKind",
        "IncompleteStream",
        "InvalidOutput",
        "MalformedStream",
        "ProviderError",
        "ToolwireError",
        "UnknownName",
    ),
    "events": ("Finished", "ModelEvent", "StopReason", "TextDelta", "Usage"),
    "history": ("repair",),
    "library.agent": ("Agent", "load_settings"),
    "library.result": ("NoOutput", "Result", "TurnFailed"),
    "messages": (
        "Media",
        "MediaKind",
        "Message",
        "Origin",
        "Refusal",
        "ServerBlock",
        "Text",
        "Thinking",
        "ToolCall",
        "ToolResult",
    ),
    "model": ("Model",),
    "request": (
        "Effort",
        "FreeformTool",
        "Loss",
        "ModelRequest",
        "ModelSettings",
        "ServerTool",
        "ToolChoice",
        "ToolSpec",
    ),
    "tools.spec": ("Effect", "Tool", "ToolContext", "ToolFailed", "ToolOutput"),
    "tools.typed": ("tool",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "AgentEvent",
    "Allow",
    "Answer",
    "Ask",
    "BadInput",
    "Blocked",
    "CallDecision",
    "Change",
    "ChildEvent",
    "Choice",
    "Collector",
    "Confirmation",
    "ConnectionFailed",
    "Context",
    "Deny",
    "Effect",
    "Effort",
    "ErrorKind",
    "EventAnswer",
    "Finished",
    "FreeformTool",
    "Halt",
    "HookEvent",
    "HookedCall",
    "HookedResult",
    "Hooks",
    "IncompleteStream",
    "InvalidOutput",
    "Limits",
    "Loss",
    "MalformedStream",
    "Media",
    "MediaKind",
    "Message",
    "Mode",
    "Model",
    "ModelEvent",
    "ModelRequest",
    "ModelSettings",
    "NoOutput",
    "Origin",
    "ProviderError",
    "Refusal",
    "Result",
    "ServerBlock",
    "ServerTool",
    "StopReason",
    "Streaming",
    "TelemetrySettings",
    "Text",
    "TextDelta",
    "Thinking",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolContext",
    "ToolFailed",
    "ToolFinished",
    "ToolOutput",
    "ToolResult",
    "ToolSpec",
    "ToolStarted",
    "ToolwireError",
    "Translated",
    "TurnEnd",
    "TurnEnded",
    "TurnFailed",
    "UnknownName",
    "Usage",
    "UserAnswer",
    "load_settings",
    "read_answer",
    "repair",
    "tool",
    "translate",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"toolwire.{home}"), name)
    globals()[name] = value
    return value
