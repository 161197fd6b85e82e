"""Parses the options of a session."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from toolwire import config
from toolwire.app.options import SessionOptions
from toolwire.cli.consent import asker, check_workspace
from toolwire.client.http.transport import HttpTransport, Transport
from toolwire.client.record import RecordingTransport, ReplayTransport
from toolwire.client.redact import known_secrets
from toolwire.config import Settings, current_folder
from toolwire.errors import BadInput
from toolwire.policy.rules import Mode
from toolwire.providers.custom import read_upstream


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """A session's settings, options and working folder."""

    settings: Settings
    wanted: SessionOptions
    cwd: Path


def read_asked(
    options: Mapping[str, Any], environ: Mapping[str, str], *, interactive: bool
) -> ReadOptions:
    """Merges the command's options with the settings."""
    cwd = options["folder"].resolve() if options["folder"] else current_folder()
    if not options["folder"]:
        check_workspace(cwd, environ)
    flags = {
        "approval_mode": "yolo" if options["yolo"] else options["approval_mode"],
        "tool_style": options["tool_style"],
        "limits.turns": options["max_turns"],
        "tools.sandbox": options["sandbox"],
    }
    settings = config.load(environ, cwd, flags=flags, ask=asker())
    upstream = options["upstream"]
    wanted = SessionOptions(
        model=options["model"],
        provider=options["provider"],
        base_url=options["base_url"],
        upstream=read_upstream(upstream) if upstream else None,
        mode=Mode(settings.approval_mode),
        allowed=_listed(options["allowed_tools"]),
        session=options["session"],
        latest=options["latest"],
        system=options["system"],
        interactive=interactive,
    )
    return ReadOptions(settings=settings, wanted=wanted, cwd=cwd)


def open_transport(options: Mapping[str, Any], stack: AsyncExitStack) -> Transport:
    """Returns the HTTP transport; records with `--record`, replays with `--replay`."""
    replay, record = options["replay"], options["record"]
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
