"""What a command's process gives up just before it becomes the command; standard library only."""

import os
import resource
from typing import Any

from toolwire.tools.shell.sandbox import landlock, seccomp, system

_ROOT_KEEPS = (0, 1, 3, 4, 5, 6, 7, 10, 29)
"""Of root's capabilities: owners and modes of files, signals, identities, low ports."""
_EVERY_RIGHT = (1 << 16) - 1 & ~(1 << 6) & ~(1 << 11)
"""All but making devices."""


class Confinement:
    """Prepared once for a plan; `enforce` costs a few system calls for each command."""

    def __init__(self, plan: dict[str, Any], *, own_network: bool, own_processes: bool) -> None:
        self._limits = plan["limits"]
        self._keep = _ROOT_KEEPS if plan["root"] else ()
        # What this process may do itself does not change by it.
        system.bound_capabilities(self._keep)
        self._rules: landlock.Ruleset | None = None
        if landlock.version():
            self._rules = _rules(plan, own_network=own_network, own_processes=own_processes)
        self._filter: seccomp.Filter | None = None
        if seccomp.available():
            inner = (seccomp.UNIX, seccomp.NETLINK)
            wide = (*inner, seccomp.INET, seccomp.INET6) if own_network else inner
            self._filter = seccomp.Filter(() if plan["network"] else wide)

    def enforce(self) -> None:
        """Confine this process for good."""
        for name, value in self._limits.items():
            _limit(getattr(resource, f"RLIMIT_{name}"), value)
        system.drop_capabilities(self._keep)
        system.control(system.SET_NO_NEW_PRIVILEGES, 1)
        if self._rules is not None:
            self._rules.enforce()
        if self._filter is not None:
            self._filter.enforce()


def _rules(plan: dict[str, Any], *, own_network: bool, own_processes: bool) -> landlock.Ruleset:
    tcp = not plan["network"] and not own_network
    rules = landlock.Ruleset(tcp=tcp, signals=not own_processes)
    if plan["open"]:
        rules.allow(plan["readable"], _EVERY_RIGHT)
    else:
        rules.allow(plan["readable"], landlock.READ)
        rules.allow((*plan["writable"], *plan["scratch"]), _EVERY_RIGHT)
        rules.allow(plan["listable"], landlock.READ_FOLDER)
    devices = ("/dev",) if own_processes else plan["devices"]
    rules.allow(devices, _EVERY_RIGHT)
    return rules


def _limit(which: int, most: int) -> None:
    soft, hard = resource.getrlimit(which)
    new = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft == resource.RLIM_INFINITY or soft > new:
        resource.setrlimit(which, (new, new))


def become(
    confinement: Confinement, program: str, words: list[str], environ: dict[str, str]
) -> None:
    """Become the program, confined; OSError if it cannot be started."""
    confinement.enforce()
    os.execve(program, words, environ)  # noqa: S606 - the command itself
