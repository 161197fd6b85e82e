"""Names under which tools of servers are offered: deterministic, unique, with aliases."""

import re
from collections.abc import Iterable

LONGEST = 63


def offered_name(
    server: str, tool: str, taken: Iterable[str], foreign: tuple[str, ...] = ()
) -> str:
    """The tool's own name, cleaned; with its server's name before it if that is taken.

    A name that begins like the qualified names of another server is taken too: a rule about that
    server's tool must not apply to this one.
    """
    names = set(taken)
    own = cleaned(tool)
    if own not in names and not own.startswith(foreign):
        return own
    if (candidate := cleaned(f"{server}__{tool}")) not in names:
        return candidate
    number = 2
    while (candidate := cleaned(f"{server}__{tool}_{number}")) in names:
        number += 1
    return candidate


def aliases(server: str, tool: str) -> tuple[str, ...]:
    """Qualified names under which other programs know the tool."""
    return (
        cleaned(f"{server}__{tool}"),
        cleaned(f"mcp__{server}__{tool}"),
        cleaned(f"mcp_{server}_{tool}"),
    )


def prefixes(servers: Iterable[str]) -> tuple[str, ...]:
    """How the qualified names of these servers' tools begin."""
    return tuple(
        start for name in servers for start in (f"{name}__", f"mcp__{name}__", f"mcp_{name}_")
    )


def cleaned(name: str) -> str:
    """A name of letters, digits, `_`, `.` and `-`, at most 63 characters of it."""
    plain = re.sub(r"[^a-zA-Z0-9_.-]", "_", name)
    return plain if len(plain) <= LONGEST else f"{plain[:28]}___{plain[-32:]}"
