"""Tools: typed arguments, a declared effect, one function, a bounded result."""

import hashlib
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)

import msgspec

from toolwire.errors import ToolwireError
from toolwire.messages import Media, Text
from toolwire.model import Model
from toolwire.request import JsonObject, ToolSpec
from toolwire.setting import Amount, Count, setting
from toolwire.tools.proposals import DiffStat, Proposal

if TYPE_CHECKING:
    # A bare `ToolContext` has dependencies of any type; Python 3.11 has no such defaults.
    from typing_extensions import TypeVar as DefaultTypeVar

    Deps = DefaultTypeVar("Deps", default=Any)
else:
    Deps = TypeVar("Deps")


class Effect(StrEnum):
    """Effect of a call, on which the policy rules."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    OTHER = "other"


class ToolFailed(ToolwireError):
    """A tool failed; the text contains the next step for the model."""

    kind = "tool_failed"

    def __init__(self, message: str, *, display: str = "", type: str = "") -> None:
        super().__init__(message)
        self.display = display or message
        """For the user."""
        self.type = type
        """A word for telemetry, such as `file_not_found`."""


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a call: one text for the model, one for the user."""

    text: str = ""
    """The result itself."""
    media: tuple[Media, ...] = ()
    blocks: tuple[Text | Media, ...] = ()
    """The result in equal parts, in place of the text."""
    beside: tuple[Text | Media, ...] = ()
    """Parts that follow the result in the same message (contents of many files)."""
    display: str = ""
    """Markdown for the user. Empty shows the text."""
    diff: str = ""
    """Unified diff of an edit, for the screen."""
    stat: DiffStat | None = None


class ReadableFolders:
    """Folders outside of the workspace that may be read since a skill in them was activated.

    Equal to any other: what may be read besides does not make it another workspace.
    """

    def __init__(self) -> None:
        self.paths: tuple[Path, ...] = ()

    def add(self, path: Path) -> None:
        """Adds a folder, all links followed."""
        if path not in self.paths:
            self.paths = (*self.paths, path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReadableFolders)

    def __hash__(self) -> int:
        return 0


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """Where tools may work: the first root is the working directory."""

    roots: tuple[Path, ...]
    temp: Path
    """Project temp directory: outputs too long for the model are stored here, and may be read."""
    home: Path
    ceilings: tuple[Path, ...] = ()
    """Folders in which no repository is looked for, nor above (`GIT_CEILING_DIRECTORIES`)."""
    readable: ReadableFolders = msgspec.field(default_factory=ReadableFolders)


SandboxLevel: TypeAlias = Literal["off", "read-only", "workspace-write", "approved"]


class SandboxSpec(msgspec.Struct, frozen=True, kw_only=True):
    """How a command is confined."""

    level: SandboxLevel = "off"
    """`read-only`: only the temporary folder is writable. `workspace-write`: the workspace too.
    `approved`: everything but credentials, start-up files and the agent's state.
    """
    network: bool = False
    """`approved` has the network without it."""
    writable: tuple[str, ...] = ()
    """Further absolute paths the ruling allows it to write; protected files have to be named."""
    readable: tuple[str, ...] = ()
    """Protected paths the ruling allows it to read."""
    hidden: tuple[str, ...] = ()
    """Absolute paths that it can neither read nor write, besides the agent's own."""
    container: str = ""
    """A container that it runs in instead, by name."""


class Permit(msgspec.Struct, frozen=True, kw_only=True):
    """Permit of the ruling: how a command may run."""

    command: str = ""
    """Proven text that runs instead of the model's; empty: as written."""
    sandbox: SandboxSpec = SandboxSpec()
    environ: tuple[tuple[str, str], ...] = ()
    """Variables set for this command."""
    note: str = ""
    """Appended to its result."""


SearchWay: TypeAlias = Literal["rg", "git", "own"]
SandboxSetting: TypeAlias = Literal["auto", "off", "none", "read-only", "workspace-write"]
VariableName: TypeAlias = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*\*?$",
        extra={"expected": "a variable's name or `PREFIX_*`"},
    ),
]


