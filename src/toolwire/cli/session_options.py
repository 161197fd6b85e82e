"""Options of every command that runs a session, and what they open."""

import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from toolwire import config
from toolwire.agent.structured import OutputSchema
from toolwire.app.options import SessionOptions
from toolwire.app.servers import ServerChoice
from toolwire.cli.consent import asker, check_workspace
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.record import RecordingTransport, ReplayTransport
from toolwire.client.redact import known_secrets
from toolwire.config import Settings, current_folder
from toolwire.context.prompt import read_prompt
from toolwire.errors import BadInput
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers.custom import read_upstream
from toolwire.request import Effort
from toolwire.tools.spec import SandboxSetting
from toolwire.wire.json_access import parse_object

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
_NO_ID = "?"
"""The value of --resume without an id."""
SANDBOX = click.option(
    "--sandbox",
    type=click.Choice(get_args(SandboxSetting)),
    help="Sandbox for commands; auto: workspace-write where the system supports it.",
)
_OPTIONS = (
    click.option(
        "-m",
        "--model",
        default="",
        metavar="P/M",
        help="Model: provider/model, or a short name such as sonnet if it is unique.",
    ),
    click.option("--provider", default="", help="Provider; uses its default model."),
    click.option("--base-url", default="", metavar="URL", help="Base URL of the provider."),
    click.option(
        "--upstream",
        metavar="DIALECT=URL",
        help="Ad-hoc provider: DIALECT=URL[,key=K][,model=M][,style=S].",
    ),
    click.option(
        "--tool-style",
        type=click.Choice(tuple(map(str, ToolStyle))),
        help="How tools are described to the model.",
    ),
    click.option(
        "--approval-mode",
        type=click.Choice(tuple(map(str, Mode))),
        help="Approval mode: which calls run without asking.",
    ),
    SANDBOX,
    click.option("-y", "--yolo", is_flag=True, help="Same as --approval-mode yolo."),
    click.option(
        "--allowed-tools",
        multiple=True,
        metavar="LIST",
        help="Comma-separated tools that need no approval; run_shell_command(git) allows git only.",
    ),
    click.option("--session", default="", metavar="ID", help="Continue this session."),
    click.option(
        "-c",
        "--continue",
        "latest",
        is_flag=True,
        help="Continue this folder's most recent session.",
    ),
    click.option(
        "-r",
        "--resume",
        is_flag=False,
        flag_value=_NO_ID,
        metavar="[ID]",
        help="Continue this session; without ID, choose one in chat, the most recent in run.",
    ),
    click.option("--no-session", is_flag=True, help="Do not store the session."),
    click.option(
        "--max-turns", type=click.IntRange(min=0), help="Maximum number of model requests."
    ),
    click.option(
        "--max-tokens", type=click.IntRange(min=0), help="Maximum number of tokens, in and out."
    ),
    click.option(
        "--max-cost",
        type=click.FloatRange(min=0),
        metavar="USD",
        help="Maximum cost in US dollars.",
    ),
    click.option("--effort", type=click.Choice(tuple(map(str, Effort))), help="Reasoning effort."),
    click.option(
        "--temperature", type=click.FloatRange(0, 2), help="Sampling temperature, from 0 to 2."
    ),
    click.option("--cwd", "folder", type=_FOLDER, help="Work in this folder."),
    click.option(
        "--add-dir",
        "folders",
        multiple=True,
        type=_FOLDER,
        metavar="DIR",
        help="Work in this folder too; may be repeated.",
    ),
    click.option(
        "--attach",
        "attached",
        multiple=True,
        type=FILE,
        metavar="FILE",
        help="Attach a picture, PDF or text file to the prompt; may be repeated.",
    ),
    click.option(
        "--system", metavar="TEXT|@FILE", help="Replaces the system prompt; also a file's name."
    ),
    click.option(
        "--append-system", metavar="TEXT|@FILE", help="Added at the end of the system prompt."
    ),
    click.option(
        "-v", "--verbose", is_flag=True, help="Also report what a conversion loses at no cost."
    ),
    click.option("--yes", is_flag=True, help="Download the embedded model without asking."),
    click.option("--weights", type=FILE, help="Use this model file for the embedded model."),
    click.option("--no-hooks", is_flag=True, help="Run no hooks."),
    click.option("--no-mcp", is_flag=True, help="Use no MCP servers."),
    click.option(
        "--mcp", multiple=True, metavar="LIST", help="Comma-separated MCP servers; use only these."
    ),
    click.option(
        "--mcp-config",
        multiple=True,
        type=FILE,
        metavar="FILE",
        help="File with further MCP servers: JSON with mcpServers, or TOML.",
    ),
    click.option(
        "--record", type=FILE, help="Record every exchange to this file, without secrets."
    ),
    click.option("--replay", type=FILE, help="Replay a file written by --record."),
    click.option(
        "--telemetry-outfile",
        type=FILE,
        metavar="FILE",
        help="Write telemetry to this file, as lines of OTLP JSON.",
    ),
)


class SessionFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a command that runs a session, as the user gave them."""

    model: str
    provider: str
    base_url: str
    upstream: str | None
    tool_style: ToolStyle | None
    approval_mode: Mode | None
    sandbox: SandboxSetting | None
    yolo: bool
    allowed_tools: tuple[str, ...]
    session: str
    latest: bool
    resume: str | None
    no_session: bool
    max_turns: int | None
    max_tokens: int | None
    max_cost: float | None
    effort: Effort | None
    temperature: float | None
    folder: Path | None
    folders: tuple[Path, ...]
    attached: tuple[Path, ...]
    system: str | None
    append_system: str | None
    verbose: bool
    yes: bool
    weights: Path | None
    no_hooks: bool
    no_mcp: bool
    mcp: tuple[str, ...]
    mcp_config: tuple[Path, ...]
    record: Path | None
    replay: Path | None
    telemetry_outfile: Path | None

    def read_settings(self, environ: Mapping[str, str]) -> tuple[Settings, Path]:
        """Returns the settings with these flags, and the working folder."""
        cwd = self.folder.resolve() if self.folder else current_folder()
        if not self.folder:
            check_workspace(cwd, environ)
        flags = {
            "limits.turns": self.max_turns,
            "limits.tokens": self.max_tokens,
            "limits.cost": self.max_cost,
            "reasoning.effort": self.effort,
            "tools.sandbox": self.sandbox,
            "hooks.enabled": False if self.no_hooks else None,
            "telemetry.outfile": self.telemetry_outfile and str(self.telemetry_outfile.absolute()),
        }
        return config.load(environ, cwd, flags=flags, ask=asker()), cwd

    @property
    def chooses(self) -> bool:
        """Whether the user is to choose the session to continue."""
        return self.resume == _NO_ID

    def options(self, *, interactive: bool, output: OutputSchema | None = None) -> SessionOptions:
        """Returns what the session is opened with."""
        resumed = "" if self.chooses else self.resume or ""
        return SessionOptions(
            model=self.model,
            provider=self.provider,
            base_url=self.base_url,
            upstream=read_upstream(self.upstream) if self.upstream else None,
            tool_style=self.tool_style or "",
            mode=Mode.YOLO if self.yolo else self.approval_mode,
            allowed=_listed(self.allowed_tools),
            session=self.session or resumed,
            latest=self.latest or (self.chooses and not interactive),
            system=None if self.system is None else _text_or_file(self.system),
            append_system=_text(self.append_system, "--append-system"),
            temperature=self.temperature,
            folders=self.folders,
            interactive=interactive,
            servers=ServerChoice(
                off=self.no_mcp,
                only=_listed(self.mcp),
                files=self.mcp_config,
                interactive=interactive,
            ),
            kept=not self.no_session,
            may_forget=True,
            output=output,
        )


def session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options to a command, which gets them as its argument `flags`."""

    @wraps(command)
    def with_flags(**values: Any) -> None:
        own = {name: values.pop(name) for name in SessionFlags.__struct_fields__}
        flags = msgspec.convert(own, SessionFlags, strict=False, builtin_types=(Path,))
        _check_together(flags)
        command(flags=flags, **values)

    for option in reversed(_OPTIONS):
        with_flags = option(with_flags)
    return with_flags


