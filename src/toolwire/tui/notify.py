"""Sequences of our own for the terminal: its title, and a word when the user looks elsewhere."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from toolwire.terminal_text import one_line

_KNOWN = ("iTerm.app", "WezTerm", "ghostty", "rio", "WarpTerminal")
"""Terminals that show a notification of OSC 9."""
_PATIENCE = 10.0


def title(words: str) -> str:
    """The sequence that sets the terminal's title."""
    return f"\x1b]0;{one_line(words)}\x07"


def announcement(words: str, environ: Mapping[str, str]) -> str:
    """A notification where the terminal shows one, else the bell."""
    text = one_line(words)
    program = environ.get("TERM_PROGRAM", "")
    if program in _KNOWN or environ.get("KITTY_PID") or environ.get("WT_SESSION"):
        return f"\x1b]9;toolwire: {text}\x07"
    if environ.get("TERM", "").startswith(("rxvt", "foot", "contour")):
        return f"\x1b]777;notify;toolwire;{text}\x07"
    return "\x07"


async def run_notifier(program: tuple[str, ...], words: str, environ: Mapping[str, str]) -> None:
    """Starts the user's own program with a title and a text; neither passes through a shell."""
    with suppress(OSError):
        process = await asyncio.create_subprocess_exec(
            *program,
            "toolwire",
            one_line(words),
            env=dict(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_PATIENCE):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
