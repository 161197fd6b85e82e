"""What the arguments and the terminal ask for; no library is needed to tell."""

import sys
from collections.abc import Mapping, Sequence

OWN = ("-h", "--help", "--version")
"""Options of the program itself."""
_RUN_ONLY = ("-p", "--prompt", "--print", "--output-format", "--output-schema", "-q", "--quiet")


def is_headless(args: Sequence[str]) -> bool:
    """Whether an option is given that only `run` has."""
    return any(_is_option(arg, _RUN_ONLY) for arg in args)


def _is_option(arg: str, options: tuple[str, ...]) -> bool:
    name = arg.partition("=")[0]
    return name in options or (arg[:2] in options and not arg.startswith("--"))


def redraws(environ: Mapping[str, str]) -> bool:
    """Whether the terminal can move its cursor, and the user does not need plain lines."""
    accessible = environ.get("ACCESSIBLE", "") not in ("", "0")
    # The consoles of Windows are not tried yet.
    if sys.platform == "win32":
        return False
    return environ.get("TERM", "") not in ("", "dumb", "unknown") and not accessible


def opens_app(args: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Whether these arguments open the terminal app, at a terminal; False if that is not sure."""
    if not redraws(environ) or any(arg in (*OWN, "--plain") for arg in args):
        return False
    if not args or args[0] == "chat":
        return True
    return args[0].startswith("-") and not is_headless(args)
