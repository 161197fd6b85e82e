"""Which kind of sandbox this system has."""

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Literal, TypeAlias

from toolwire.errors import BadInput

Kind: TypeAlias = Literal["namespaces", "bubblewrap", "landlock", "seatbelt", "none"]
VARIABLE = "TOOLWIRE_SANDBOX_KIND"
"""Names one kind to use, for systems where the first that works is not the best."""
_KINDS: tuple[Kind, ...] = ("namespaces", "bubblewrap", "landlock", "seatbelt", "none")
ABOUT: Mapping[Kind, str] = {
    "namespaces": "namespaces of our own, with Landlock and seccomp where the kernel has them",
    "bubblewrap": "bubblewrap, with Landlock and seccomp where the kernel has them",
    "landlock": "Landlock and seccomp; no process namespace, covers have gaps",
    "seatbelt": "sandbox-exec of macOS",
    "none": "this system has none",
}
_found: dict[str, Kind] = {}


def kind(environ: Mapping[str, str] | None = None) -> Kind:
    """The best kind that works here, found out once; starts a process for it."""
    named = (os.environ if environ is None else environ).get(VARIABLE, "")
    if named not in _found:
        if named and named not in _KINDS:
            raise BadInput(f'{VARIABLE} must be one of {", ".join(_KINDS)}; found "{named}"')
        tried: tuple[Kind, ...] = tuple(one for one in _KINDS if named in ("", one))
        _found[named] = _first_that_works(tried)
    return _found[named]


def _first_that_works(kinds: tuple[Kind, ...]) -> Kind:
    for one in kinds:
        if _works(one):
            return one
    return "none"


def is_open() -> bool:
    """Whether nothing is known yet, and the first start of a sandbox may show it."""
    return sys.platform == "linux" and not _found and not os.environ.get(VARIABLE)


def remember(kind: Kind) -> None:
    """Keep what a start has shown."""
    _found[""] = kind


def _works(kind: Kind) -> bool:
    if kind == "seatbelt":
        from toolwire.tools.shell.sandbox.seatbelt import PROGRAM  # noqa: PLC0415 - only on macOS

        return sys.platform == "darwin" and os.access(PROGRAM, os.X_OK)
    if kind == "none":
        return True
    if sys.platform != "linux":
        return False
    if kind == "landlock":
        from toolwire.tools.shell.sandbox.landlock import version  # noqa: PLC0415 - loads ctypes

        return version() > 0
    return _starts(kind)


def _starts(kind: Kind) -> bool:
    from toolwire.tools.shell.watchdogs import NotContained, Watchdogs  # noqa: PLC0415 - when asked

    prefix: list[str] = []
    if kind == "bubblewrap":
        program = shutil.which("bwrap")
        if program is None:
            return False
        prefix = [program, "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--"]
    server = Watchdogs(prefix, {"kind": kind})
    try:
        server.open()
    except (NotContained, OSError):
        return False
    finally:
        server.close()
    return True
