"""The profile of `sandbox-exec`, which macOS brings along, for a plan."""

from collections.abc import Iterable, Sequence

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


def words(plan: JsonObject, hidden: Sequence[str], frozen: Sequence[str]) -> tuple[str, ...]:
    """What comes before the command."""
    return (PROGRAM, "-p", profile(plan, hidden, frozen))
