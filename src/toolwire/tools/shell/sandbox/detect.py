"""Which kind of sandbox this system has, and the profile of macOS's own."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from toolwire.errors import BadInput
from toolwire.request import JsonObject

PROGRAM = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx", "/dev/random", "/dev/urandom")


def profile(plan: JsonObject, hidden: Sequence[str], frozen: Sequence[str]) -> str:
    """The profile's text; later lines win over earlier ones."""
    lines = ["(version 1)", "(allow default)"]
    if not plan["network"]:
        lines += [
            "(deny network*)",
            '(allow network* (local ip "localhost:*") (remote ip "localhost:*"))',
            '(allow network* (remote unix-socket (path-literal "/private/var/run/syslog")))',
        ]
    lines += ["(deny process-info-pidinfo (target others))", "(deny signal (target others))"]
    lines += ["(allow signal (target same-sandbox))"]
    if not plan["open"]:
        lines.append("(deny file-write*)")
        lines += _each("allow", "file-write*", "subpath", (*plan["writable"], *plan["scratch"]))
        lines += _each("allow", "file-write*", "literal", _DEVICES)
        lines.append('(allow file-write* (regex #"^/dev/ttys[0-9]+"))')
    lines += _each("deny", "file-write*", "subpath", frozen)
    lines += _each("deny", "file-read* file-write*", "subpath", (*hidden, *plan["state"]))
    holes = [one for one in plan["writable"] if one.startswith(tuple(plan["state"]) or ("\0",))]
    lines += _each("allow", "file-read* file-write*", "subpath", holes)
    return "\n".join(lines)


def _each(verb: str, what: str, kind: str, paths: Iterable[str]) -> list[str]:
    return [f"({verb} {what} ({kind} {_quoted(path)}))" for path in paths]


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def seatbelt_arguments(
    plan: JsonObject, hidden: Sequence[str], frozen: Sequence[str]
) -> tuple[str, ...]:
    """Arguments before the command."""
    return (PROGRAM, "-p", profile(plan, hidden, frozen))


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
    """Record the kind that a start has shown."""
    _found[""] = kind


def _works(kind: Kind) -> bool:
    if kind == "seatbelt":
        return sys.platform == "darwin" and os.access(PROGRAM, os.X_OK)
    if kind == "none":
        return True
    if sys.platform != "linux":
        return False
    if kind == "landlock":
        from toolwire.tools.shell.sandbox.system import landlock_version  # noqa: PLC0415 - loads ctypes

        return landlock_version() > 0
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
