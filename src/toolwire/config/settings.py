"""Every setting: its type, default, meaning, and whether a project may make it. One line each."""

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
    """What the table of settings says of one.

    Rules: `project` (a project may make it), `joins` (lists of stronger layers are added),
    `file` (a path, from the folder of the file that names it), `tables` (tables by name),
    `tighter` (the values, loosest first, if a project may only tighten it), `group` (the struct
    that describes a table kept as a mapping).
    """
    return msgspec.Meta(description=doc, extra=rules)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Where one run stops; zero is no limit."""

    turns: Annotated[Count, setting("Requests to the model in one run; 0 is no limit.")] = 0
    tokens: Annotated[Count, setting("Tokens of one run, in and out; 0 is no limit.")] = 0
    cost: Annotated[Amount, setting("US dollars for one run; 0 is no limit.")] = 0.0
    seconds: Annotated[Amount, setting("Seconds one run may take; 0 is no limit.")] = 0.0


class Compression(msgspec.Struct, frozen=True, kw_only=True):
    """When a long conversation is summarised."""

    enabled: Annotated[bool, setting("Summarise long conversations by itself.", project=True)] = (
        True
    )
    threshold: Annotated[
        Share, setting("Share of the model's context that sets it off.", project=True)
    ] = 0.7
    keep: Annotated[
        Share, setting("Share of the conversation that is kept word for word.", project=True)
    ] = 0.3


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The notes of a project that a model is given."""

    files: Annotated[
        tuple[FileName, ...], setting("Names of the notes that are looked for.", project=True)
    ] = ("AGENTS.md", "GEMINI.md", "CLAUDE.md")
    max_dirs: Annotated[Count, setting("Folders searched for notes, at most.", project=True)] = 200
    respect_git_ignore: Annotated[bool, setting("Leave out what git ignores.", project=True)] = True
    import_format: Annotated[
        ImportFormat, setting("How notes that a note imports are written in.", project=True)
    ] = "tree"


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """How sessions are kept."""

    keep_days: Annotated[Count, setting("Days a session is kept; 0 is for ever.")] = 0


class Thinking(msgspec.Struct, frozen=True, kw_only=True):
    """The `[reasoning]` table; what is not said is left to the model."""

    effort: Annotated[Effort | None, setting("How hard the model thinks.", project=True)] = None
    budget: Annotated[
        Annotated[int, msgspec.Meta(ge=-1)] | None,
        setting("Thinking tokens at most; -1 lets the model decide.", project=True),
    ] = None
    visible: Annotated[bool | None, setting("Ask for the thoughts as text.", project=True)] = None


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """The `[tools]` table."""

    core: Annotated[tuple[str, ...], setting("All tools that are offered; empty is all.")] = ()
    exclude: Annotated[
        tuple[str, ...], setting("Tools that are not offered.", project=True, joins=True)
    ] = ()
    allowed: Annotated[tuple[str, ...], setting("Tools that need no approval.")] = ()
    discovery_command: Annotated[str, setting("Command that prints declarations of tools.")] = ""
    call_command: Annotated[str, setting("Command that runs a tool so declared.")] = ""
    output_limit: Annotated[
        int, setting("Characters of a result that are sent whole; 0 is no limit.", project=True)
    ] = 400_000
    output_characters: Annotated[Count, setting("Characters kept of a command's output.")] = 400_000
    output_lines: Annotated[Count, setting("Lines kept of a command's output; 0 is all.")] = 0
    shell_seconds: Annotated[Amount, setting("Seconds a command may take; 0 is no limit.")] = 3600.0
    shell_idle_seconds: Annotated[
        Amount, setting("Seconds a command may be silent; 0 is no limit.")
    ] = 300.0
    plain_edit: Annotated[bool, setting("Offer the plainer form of `replace`.")] = False
    edit_correction: Annotated[bool, setting("Ask the model how an edit was meant.")] = False
    search_with: Annotated[
        SearchWay | None, setting("How files are searched; the first that works if not set.")
    ] = None
    allow_private_addresses: Annotated[bool, setting("Fetch from private networks too.")] = False
    side_model: Annotated[str, setting("Model named in the errors of searches and fetches.")] = ""
    sandbox: Annotated[
        SandboxSetting,
        setting(
            "How commands are confined; a project may only tighten it.",
            project=True,
            tighter=_SANDBOXES,
        ),
    ] = "auto"
    sandbox_network: Annotated[
        bool,
        setting(
            "Let confined commands use the network; a project may only forbid it.",
            project=True,
            tighter=(True, False),
        ),
    ] = False
    sandbox_writable: Annotated[
        tuple[str, ...], setting("Further folders that confined commands may write to.")
    ] = ()
    memory_file: Annotated[str, setting("File for saved facts, below your home folder.")] = ""
    environment: Annotated[
        tuple[VariableName, ...],
        setting("Further variables that commands get; `NAME` or `PREFIX_*`."),
    ] = ()


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants, from every layer that was found."""

    default_model: Annotated[
        ModelName, setting("Model to ask when none is named.", project=True)
    ] = ""
    fallback: Annotated[
        tuple[ModelName, ...],
        setting("Models to ask in turn when the one before fails.", project=True),
    ] = ()
    approval_mode: Annotated[ApprovalMode, setting("What runs without a question.")] = "default"
    tool_style: Annotated[
        ToolStyleSetting, setting("How tools are offered to the model.", project=True)
    ] = "auto"
    system_prompt: Annotated[
        str, setting("File that takes the place of the system prompt.", file=True)
    ] = ""
    allow_insecure_http: Annotated[
        bool, setting("Send credentials over http to other machines, unencrypted.")
    ] = False
    limits: Limits = Limits()
    compression: Compression = Compression()
    context: Context = Context()
    sessions: Sessions = Sessions()
    reasoning: Annotated[Reasoning, setting("", group=Thinking)] = Reasoning()
    tools: Annotated[Mapping[str, Any], setting("", group=Tools)] = {}
    """What the `[tools]` tables say; what they do not say is the tools' own to choose."""
    providers: Annotated[
        tuple[Provider, ...], setting("Providers of your own, by name.", tables=True)
    ] = ()
    models: Annotated[
        tuple[ModelInfo, ...],
        setting("What you say of models, by `provider/model`.", tables=True, project=True),
    ] = ()
    mcp_servers: Annotated[
        Mapping[str, JsonObject], setting("MCP servers, by name.", tables=True)
    ] = {}
    files: tuple[Path, ...] = ()
    """Files that were read, the stronger ones last."""
    set_by_project: frozenset[str] = frozenset()
    """Paths of the settings that the project's file made."""
    trusted: bool | None = None
    """Whether the user trusts the folder; None if nobody was asked. Its settings count if True."""

    def provider(self, name: str) -> Provider:
        """The user's provider of that name, else the built-in or installed one."""
        own = {provider.name: provider for provider in self.providers}
        if name in own:
            return own[name]
        try:
            return providers.get(name)
        except UnknownName as error:
            raise UnknownName("provider", name, (*own, *providers.names())) from error

    def split(self, name: str) -> tuple[Provider, str]:
        """`provider/model` as the provider and the model."""
        return catalogue.split(name, self.provider)
