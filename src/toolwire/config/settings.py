"""Every setting: its type, default, meaning, and whether a project may set it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from toolwire import providers
from toolwire.errors import UnknownName
from toolwire.providers import catalogue
from toolwire.providers._spec import ModelInfo, Provider
from toolwire.request import Effort, JsonObject, Reasoning

ApprovalMode: TypeAlias = Literal["default", "auto_edit", "yolo", "plan"]
ToolStyleSetting: TypeAlias = Literal["auto", "native", "xml", "json"]
ImportFormat: TypeAlias = Literal["tree", "flat"]
SearchWay: TypeAlias = Literal["rg", "git", "own"]
SandboxSetting: TypeAlias = Literal["auto", "off", "none", "read-only", "workspace-write"]
_SANDBOXES = ("off", "none", "auto", "workspace-write", "read-only")
ModelName: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[^/]+/.", extra={"wanted": '"provider/model"'})
]
FileName: TypeAlias = Annotated[
    str,
    msgspec.Meta(pattern=r"^(?!\.{1,2}$)[^/\\]+$", extra={"wanted": "a file name without folders"}),
]
VariableName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$", extra={"wanted": "a variable's name or `PREFIX_*`"}
    ),
]
Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]


def setting(doc: str, **rules: object) -> msgspec.Meta:
    """Returns the description of a setting.

    Rules: `project` (a project may set it), `joins` (lists of higher layers are added),
    `file` (a path, from the folder of the file that names it), `tables` (tables by name),
    `tighter` (the values, loosest first, if a project may only tighten it), `group` (the struct
    that describes a table stored as a mapping).
    """
    return msgspec.Meta(description=doc, extra=rules)


class LimitSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of one run; zero means no limit."""

    turns: Annotated[Count, setting("Requests to the model in one run; 0 means no limit.")] = 0
    tokens: Annotated[Count, setting("Tokens of one run, in and out; 0 means no limit.")] = 0
    cost: Annotated[Amount, setting("US dollars for one run; 0 means no limit.")] = 0.0
    seconds: Annotated[Amount, setting("Seconds one run may take; 0 means no limit.")] = 0.0


