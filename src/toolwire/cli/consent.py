"""Consent to work in a home folder, or in one that contains it."""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from toolwire.cli.question import agrees, ask_line, can_ask
from toolwire.config import trust
from toolwire.errors import BadInput
from toolwire.terminal_text import one_line

_WHY = "the files that your shell, desktop and programs run are below it"


def check_workspace(cwd: Path, environ: Mapping[str, str]) -> None:
    """Asks before working in a home folder; BadInput if refused or no user can answer.

    A home in the temporary folder belongs to a test or a build: only a notice.
    """
    held = [home for home in _homes(environ) if home.is_relative_to(cwd.resolve())]
    if not held:
        return
    what = (
        "your home folder" if cwd.resolve() in held else "a folder that contains your home folder"
    )
    shown = one_line(str(cwd))
    if can_ask():
        if not agrees(f"{shown} is {what}: {_WHY}. Work in it?"):
            raise BadInput(f"{shown} is {what}; change to the folder of a project")
    elif all(_is_temporary(home, environ) for home in held):
        sys.stderr.write(f"toolwire: {shown} is {what}; hidden files in it are protected\n")
    else:
        raise BadInput(
            f"{shown} is {what}: {_WHY}; change to the folder of a project, or name this one "
            f"with --cwd {shown}"
        )


def _homes(environ: Mapping[str, str]) -> list[Path]:
    named = [environ["HOME"]] if environ.get("HOME") else []
    with suppress(ImportError, KeyError):
        import pwd

        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    return [Path(each).resolve() for each in dict.fromkeys(named) if each != "/"] or [Path.home()]


def _is_temporary(home: Path, environ: Mapping[str, str]) -> bool:
    folders = ("/tmp", "/var/tmp", environ.get("TMPDIR") or "/tmp")  # noqa: S108 - nothing is written
    return any(home.is_relative_to(Path(each).resolve()) for each in folders)


def asker() -> trust.Ask | None:
    """Asks the user whether to trust a folder; None without a terminal."""
    return _ask if can_ask() else None


def _ask(folder: Path) -> trust.TrustAnswer | None:
    name, parent = one_line(str(folder)), one_line(str(folder.parent))
    what = "has changed" if trust.has_changed(folder, os.environ) else "has"
    click.echo(
        f"{name} {what} settings of its own. They apply only if you trust the folder: they choose "
        "models and change the instructions a model gets.",
        err=True,
    )
    words = ", ".join(str(answer) for answer in trust.TrustAnswer)
    question = f"Trust {name}? (parent: trust {parent} and all in it) ({words}) [no]:"
    while True:
        typed = (ask_line(question) or str(trust.TrustAnswer.NO)).lower()
        with suppress(ValueError):
            return trust.TrustAnswer(typed)
        click.echo(f"{typed!r} is not one of {words}", err=True)
