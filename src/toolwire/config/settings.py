"""Every setting: its type, default, meaning, and whether a project may set it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from toolwire import providers
from toolwire.agent.usage import Limits
from toolwire.compaction.plan import CompressionRules
from toolwire.config.gateway import GatewaySettings
from toolwire.context import MemorySettings
from toolwire.errors import UnknownName
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider
from toolwire.request import Reasoning
from toolwire.setting import Count, ModelName, setting
from toolwire.tools.spec import McpSettings, ToolSettings

if TYPE_CHECKING:
    from toolwire.mcp.entry import Configured
else:
    # Loaded only where a server is configured.
    Configured = Any


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Session storage."""

    keep_days: Annotated[Count, setting("Days an unused session is kept; 0 means forever.")] = 0


class Ui(msgspec.Struct, frozen=True, kw_only=True):
    """The terminal app."""

    theme: Annotated[
        Literal["auto", "dark", "light", "ansi", "blue-orange", "blue-orange-light", "none"],
        setting("Colours; ansi uses only the terminal's own palette."),
    ] = "auto"
    diff: Annotated[
        Literal["auto", "unified", "split"],
        setting("Layout of diffs; auto: both sides beside each other from 140 columns."),
    ] = "auto"
    wrap: Annotated[
        Literal["words", "terminal"],
        setting("Who breaks lines of prose; terminal: a copied paragraph is one line."),
    ] = "words"
    thinking: Annotated[
        Literal["headline", "shown", "hidden"], setting("How thoughts of the model are shown.")
    ] = "headline"
    keys: Annotated[Literal["emacs", "vi"], setting("Keys of the composer.")] = "emacs"
    title: Annotated[bool, setting("Set the title of the terminal.")] = True
    notify: Annotated[
        bool,
        setting("Notify of questions and ends of long turns while the terminal is not focused."),
    ] = True


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
    ui: Ui = Ui()
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
    gateway: GatewaySettings = GatewaySettings()
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
