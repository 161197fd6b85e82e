"""Links that the terminal opens (OSC 8): which terminals have them, which addresses they get."""

import re
from collections.abc import Mapping

_PRINTABLE = r"https?://[!-~]{1,2000}"
_ADDRESS = re.compile(_PRINTABLE, re.IGNORECASE)
LINK_MARK = re.compile(rf"\x1b\]8;;(?:{_PRINTABLE})?\x1b\\", re.IGNORECASE)
"""The beginning or the end of a link, exactly as `linked` writes it."""
_PROGRAMS = ("iTerm.app", "WezTerm", "ghostty", "vscode", "rio", "Hyper", "WarpTerminal")
_TERMS = ("xterm-kitty", "xterm-ghostty", "foot", "alacritty", "contour", "wezterm")
_FROM_VTE = 5000
_FROM_TMUX = (3, 4)


def has_links(choice: str, environ: Mapping[str, str]) -> bool:
    """Whether links are written: as `ui.links` says, `auto` where the terminal is known to."""
    if choice != "auto":
        return choice == "always"
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("STY") or term in ("", "dumb", "linux"):
        return False
    if environ.get("TMUX") or term.startswith(("tmux", "screen")):
        version = environ.get("TERM_PROGRAM_VERSION", "")
        numbers = tuple(int(one) for one in re.findall(r"\d+", version)[:2])
        return program == "tmux" and numbers >= _FROM_TMUX
    vte = environ.get("VTE_VERSION", "")
    return (
        program in _PROGRAMS
        or term.startswith(_TERMS)
        or bool(environ.get("KITTY_WINDOW_ID") or environ.get("WT_SESSION"))
        or (vte.isascii() and vte.isdigit() and int(vte) >= _FROM_VTE)
    )


def link_address(address: str) -> str:
    """An address that may be sent: of the web, printable, short; else empty."""
    return address if _ADDRESS.fullmatch(address) else ""


def linked(text: str, address: str) -> str:
    """A rendered text as a link to an address of `link_address`."""
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def without_links(line: str) -> str:
    """A rendered line for what does not know links."""
    return LINK_MARK.sub("", line) if "\x1b]8;" in line else line
