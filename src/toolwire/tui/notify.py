"""Sequences of our own for the terminal: its title, and a word when the user looks elsewhere."""

from collections.abc import Mapping

from toolwire.terminal_text import one_line


def title(words: str) -> str:
    """The sequence that sets the terminal's title."""
    return f"\x1b]0;{one_line(words)}\x07"


def announcement(words: str, environ: Mapping[str, str]) -> str:
    """A notification where the terminal shows one, else the bell."""
    text = one_line(words)
    program = environ.get("TERM_PROGRAM", "")
    if program in ("iTerm.app", "WezTerm", "ghostty") or environ.get("KITTY_PID"):
        return f"\x1b]9;toolwire: {text}\x07"
    if environ.get("TERM", "").startswith(("rxvt", "foot")):
        return f"\x1b]777;notify;toolwire;{text}\x07"
    return "\x07"
