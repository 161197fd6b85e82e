"""Every setting: its type, default, meaning, and whether a project may set it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec

from toolwire import providers
from toolwire.agent.usage import Limits
from toolwire.compaction.plan import CompressionRules
from toolwire.config.acp import AcpSettings, IdeSettings
from toolwire.config.extensions import HookSettings, SkillSettings
from toolwire.config.gateway import GatewaySettings
from toolwire.config.telemetry import TelemetrySettings
from toolwire.context import MemorySettings
from toolwire.errors import UnknownName
from toolwire.extensions.settings import AgentSettings, CheckpointSettings
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider
from toolwire.request import Reasoning
from toolwire.setting import Count, ModelName, StoreUrl, setting
from toolwire.tools.spec import McpSettings, ToolSettings

if TYPE_CHECKING:
    from toolwire.mcp.entry import Configured
else:
    # Loaded only where a server is configured.
    Configured = Any


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Session storage."""

    store: Annotated[
        StoreUrl,
        setting(
            "Where sessions are stored: empty for files, or a PostgreSQL server "
            "(`postgresql://user@host/database`; its password is read from `PGPASSFILE` or "
            "`PGPASSWORD`)."
        ),
    ] = ""
    keep_days: Annotated[Count, setting("Days an unused session is kept; 0 means forever.")] = 0


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Many tasks at once."""

    keep_days: Annotated[
        Count,
        setting(
            "Days an unused batch is kept, with its results and its rows and sessions on a server; "
            "0 means forever."
        ),
    ] = 0


KeyNames: TypeAlias = tuple[
    Annotated[
        str,
        msgspec.Meta(
            pattern=r"^(ctrl-|alt-|shift-)*([a-z0-9]|[a-z]{2,9}|f[0-9]{1,2})"
            r"( (ctrl-|alt-|shift-)*([a-z0-9]|[a-z]{2,9}|f[0-9]{1,2}))?$",
            extra={"expected": 'a key such as "ctrl-o", "alt-enter" or "ctrl-x ctrl-e"'},
        ),
    ],
    ...,
]


class KeySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of the terminal app; an empty list removes one."""

    send: Annotated[
        KeyNames, setting("Send; while the model works, it reads it at its next step.")
    ] = ("enter",)
    new_line: Annotated[KeyNames, setting("Begin a new line; `\\` before Enter does too.")] = (
        "alt-enter",
        "shift-enter",
        "ctrl-j",
    )
    complete: Annotated[KeyNames, setting("Complete a command or a name.")] = ("tab",)
    queue: Annotated[KeyNames, setting("While it works: keep the message for after the turn.")] = (
        "tab",
    )
    stop: Annotated[KeyNames, setting("While it works: stop the turn.")] = ("escape",)
    rewind: Annotated[KeyNames, setting("Twice, if nothing is written: go back to a turn.")] = (
        "escape",
    )
    interrupt: Annotated[
        KeyNames, setting("Stop the turn, or clear the composer; twice: leave.")
    ] = ("ctrl-c",)
    leave: Annotated[KeyNames, setting("Leave, if nothing is written.")] = ("ctrl-d",)
    back: Annotated[
        KeyNames, setting("Line above; on the first line the queued messages, then the history.")
    ] = ("up",)
    forward: Annotated[KeyNames, setting("Line below; on the last line the later history.")] = (
        "down",
    )
    search: Annotated[KeyNames, setting("Search what was written in this folder.")] = ("ctrl-r",)
    mode: Annotated[KeyNames, setting("Next approval mode: ask, auto_edit, plan.")] = ("shift-tab",)
    transcript: Annotated[KeyNames, setting("The whole session, to scroll and search.")] = (
        "ctrl-o",
    )
    background: Annotated[
        KeyNames, setting("While it works: let the running command go on in the background.")
    ] = ("ctrl-b",)
    panel: Annotated[KeyNames, setting("Show the whole plan above the composer, or hide it.")] = (
        "ctrl-t",
    )
    repaint: Annotated[
        KeyNames, setting("Clear the screen and print its last lines again at this width.")
    ] = ("ctrl-l",)
    image: Annotated[KeyNames, setting("Attach the picture in the clipboard.")] = (
        "ctrl-v",
        "alt-v",
    )
    editor: Annotated[KeyNames, setting("Write in `$VISUAL` or `$EDITOR`.")] = ("ctrl-g",)
    copy: Annotated[KeyNames, setting("Copy the last answer.")] = ("ctrl-y",)
    suspend: Annotated[KeyNames, setting("Suspend; `fg` goes on.")] = ("ctrl-z",)


