"""The user's browser, opened for a login."""

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

from toolwire.tools.programs import NEUTRAL, find_program, helper_environment

_PROGRAMS = ("xdg-open", "open", "wslview", "x-www-browser")
_NAMED = ("DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "WSL_INTEROP", "VSCODE_*", "BROWSER")


def open_browser(url: str, environ: Mapping[str, str]) -> bool:
    """Start `BROWSER` or the desktop's own opener; whether there is one."""
    command = _command(environ)
    if not command:
        return False
    given = [word.replace("%s", url) for word in command]
    try:
        subprocess.Popen(  # noqa: S603 - a program of the user's, by absolute path
            given if given != command else [*command, url],
            cwd=NEUTRAL,
            env=helper_environment(environ, _NAMED),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    return True


def _command(environ: Mapping[str, str]) -> list[str]:
    try:
        own = shlex.split(environ.get("BROWSER", ""))
    except ValueError:
        own = []
    candidates = ([own] if own else []) + [[name] for name in _PROGRAMS]
    for name, *rest in candidates:
        if found := find_program(name, environ, (Path.cwd(),)):
            return [found, *rest]
    return []