def _check_together(flags: SessionFlags) -> None:
    """Raises if options contradict each other."""
    pairs = (
        ("--yolo and --approval-mode", flags.yolo and flags.approval_mode not in (None, Mode.YOLO)),
        ("--session and --continue", flags.session and flags.latest),
        ("--session and --resume", flags.session and flags.resume is not None),
        ("--continue and --resume", flags.latest and flags.resume is not None),
        (
            "--no-session and continuing one",
            flags.no_session and (flags.session or flags.latest or flags.resume is not None),
        ),
        ("--record and --replay", flags.record and flags.replay),
        ("--no-mcp and --mcp", flags.no_mcp and flags.mcp),
        ("--no-mcp and --mcp-config", flags.no_mcp and flags.mcp_config),
    )
    for names, contradict in pairs:
        if contradict:
            raise click.UsageError(f"{names} contradict each other; give one")


def _text_or_file(value: str) -> Path | str:
    """Returns the file of `@FILE`, of an existing one, and of what looks like a path; else the
    text.
    """
    if value.startswith("@"):
        return Path(value[1:]).absolute()
    looks_like_one = not re.search(r"\s", value) and re.search(r"/|\.\w{1,5}$", value)
    try:
        is_file = Path(value).is_file()
    except (OSError, ValueError):
        is_file = False
    return Path(value) if is_file or looks_like_one else value


def _text(value: str | None, option: str) -> str:
    """Returns the text, or that of `@FILE`."""
    if not value or not value.startswith("@"):
        return value or ""
    return read_prompt(Path(value[1:]), option)


def read_schema(file: Path) -> OutputSchema:
    """Returns the JSON Schema of a file; BadInput names the file if it is not one."""
    option = f"--output-schema: {file}"
    try:
        text = file.read_bytes()
    except OSError as error:
        raise BadInput(f"{option} cannot be read: {error.strerror}") from error
    found = OutputSchema(schema=parse_object(text, option))
    found.check(option)
    return found


def open_transport(flags: SessionFlags, stack: AsyncExitStack) -> Transport:
    """Returns the HTTP transport; records with `--record`, replays with `--replay`."""
    replay, record = flags.replay, flags.record
    if replay:
        try:
            lines = replay.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"--replay: {replay} cannot be read: {error}") from error
        return ReplayTransport(lines, secrets=known_secrets())
    return recorded(record, stack)


def recorded(record: Path | None, stack: AsyncExitStack) -> Transport:
    """Returns the HTTP transport, which records every exchange to a file, if there is one."""
    http = HttpTransport()
    stack.push_async_callback(http.aclose)
    if not record:
        return http
    try:
        file = stack.enter_context(record.open("w", encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--record: {record} cannot be written: {error.strerror}") from error

    def write(line: str) -> None:
        file.write(f"{line}\n")
        file.flush()

    return RecordingTransport(http, write, secrets=known_secrets())


def _listed(values: tuple[str, ...]) -> tuple[str, ...]:
    """Splits comma-separated lists; commas inside brackets belong to the entry."""
    entries: list[str] = []
    for value in values:
        depth, entry = 0, ""
        for letter in value:
            depth += (letter == "(") - (letter == ")")
            if letter == "," and depth <= 0:
                entries.append(entry)
                entry = ""
            else:
                entry += letter
        entries.append(entry)
    return tuple(entry.strip() for entry in entries if entry.strip())
