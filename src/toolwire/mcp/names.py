"""Names under which tools of servers are offered: deterministic, unique, with aliases."""

import re
from collections.abc import Iterable

LONGEST = 63


def offered_name(server: str, tool: str, taken: Iterable[str]) -> str:
    """The tool's own name, cleaned; with its server's name before it if that is taken."""
    names = set(taken)
    for candidate in (cleaned(tool), cleaned(f"{server}__{tool}")):
        if candidate not in names:
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


def cleaned(name: str) -> str:
    """A name of letters, digits, `_`, `.` and `-`, at most 63 characters of it."""
    plain = re.sub(r"[^a-zA-Z0-9_.-]", "_", name)
    return plain if len(plain) <= LONGEST else f"{plain[:28]}___{plain[-32:]}"
