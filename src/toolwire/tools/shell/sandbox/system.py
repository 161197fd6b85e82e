"""Linux system calls that Python has no names for; standard library only."""

import ctypes
import os
from functools import lru_cache
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)

NEW_NAMESPACE = 0x00020000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PID = 0x20000000
NEW_NETWORK = 0x40000000

SET_PARENT_DEATH_SIGNAL = 1
SET_DUMPABLE = 4
SET_SECCOMP = 22
DROP_FROM_BOUNDING_SET = 24
SET_CHILD_SUBREAPER = 36
SET_NO_NEW_PRIVILEGES = 38
AMBIENT = 47
_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63


def checked(result: int, what: str) -> int:
    """The result of a call; OSError with the system's reason if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def call(number: int, what: str, *arguments: Any) -> int:
    """A system call by number."""
    return checked(LIBC.syscall(ctypes.c_long(number), *arguments), what)


def control(option: int, value: int = 0, third: Any = 0) -> None:
    """`prctl`; OSError if it is refused."""
    zero = ctypes.c_ulong(0)
    third = ctypes.c_ulong(third) if isinstance(third, int) else third
    checked(LIBC.prctl(option, ctypes.c_ulong(value), third, zero, zero), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave namespaces for new ones."""
    checked(LIBC.unshare(flags), "unshare")


def enter_namespace(descriptor: int, kind: int) -> None:
    """Join an existing namespace."""
    checked(LIBC.setns(descriptor, kind), "setns")


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def bound_capabilities(keep: tuple[int, ...]) -> None:
    """Let no program that this process or a child becomes gain any capability but these."""
    for number in range(_LAST_CAPABILITY + 1):
        if number not in keep and LIBC.prctl(DROP_FROM_BOUNDING_SET, number, 0, 0, 0) < 0:
            break


def drop_capabilities(keep: tuple[int, ...]) -> None:
    """Give up every capability but these, for this process and all it becomes."""
    LIBC.prctl(AMBIENT, _AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = _Header(_CAPABILITY_VERSION, 0)
    data = (_Data * 2)()
    LIBC.capget(ctypes.byref(header), ctypes.byref(data))
    mask = sum(1 << number for number in keep)
    for half in range(2):
        part = (mask >> (32 * half)) & 0xFFFFFFFF
        data[half].permitted &= part
        data[half].effective = data[half].permitted
        data[half].inheritable = 0
    checked(LIBC.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


@lru_cache(maxsize=1)
def machine() -> str:
    """`x86_64`, `aarch64`, …"""
    return os.uname().machine


class Surroundings:
    """The namespaces a watchdog was started in."""

    def __init__(
        self,
        *,
        contained: bool = False,
        network: int = -1,
        store: str = "",
        copies: dict[str, str] | None = None,
    ) -> None:
        self.contained = contained
        """The processes have a namespace of their own."""
        self.network = network
        """An empty network namespace to join; -1 where there is none."""
        self.store = store
        """Where changes to the copies are; commands must not see it."""
        self.copies = copies or {}
        """Private copies by the folder they stand for."""
