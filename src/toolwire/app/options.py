"""Options of a session, and of one turn."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolwire.agent.questions import Approver
from toolwire.agent.structured import OutputSchema
from toolwire.agent.usage import Limits
from toolwire.app.model_stack import Opened
from toolwire.app.servers import NO_CHOICE, ServerChoice
from toolwire.messages import Message
from toolwire.model import Model
from toolwire.policy import Mode
from toolwire.prompted import StyleChoice, ToolStyle
from toolwire.providers._spec import NoAuth, Provider
from toolwire.providers.custom import Upstream
from toolwire.request import ModelSettings
from toolwire.tools.registry import Registry
from toolwire.tools.spec import EditorFiles, Restricts

if TYPE_CHECKING:
    from toolwire.extensions.tool_limits import OnlyTools


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options from a front end; empty ones fall back to the settings."""

    model: str = ""
    provider: str = ""
    base_url: str = ""
    key: str = ""
    tool_style: str = ""
    upstream: Upstream | None = None
    mode: Mode | None = None
    allowed: tuple[str, ...] = ()
    session: str = ""
    """The id of a session to continue."""
    ask_again: bool = False
    """Calls that waited for the user's answer when the process ended are asked about again."""
    latest: bool = False
    """Continue the most recent session of this folder."""
    system: Path | str | None = None
    """Replaces the system prompt: the file that contains it, or its text."""
    append_system: str = ""
    """Added at the end of the system prompt."""
    limits: Limits | None = None
    temperature: float | None = None
    folders: tuple[Path, ...] = ()
    """Folders of the workspace besides the working directory."""
    interactive: bool = False
    source: str = ""
    """Why the session opens, for hooks: `clear` after another one; empty for the usual reasons."""
    servers: ServerChoice = NO_CHOICE
    files: EditorFiles | None = None
    """Text files of the editor that the session belongs to."""
    live_seconds: float = 1.0
    """Between two pieces of a command's live output."""
    hidden: tuple[Path, ...] = ()
    """Files and folders that no tool may read or write."""
    container: str = ""
    """A container in which commands run; the workspace has the same path in it."""
    temp: Path | None = None
    """Where long outputs are stored; the user's cache if None."""
    kept: bool = True
    """Whether the session is written to disk."""
    may_forget: bool = False
    """Go on without storing a new session, with a notice, if it cannot be written."""
    output: OutputSchema | None = None
    """What every final answer has to fit."""

    def __repr__(self) -> str:
        return f"SessionOptions(model={self.model!r}, session={self.session!r})"


NAME = "own"


class HostOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """What a host program supplies in place of the coding agent's prompt and tools."""

    tools: Registry
    system: str = ""
    model: Opened | None = None
    """Used in place of the configured model."""
    messages: tuple[Message, ...] = ()
    """The conversation that a new session starts from."""
    deps: Any = None
    """For the tools, until a turn brings its own."""
    restricts: Restricts | None = None
    """Rules against paths besides those of the session."""
    rules: bool = False
    """Whether the user's rule file applies and stores answers, and rulings are recorded."""
    temp: Path | None = None
    """Where long outputs are stored; the user's cache if None."""


def opened(ask: Model) -> Opened:
    """Wraps any callable as a model; its cost is what its usage reports."""
    name = getattr(ask, "__name__", type(ask).__name__)
    provider = Provider(name=NAME, title="Host model", dialect="", base_url="", auth=NoAuth())
    style = StyleChoice(style=ToolStyle.NATIVE, reason="the host program supplies the model")
    return Opened(client=ask, provider=provider, model=name, style=style, origin="", reask=False)


class TurnOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn does differently; the session's own apply where nothing is set."""

    limits: Limits | None = None
    model_settings: ModelSettings | None = None
    approver: Approver | None = None
    output: OutputSchema | None = None
    """What its final answer has to fit."""
    deps: Any = None
    """For its tools."""
    model: str = ""
    """`provider/model`, or a short name; the session's own is used again afterwards."""
    only: "OnlyTools | None" = None
    """The only tools of the turn."""


AS_OPENED = TurnOptions()
