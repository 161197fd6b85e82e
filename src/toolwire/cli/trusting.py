"""Asking the person at the terminal whether to trust a folder."""

import os
from contextlib import suppress
from pathlib import Path

import click

from toolwire.cli.question import ask_line, can_ask
from toolwire.config import trust
from toolwire.terminal_text import one_line


def asker() -> trust.Ask | None:
    """Asks the person at the terminal whether to trust a folder; None if nobody is there."""
    return _ask if can_ask() else None


def _ask(folder: Path) -> trust.Answer | None:
    name, parent = one_line(str(folder)), one_line(str(folder.parent))
    what = "has changed" if trust.has_changed(folder, os.environ) else "has"
    click.echo(
        f"{name} {what} settings of its own. They count only if you trust the folder: they choose "
        "models and what a model is told.",
        err=True,
    )
    words = ", ".join(str(answer) for answer in trust.Answer)
    question = f"Trust {name}? (parent: trust {parent} and all in it) ({words}) [no]:"
    while True:
        said = (ask_line(question) or str(trust.Answer.NO)).lower()
        with suppress(ValueError):
            return trust.Answer(said)
        click.echo(f"{said!r} is not one of {words}", err=True)