class Ui(msgspec.Struct, frozen=True, kw_only=True):
    """The terminal app."""

    theme: Annotated[
        Literal["auto", "dark", "light", "ansi", "blue-orange", "blue-orange-light", "none"],
        setting("Colours; ansi uses only the terminal's own palette."),
    ] = "auto"
    screen: Annotated[
        Literal["inline", "full"],
        setting("inline: what is finished is in the terminal's scrollback; full: full screen."),
    ] = "inline"
    diff: Annotated[
        Literal["auto", "unified", "split"],
        setting("Layout of diffs; auto: both sides beside each other from 140 columns."),
    ] = "auto"
    wrap: Annotated[
        Literal["words", "terminal"],
        setting("Who breaks lines of prose; terminal: a copied paragraph is one line."),
    ] = "words"
    links: Annotated[
        Literal["auto", "always", "never"],
        setting("Links that the terminal opens (OSC 8); auto: in terminals known to have them."),
    ] = "auto"
    thinking: Annotated[
        Literal["headline", "shown", "hidden"],
        setting("What stays of a thought, which is seen while it is written; hidden: neither."),
    ] = "headline"
    verbose: Annotated[bool, setting("Show results of calls and thoughts whole.")] = False
    keys: Annotated[Literal["emacs", "vi"], setting("Keys of the composer.")] = "emacs"
    title: Annotated[bool, setting("Set the title of the terminal.")] = True
    notify: Annotated[
        bool,
        setting("Notify of questions and ends of long turns while the terminal is not focused."),
    ] = True
    notify_command: Annotated[
        tuple[str, ...],
        setting(
            "Program and arguments that notify instead; it gets a title and a text as two more."
        ),
    ] = ()
    status: Annotated[
        tuple[
            Literal["model", "style", "context", "cost", "mode", "branch", "running", "command"],
            ...,
        ],
        setting("Members of the status line, in their order."),
    ] = ("model", "style", "context", "cost", "mode", "branch", "running", "command")
    status_command: Annotated[
        str,
        setting("Shell command whose first line is a member; runs in trusted folders, for 1 s."),
    ] = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The merged settings of all layers."""

    default_model: Annotated[ModelName, setting("Default model.", project=True)] = ""
    fallback: Annotated[
        tuple[ModelName, ...],
        setting("Models to try in order when the previous one fails.", project=True),
    ] = ()
    approval_mode: Annotated[Mode, setting("Approval mode: which calls run without asking.")] = (
        Mode.DEFAULT
    )
    tool_style: Annotated[
        ToolStyle, setting("How tools are described to the model.", project=True)
    ] = ToolStyle.AUTO
    system_prompt: Annotated[str, setting("File that replaces the system prompt.", file=True)] = ""
    allow_insecure_http: Annotated[
        bool, setting("Allow sending credentials to other machines over unencrypted http.")
    ] = False
    limits: Limits = Limits()
    compression: CompressionRules = CompressionRules()
    context: MemorySettings = MemorySettings()
    sessions: Sessions = Sessions()
    batch: BatchSettings = BatchSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    agents: AgentSettings = AgentSettings()
    ui: Ui = Ui()
    keys: KeySettings = KeySettings()
    reasoning: Reasoning = Reasoning()
    tools: ToolSettings = ToolSettings()
    providers: Annotated[
        tuple[Provider, ...], setting("Custom providers, by name.", tables=True)
    ] = ()
    models: Annotated[
        tuple[ModelInfo, ...],
        setting("Facts about models, by `provider/model`.", tables=True, project=True),
    ] = ()
    mcp: McpSettings = McpSettings()
    mcp_servers: Annotated[
        Mapping[str, Configured],
        setting(
            "MCP servers, by name; those of a project start only after `toolwire mcp approve`.",
            tables=True,
            project=True,
        ),
    ] = {}
    hooks: HookSettings = HookSettings()
    skills: SkillSettings = SkillSettings()
    gateway: GatewaySettings = GatewaySettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    acp: AcpSettings = AcpSettings()
    ide: IdeSettings = IdeSettings()
    files: tuple[Path, ...] = ()
    """Files that were read, highest precedence last."""
    set_by_project: frozenset[str] = frozenset()
    """Paths of the settings from the project's file."""
    trusted: bool | None = None
    """Whether the user trusts the folder; None if not asked. Its settings apply if True."""

    def provider(self, name: str) -> Provider:
        """Returns the user's provider of that name, else the built-in or installed one."""
        own = {provider.name: provider for provider in self.providers}
        if name in own:
            return own[name]
        try:
            return providers.get(name)
        except UnknownName as error:
            raise UnknownName("provider", name, (*own, *providers.names())) from error

    def split(self, name: str) -> tuple[Provider, str]:
        """Splits `provider/model` into the provider and the model."""
        return catalogue.split(name, self.provider)
