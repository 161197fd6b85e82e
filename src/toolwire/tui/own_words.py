"""What the user does without the model: own commands, notes, the editor; and the branch."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from toolwire.tools.builtin.save_memory import TOOL as SAVE_MEMORY
from toolwire.tools.shell.output import plain_text
from toolwire.tools.spec import ToolContext, ToolFailed

_MOST = 100_000
"""Characters of a command's output that are kept."""
_STATUS = 1.0
"""Seconds that the command of the status line may take."""
_MOST_STATUS = 60
_HEAD = "ref: refs/heads/"


async def run_command(command: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Runs the user's own command; returns its output without colours and other escapes.

    Cancelling kills its process group.
    """
    process = await asyncio.create_subprocess_shell(
        command,
        cwd=folder,
        env=dict(environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = await process.communicate()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise
    text = plain_text(output.decode("utf-8", "replace"))
    if len(text) > _MOST:
        left = f"\n… {len(text) - _MOST} characters left out …\n"
        text = f"{text[: _MOST // 2]}{left}{text[-_MOST // 2 :]}"
    return text if process.returncode == 0 else f"{text}(exit {process.returncode})\n"


async def first_line(command: str, folder: Path, environ: Mapping[str, str]) -> str:
    """The first line that a command prints within a second; empty if it prints none."""
    try:
        async with asyncio.timeout(_STATUS):
            output = await run_command(command, folder, environ)
    except TimeoutError:
        return ""
    return output.partition("\n")[0][:_MOST_STATUS]


async def remembered(words: str, context: ToolContext) -> str:
    """Stores a note; returns what happened."""
    try:
        output = await SAVE_MEMORY.run({"fact": words}, context)
    except ToolFailed as error:
        return f"error: {error}"
    return output.display or output.text


def edited(text: str, suffix: str) -> str | None:
    """The text after the user's editor; None if it was not saved, or no editor could start."""
    try:
        return click.edit(text, extension=suffix)
    except click.ClickException:
        return None


async def edit_file(file: Path) -> None:
    """Opens a file in the user's editor."""
    with suppress(click.ClickException):
        await asyncio.to_thread(click.edit, filename=str(file))


def branch(folder: Path) -> str:
    """The branch of the folder's repository, from its files alone; empty outside of one."""
    for parent in (folder, *folder.parents):
        head = parent / ".git" / "HEAD"
        with suppress(OSError, UnicodeDecodeError):
            if head.is_file():
                text = head.read_text("utf-8")[:300].strip()
                return text.removeprefix(_HEAD) if text.startswith(_HEAD) else text[:8]
    return ""


def short_folder(folder: Path) -> str:
    """A folder with `~` for the user's own."""
    try:
        return f"~/{folder.relative_to(Path.home())}".removesuffix("/.")
    except (ValueError, RuntimeError):
        return str(folder)
