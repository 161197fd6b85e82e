"""The command line: one file per command. Here is what needs no library."""

import sys
from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolwire.tui.early_prompt import EarlyPrompt

_FEW_COLLECTIONS = 20_000
"""Garbage collection threshold: loading modules creates many objects and no garbage."""

OWN = ("-h", "--help", "--version")
"""Options of the program itself."""
_RUN_ONLY = ("-p", "--prompt", "--print", "--output-format", "--output-schema", "-q", "--quiet")


def main() -> None:
    """Run the `toolwire` command."""
    _fill_streams()
    if sys.argv[1:2] == ["__complete"]:
        from toolwire.cli.completion_values import answer

        return answer(sys.argv[2:])
    if sys.argv[1:] != ["--version"]:
        sys.exit(_run())
    from toolwire import __version__

    try:
        sys.stdout.write(f"toolwire {__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        from toolwire.cli.terminal import output_lost

        sys.exit(output_lost(error))


def _run() -> int:
    early = _early_prompt()
    try:
        return _run_command(early)
    except KeyboardInterrupt:
        # Pressed while modules load: nothing has begun.
        return 130
    finally:
        if early is not None:
            early.restore()


def _run_command(early: "EarlyPrompt | None") -> int:
    import atexit
    import gc

    gc.set_threshold(_FEW_COLLECTIONS, *gc.get_threshold()[1:])
    # At exit the interpreter would traverse all objects several times for nothing.
    atexit.register(gc.freeze)
    from toolwire.cli.commands import run_command_line
    from toolwire.cli.terminal import StreamFailed, output_lost, protect_streams

    protect_streams(early.withdraw if early is not None else _nothing)
    try:
        code = run_command_line(early)
        sys.stdout.flush()
    except StreamFailed as error:
        return output_lost(error)
    return code


def _early_prompt() -> "EarlyPrompt | None":
    """Draws the prompt of the terminal app, if it is sure to follow: its modules take a while."""
    import os

    if not opens_app(sys.argv[1:], os.environ):
        return None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    from toolwire import __version__
    from toolwire.tui.early_prompt import EarlyPrompt

    out = sys.stdout
    return EarlyPrompt(sys.stdin.fileno(), out.fileno(), __version__, out.encoding)


def _nothing() -> None:
    """Nothing is drawn that would have to go."""


def _fill_streams() -> None:
    """Reopens closed stdio on /dev/null, so later files do not get descriptors 0 to 2."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open("/dev/null", mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - pathlib is slow to load; stays open


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
