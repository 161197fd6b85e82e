"""Recognises in what a command printed that the sandbox was in its way."""

import re

import msgspec

_TAIL = 20_000
_ROFS = re.compile(r"read-only file system|EROFS|errno 30\b", re.IGNORECASE)
_REFUSED = re.compile(
    r"permission denied|operation not permitted|EACCES|EPERM|errno 1\b|errno 13\b|resource busy"
    r"|cross-device",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"could(?: not|n't) resolve|name resolution|network is unreachable|ENETUNREACH|EAI_AGAIN"
    r"|ENOTFOUND|getaddrinfo|unable to access 'https?:|no route to host|failed to connect"
    r"|unable to resolve|failed to establish a new connection|nodename nor servname"
    r"|could(?: not|n't) connect|connection refused|temporary failure resolving|network error"
    r"|unknown host|no such host|dial tcp|failed to lookup address",
    re.IGNORECASE,
)
_PROCESSES = re.compile(r"fork: (?:retry: )?resource temporarily|can't start new thread", re.I)
_MEMORY = re.compile(r"cannot allocate memory|out of memory|MemoryError|ENOMEM", re.IGNORECASE)
_MISSING = re.compile(r"no such file|cannot access|ENOENT|errno 2\b", re.IGNORECASE)
_PATH = re.compile(r"/[^\s'\"`:;,()<>|]+")


class Walls(msgspec.Struct, frozen=True, kw_only=True):
    """What the sandbox of a command holds back."""

    network: bool
    """The network is allowed."""
    writes: bool
    """The whole disk may be written."""
    hidden: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    directory: str = ""


def explained(said: str, *, failed: bool, walls: Walls) -> str:
    """A line for the model if the sandbox plausibly stopped a command; else empty."""
    said = said[-_TAIL:]
    reason = _reason(said, failed, walls)
    return f"blocked by the sandbox: {reason}; ask the user" if reason else ""


def _reason(said: str, failed: bool, walls: Walls) -> str:
    lines = said.splitlines()
    refused = [line for line in lines if _REFUSED.search(line)]
    # Root sees an empty folder where others are refused.
    for line in (*refused, *(line for line in lines if _MISSING.search(line))):
        if _names_any(line, walls.hidden, walls.directory):
            return "read of a credential or of the agent's own files"
    for line in (*refused, *(line for line in lines if _ROFS.search(line))):
        if _names_any(line, walls.frozen, walls.directory):
            return "write to a protected file"
    if _ROFS.search(said):
        return "write outside the workspace"
    if not failed:
        return ""
    if not walls.network and _NETWORK.search(said):
        return "network"
    if _PROCESSES.search(said):
        return "limit on the number of processes"
    if _MEMORY.search(said):
        return "limit on memory"
    if any("sudo" in line or "setuid" in line or "no new privileges" in line for line in lines):
        return "programs cannot gain privileges (no_new_privs)"
    if refused and not walls.writes:
        return "access outside the workspace"
    return ""


def _names_any(line: str, paths: tuple[str, ...], directory: str) -> bool:
    """Whether a line of an error names one of the paths or something in it."""
    if not paths:
        return False
    for path in paths:
        if path in line:
            return True
        near = path.removeprefix(f"{directory}/")
        if near != path and re.search(rf"(?<![\w./-]){re.escape(near)}(?![\w.-])", line):
            return True
    return any(one.startswith(tuple(f"{path}/" for path in paths)) for one in _PATH.findall(line))
