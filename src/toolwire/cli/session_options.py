"""Options of every command that runs a session, and what they open."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import wraps
from pathlib import Path
from typing import Any, get_args

import click
import msgspec

from toolwire import config
from toolwire.app.options import SessionOptions
from toolwire.cli.consent import asker, check_workspace
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.record import RecordingTransport, ReplayTransport
from toolwire.client.redact import known_secrets
from toolwire.config import Settings, current_folder
from toolwire.errors import BadInput
from toolwire.policy import Mode
from toolwire.prompted import ToolStyle
from toolwire.providers.custom import read_upstream
from toolwire.tools.spec import SandboxSetting

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
SANDBOX = click.option(
    "--sandbox",
    type=click.Choice(get_args(SandboxSetting)),
    help="Sandbox for commands; auto: workspace-write where the system supports it.",
)
_OPTIONS = (
    click.option("-m", "--model", default="", metavar="P/M", help="Model: provider/model."),
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
        "--continue", "latest", is_flag=True, help="Continue this folder's most recent session."
    ),
    click.option(
        "--max-turns", type=click.IntRange(min=0), help="Maximum number of model requests."
    ),
    click.option("--cwd", "folder", type=_FOLDER, help="Work in this folder."),
    click.option("--system", type=FILE, help="File that replaces the system prompt."),
    click.option("--yes", is_flag=True, help="Download the embedded model without asking."),
    click.option("--weights", type=FILE, help="Use this model file for the embedded model."),
    click.option(
        "--no-mcp",
        is_flag=True,
        help="Do not warn about mcp_servers, which this version does not start.",
    ),
    click.option(
        "--record", type=FILE, help="Record every exchange to this file, without secrets."
    ),
    click.option("--replay", type=FILE, help="Replay a file written by --record."),
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
    max_turns: int | None
    folder: Path | None
    system: Path | None
    yes: bool
    weights: Path | None
    no_mcp: bool
    record: Path | None
    replay: Path | None

    def read_settings(self, environ: Mapping[str, str]) -> tuple[Settings, Path]:
        """Returns the settings with these flags, and the working folder."""
        cwd = self.folder.resolve() if self.folder else current_folder()
        if not self.folder:
            check_workspace(cwd, environ)
        flags = {"limits.turns": self.max_turns, "tools.sandbox": self.sandbox}
        return config.load(environ, cwd, flags=flags, ask=asker()), cwd

    def options(self, *, interactive: bool) -> SessionOptions:
        """Returns what the session is opened with."""
        return SessionOptions(
            model=self.model,
            provider=self.provider,
            base_url=self.base_url,
            upstream=read_upstream(self.upstream) if self.upstream else None,
            tool_style=self.tool_style or "",
            mode=Mode.YOLO if self.yolo else self.approval_mode,
            allowed=_listed(self.allowed_tools),
            session=self.session,
            latest=self.latest,
            system=self.system,
            interactive=interactive,
            no_mcp=self.no_mcp,
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
        ("--record and --replay", flags.record and flags.replay),
    )
    for names, contradict in pairs:
        if contradict:
            raise click.UsageError(f"{names} contradict each other; give one")


def open_transport(flags: SessionFlags, stack: AsyncExitStack) -> Transport:
    """Returns the HTTP transport; records with `--record`, replays with `--replay`."""
    replay, record = flags.replay, flags.record
    if replay:
        try:
            lines = replay.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"--replay: {replay} cannot be read: {error}") from error
        return ReplayTransport(lines, secrets=known_secrets())
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
