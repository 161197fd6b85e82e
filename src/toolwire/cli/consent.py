"""The user's consent: to a workspace, to a folder's settings, and to a download."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from toolwire.cli.terminal import agrees, ask_line, can_ask, write_control
from toolwire.config import trust
from toolwire.errors import BadInput
from toolwire.platform import account_home
from toolwire.terminal_text import one_line

if TYPE_CHECKING:
    from toolwire.embedded.partial import Progress
    from toolwire.embedded.weights import Ask, DownloadConsent

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
    named += [home] if (home := account_home()) else []
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


_WIDTH = 24
_CLEAR = "\r\x1b[2K"
_EVERY = 0.2
_SELDOM = 10.0


def consent(weights: Path | None, yes: bool, ask: Ask | None = None) -> DownloadConsent:
    """Returns the consent from the options, else asks on the terminal."""
    from toolwire.embedded.weights import DownloadConsent

    if ask is None and can_ask():
        ask = _ask_aside
    report = Bar(sys.stderr).show
    return DownloadConsent(weights=weights, yes=yes, ask=ask, report=report)


async def _ask_aside(question: str) -> bool:
    return await asyncio.to_thread(agrees, question)


class Bar:
    """Progress: one updated line on a terminal, occasional lines elsewhere."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._drawn = err.isatty()
        self._last = float("-inf")

    def show(self, progress: Progress) -> None:
        """Draws the progress."""
        now = time.monotonic()
        done = progress.done >= progress.total
        if not done and now - self._last < (_EVERY if self._drawn else _SELDOM):
            return
        self._last = now
        if self._drawn:
            write_control(self._err, _CLEAR)
            self._err.write(f"{bar(progress)}{' ' if not done else chr(10)}")
        else:
            self._err.write(f"{words(progress)}\n")
        self._err.flush()


def bar(progress: Progress) -> str:
    """Returns the line for a terminal."""
    full = _WIDTH * progress.done // max(progress.total, 1)
    return f"[{'█' * full}{'·' * (_WIDTH - full)}] {words(progress)}"


def words(progress: Progress) -> str:
    """Returns bytes, speed and remaining time."""
    from toolwire.embedded.partial import readable

    text = f"{readable(progress.done)} of {readable(progress.total)}"
    if progress.speed:
        text += f", {readable(progress.speed)}/s"
    left = progress.remaining
    if left and progress.done < progress.total:
        text += f", {_time(left)} left"
    return f"{text} ({progress.source})"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