class Compression(msgspec.Struct, frozen=True, kw_only=True):
    """When long conversations are summarised."""

    enabled: Annotated[
        bool, setting("Summarise long conversations automatically.", project=True)
    ] = True
    threshold: Annotated[
        Share, setting("Share of the model's context that triggers it.", project=True)
    ] = 0.7
    keep: Annotated[
        Share, setting("Share of the conversation that is kept verbatim.", project=True)
    ] = 0.3


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Memory files given to the model."""

    files: Annotated[tuple[FileName, ...], setting("File names of memory files.", project=True)] = (
        "AGENTS.md",
        "GEMINI.md",
        "CLAUDE.md",
    )
    max_dirs: Annotated[
        Count, setting("Maximum number of folders searched for memory files.", project=True)
    ] = 200
    respect_git_ignore: Annotated[bool, setting("Skip files that git ignores.", project=True)] = (
        True
    )
    import_format: Annotated[
        ImportFormat, setting("How imported files are inserted.", project=True)
    ] = "tree"


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Session storage."""

    keep_days: Annotated[Count, setting("Days an unused session is kept; 0 means forever.")] = 0


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """The `[reasoning]` table; unset values are left to the model."""

    effort: Annotated[Effort | None, setting("Reasoning effort.", project=True)] = None
    budget: Annotated[
        Annotated[int, msgspec.Meta(ge=-1)] | None,
        setting("Maximum number of thinking tokens; -1 lets the model decide.", project=True),
    ] = None
    visible: Annotated[bool | None, setting("Request the thoughts as text.", project=True)] = None


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The `[tools]` table."""

    core: Annotated[tuple[str, ...], setting("Tools that are offered; empty means all.")] = ()
    exclude: Annotated[
        tuple[str, ...], setting("Tools that are not offered.", project=True, joins=True)
    ] = ()
    allowed: Annotated[tuple[str, ...], setting("Tools that need no approval.")] = ()
    discovery_command: Annotated[str, setting("Command that prints tool declarations.")] = ""
    call_command: Annotated[str, setting("Command that runs a discovered tool.")] = ""
    output_limit: Annotated[
        int,
        setting(
            "Characters of a result that are sent whole; a longer one is cut, and stored in a "
            "file. 0 means no limit.",
            project=True,
        ),
    ] = 400_000
    output_characters: Annotated[Count, setting("Characters kept of a command's output.")] = 400_000
    output_lines: Annotated[Count, setting("Lines kept of a command's output; 0 means all.")] = 0
    shell_seconds: Annotated[Amount, setting("Seconds a command may take; 0 means no limit.")] = (
        3600.0
    )
    shell_idle_seconds: Annotated[
        Amount, setting("Seconds a command may run without output; 0 means no limit.")
    ] = 300.0
    plain_edit: Annotated[
        bool, setting("Offer `replace` with `expected_replacements` instead of `instruction`.")
    ] = False
    edit_correction: Annotated[
        bool, setting("Ask the model to correct an edit that does not match.")
    ] = False
    search_with: Annotated[
        SearchWay | None,
        setting("How `search_file_content` searches; the first that works if not set."),
    ] = None
    allow_private_addresses: Annotated[bool, setting("Allow fetching from private networks.")] = (
        False
    )
    side_model: Annotated[str, setting("Model named in the errors of searches and fetches.")] = ""
    sandbox: Annotated[
        SandboxSetting,
        setting(
            "Sandbox for commands; `none` means `off`; a project may only tighten it.",
            project=True,
            tighter=_SANDBOXES,
        ),
    ] = "auto"
    sandbox_network: Annotated[
        bool,
        setting(
            "Allow network access in the sandbox; a project may only forbid it.",
            project=True,
            tighter=(True, False),
        ),
    ] = False
    sandbox_writable: Annotated[
        tuple[str, ...], setting("Additional folders writable in the sandbox.")
    ] = ()
    memory_file: Annotated[str, setting("File for saved facts, below your home folder.")] = ""
    environment: Annotated[
        tuple[VariableName, ...],
        setting("Additional variables passed to commands; `NAME` or `PREFIX_*`."),
    ] = ()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The merged settings of all layers."""

    default_model: Annotated[ModelName, setting("Default model.", project=True)] = ""
    fallback: Annotated[
        tuple[ModelName, ...],
        setting("Models to try in order when the previous one fails.", project=True),
    ] = ()
    approval_mode: Annotated[
        ApprovalMode, setting("Approval mode: which calls run without asking.")
    ] = "default"
    tool_style: Annotated[
        ToolStyleSetting, setting("How tools are described to the model.", project=True)
    ] = "auto"
    system_prompt: Annotated[str, setting("File that replaces the system prompt.", file=True)] = ""
    allow_insecure_http: Annotated[
        bool, setting("Allow sending credentials to other machines over unencrypted http.")
    ] = False
    limits: LimitSettings = LimitSettings()
    compression: Compression = Compression()
    context: Context = Context()
    sessions: Sessions = Sessions()
    reasoning: Annotated[Reasoning, setting("", group=Thinking)] = Reasoning()
    tools: Annotated[Mapping[str, Any], setting("", group=Tools)] = {}
    """Values of the `[tools]` tables; the tools have defaults for the rest."""
    providers: Annotated[
        tuple[Provider, ...], setting("Custom providers, by name.", tables=True)
    ] = ()
    models: Annotated[
        tuple[ModelInfo, ...],
        setting("Facts about models, by `provider/model`.", tables=True, project=True),
    ] = ()
    mcp_servers: Annotated[
        Mapping[str, JsonObject], setting("MCP servers, by name.", tables=True)
    ] = {}
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
