"""Asking the person at the terminal whether to trust a folder."""

import sys
from pathlib import Path

import click

from toolwire.config import trust


def asker() -> trust.Ask | None:
    """Asks the person at the terminal whether to trust a folder; None if nobody is there."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def _ask(folder: Path) -> trust.Answer | None:
    click.echo(
        f"{folder} has settings of its own. They count only if you trust the folder: they choose "
        "models and what a model is told.",
        err=True,
    )
    words = [str(answer) for answer in trust.Answer]
    said = click.prompt(
        f"Trust {folder}? (parent: trust {folder.parent} and all in it)",
        type=click.Choice(words),
        default=str(trust.Answer.NO),
        err=True,
    )
    return trust.Answer(said)
