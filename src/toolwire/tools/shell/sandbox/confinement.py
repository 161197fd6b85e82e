"""What a command's process gives up just before it becomes the command; standard library only."""

import ctypes
import errno
import os
import resource
import struct
from typing import Any

from toolwire.tools.shell.sandbox import landlock, system

_FILTER_MODE = 2
_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32 = 0x40000000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
UNIX, INET, NETLINK, INET6 = 1, 2, 16, 10
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C


class _Table:
    """Numbers of one architecture."""

    def __init__(self, audit: int, socket: int, ioctl: int, denied: tuple[int, ...]) -> None:
        self.audit = audit
        self.socket = socket
        self.ioctl = ioctl
        self.denied = denied
        """Keys of the session, kernel code, performance events, files by handle, io_uring."""


_TABLES = {
    "x86_64": _Table(
        0xC000003E,
        41,
        16,
        (248, 249, 250, 321, 298, 304, 175, 313, 246, 320, 425, 426, 427),
    ),
    "aarch64": _Table(
        0xC00000B7,
        198,
        29,
        (217, 218, 219, 280, 241, 265, 105, 273, 104, 294, 425, 426, 427),
    ),
}


def available() -> bool:
    """Whether filters for this machine are known."""
    return system.machine() in _TABLES


def program(machine: str, families: tuple[int, ...]) -> bytes:
    """The filter as the kernel takes it; no families lets every kind of socket be made."""
    table = _TABLES[machine]
    no = _ERRNO | errno.EPERM
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, table.audit),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    for number in table.denied:
        refusal = _ERRNO | errno.ENOSYS if number in (425, 426, 427) else no
        lines += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refusal)]
    lines += [
        (_EQUAL, 0, 5, table.ioctl),
        (_LOAD, 0, 0, _SECOND),
        (_EQUAL, 1, 0, _TIOCSTI),
        (_EQUAL, 0, 1, _TIOCLINUX),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
    ]
    if families:
        lines += [(_EQUAL, 1, 0, table.socket), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, _FIRST)]
        for family in families:
            lines += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
        # Programs report it as what it is.
        lines.append((_RETURN, 0, 0, _ERRNO | errno.ENETUNREACH))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *line) for line in lines)


class Filter:
    """A filter that is ready; `enforce` in the process that is to be confined."""

    def __init__(self, families: tuple[int, ...]) -> None:
        code = program(system.machine(), families)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._program = ctypes.create_string_buffer(
            struct.pack("H6xP", len(code) // 8, ctypes.addressof(self._code)), 16
        )

    def enforce(self) -> None:
        """Confine this process and its children for good."""
        system.control(system.SET_SECCOMP, _FILTER_MODE, ctypes.byref(self._program))


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
        self._filter: Filter | None = None
        if available():
            inner = (UNIX, NETLINK)
            wide = (*inner, INET, INET6) if own_network else inner
            self._filter = Filter(() if plan["network"] else wide)

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