Defer: TypeAlias = Literal["auto", "always", "never"]


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[tools]` table of the configuration."""

    core: Annotated[
        tuple[str, ...], setting("Tools that are offered; an empty list offers all.")
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        setting("Tools that are not offered; a project may add to them.", project=True, joins=True),
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
    output_characters: Annotated[
        Count, setting("Characters of a command's output that are sent.")
    ] = 400_000
    output_lines: Annotated[
        Count, setting("Lines of a command's output that are sent; 0 means all.")
    ] = 0
    shell_seconds: Annotated[Amount, setting("Seconds a command may take; 0 means no limit.")] = (
        3600.0
    )
    shell_idle_seconds: Annotated[
        Amount, setting("Seconds a command may run without output; 0 means no limit.")
    ] = 300.0
    plain_edit: Annotated[
        bool, setting("Offer `replace` with `expected_replacements` and without `instruction`.")
    ] = False
    edit_correction: Annotated[
        bool, setting("Ask the model once to correct an edit that does not match.")
    ] = False
    search_with: Annotated[
        SearchWay | None,
        setting(
            "How `search_file_content` searches: with `rg`, `git` or its `own` code; if not set, "
            "the first that works."
        ),
    ] = None
    allow_private_addresses: Annotated[
        bool, setting("Let `web_fetch` read from loopback and private networks.")
    ] = False
    side_model: Annotated[str, setting("Model named in the errors of searches and fetches.")] = ""
    sandbox: Annotated[
        SandboxSetting,
        setting(
            "Sandbox for commands: `auto` is `workspace-write` where the system supports it, "
            "`none` is `off`. A project may only tighten it.",
            project=True,
            tighter=("off", "none", "auto", "workspace-write", "read-only"),
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
    memory_file: Annotated[
        str,
        setting(
            "File of `save_memory`, below your home folder; `.gemini/GEMINI.md` shares it with "
            "gemini-cli. If not set, `AGENTS.md` beside the settings."
        ),
    ] = ""
    environment: Annotated[
        tuple[VariableName, ...],
        setting("Additional variables passed to commands; `NAME` or `PREFIX_*`."),
    ] = ()


class McpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The `[mcp]` table of the configuration."""

    allowed: Annotated[
        tuple[str, ...], setting("MCP servers that are used; an empty list uses all.")
    ] = ()
    excluded: Annotated[
        tuple[str, ...],
        setting(
            "MCP servers that are not used; a project may add to them.", project=True, joins=True
        ),
    ] = ()
    wait_seconds: Annotated[
        Amount,
        setting(
            "Seconds to wait for servers whose tools are not remembered; a chat does not wait."
        ),
    ] = 10.0
    require_types: Annotated[
        bool, setting("Leave out tools with parameters that have no type.")
    ] = False
    defer: Annotated[
        Defer,
        setting(
            "Whether the model has to find server tools with `find_tools`: `auto` above 40 tools "
            "or a tenth of its context."
        ),
    ] = "auto"


DEFAULT_SETTINGS = ToolSettings()
Changing: TypeAlias = Callable[[Path, bytes | None, int, str], None]
"""Receives a file before an edit changes it: the new contents (None deletes it), the permissions
of a new file or -1, and the id of the call. Raises ToolFailed if it must not be changed.
"""
Restricts: TypeAlias = Callable[[str, str], str]
"""Decision of the rules on an absolute path that no call names: `deny`, `ask` or empty."""


class EditorFiles(Protocol):
    """Text files as an editor holds them, unsaved changes included; called from threads.

    Paths are real ones of the workspace.
    """

    def read(self, path: Path) -> str | None:
        """Returns the text, None where the disk counts; FileNotFoundError if there is no such file
        in the editor, ToolFailed if it does not give it.
        """
        ...

    def write(self, path: Path, text: str) -> bool:
        """Writes a file, new or not; False where the disk counts, ToolFailed if it is refused."""
        ...


class ToolContext(msgspec.Struct, Generic[Deps], frozen=True, kw_only=True):
    """What a running tool may use; `ToolContext[Shop]` if it needs dependencies of that type."""

    workspace: Workspace
    deps: Deps = cast(Any, None)
    """What the program gave the agent or the run for its tools."""
    permit: Permit | None = None
    """What the ruling on this call allows; None where no ruling was made."""
    sandbox: SandboxSpec = SandboxSpec()
    """How commands without a permit are confined."""
    call_id: str = ""
    owner: str = ""
    """The session: it alone sees and stops what its commands left running."""
    environ: Mapping[str, str] = {}
    """For child processes; secrets are already out of it."""
    restricts: Restricts | None = None
    """The user's rules against paths, for files that a call does not name; None without any."""
    settings: ToolSettings = DEFAULT_SETTINGS
    model: Model | None = None
    """Model for side requests (search, fetch, edit correction), if any."""
    model_dialect: str = ""
    """Wire format of `model`: Gemini's can search and fetch by itself."""
    emit: Callable[[str], None] = print
    """Live output for the screen; never for the model."""
    live_seconds: float = 1.0
    """Between two pieces of a command's live output."""
    ask: Callable[[str, tuple[str, ...]], Awaitable[str]] | None = None
    """Ask the user a question with choices; None if no user is present."""
    session: object = None
    """The scheduler of the session, for a tool that runs a session of its own."""
    files: EditorFiles | None = None
    """Text files of an editor, which reading and editing tools prefer to the disk."""
    changing: Changing | None = None
    """Stores what an edit is about to change; None stores nothing."""
    seen: dict[str, str] = {}
    """Versions of the files a session has read or written, maintained by the file tools; pass the
    same dict to every call, and a file changed by others in between is noticed.
    """


Run: TypeAlias = Callable[[JsonObject, ToolContext], Awaitable[ToolOutput]]
Check: TypeAlias = Callable[[JsonObject, ToolContext], str]
TouchedPaths: TypeAlias = Callable[[JsonObject, ToolContext], tuple[Path, ...]]
Preview: TypeAlias = Callable[[JsonObject, ToolContext], tuple[Proposal, ...]]
Adopt: TypeAlias = Callable[[JsonObject, Proposal, str], JsonObject]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool: its description for the model, its effect, and its function."""

    name: str
    description: str
    parameters: JsonObject
    effect: Effect
    run: Run
    title: str = ""
    """Title for the user; empty shows the name."""
    check: Check = lambda arguments, context: ""
    """Error in arguments that fit the schema but are not valid; empty if valid."""
    touches: TouchedPaths = lambda arguments, context: ()
    """Paths a call reads or writes, for policy."""
    aliases: tuple[str, ...] = ()
    preview: Preview | None = None
    """What an edit would change, one proposal a file; ToolFailed if it cannot be done."""
    adopt: Adopt | None = None
    """Arguments that write the user's text instead of the proposed one."""
    server: str = ""
    """The MCP server a tool comes from."""
    delegates: bool = False
    """Whether it is an agent: its own calls are ruled on one by one, so it needs no approval."""
    deps: Any = None
    """Type of the dependencies that it reads from its context; None for any or none."""
    hints: tuple[str, ...] = ()
    """What its server says of its effects: shown in questions."""

    @property
    def digest(self) -> str:
        """A digest of its texts and schema: what an answer of the user about it is bound to."""
        about = (self.server, self.name, self.title, self.description, self.parameters)
        return hashlib.sha256(msgspec.json.encode(about, order="sorted")).hexdigest()[:32]

    @property
    def spec(self) -> ToolSpec:
        """As a request offers it."""
        return ToolSpec(name=self.name, description=self.description, parameters=self.parameters)


MOST_MEDIA = 20 * 1024 * 1024
"""Bytes of the pictures, documents and recordings in one result."""


def filed(media: Media, folder: Path, name: str) -> str:
    """Stores contents that are too large to send; the line that names the file."""
    try:
        data = b64decode(media.base64)
    except ValueError:
        data = media.base64.encode()
    folder.mkdir(parents=True, exist_ok=True)
    ending = re.sub(r"[^a-z0-9]", "", media.mime.partition("/")[2].lower())[:10] or "bin"
    file = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:100]}.{ending}"
    file.write_bytes(data)
    return f"[{media.kind} of {len(data):,} bytes is too large to send; it is in {file}]"


_HEAD_PART = 5


def capped(text: str, limit: int, folder: Path, call_id: str) -> str:
    """The text, or a fifth of the limit from its start and the rest from its end."""
    if limit <= 0 or len(text) <= limit:
        return text
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', call_id)[:100]}.output"
    file.write_text(text, "utf-8", errors="replace", newline="")
    head = limit // _HEAD_PART
    tail = limit - head
    left_out = len(text) - limit
    return (
        f"Output too large. Showing first {head:,} and last {tail:,} characters. "
        f"For full output see: {file}\n{text[:head]}\n\n"
        f"... [{left_out:,} characters omitted] ...\n\n{text[-tail:]}"
    )
