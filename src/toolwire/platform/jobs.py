"""Job objects of Windows, in place of process groups and watchdogs."""

import sys

if sys.platform != "win32":
    raise ImportError("this module needs Windows")

import ctypes
import errno
from ctypes import wintypes
from typing import Any

from toolwire.platform.windows import failed, kernel


class _Limits(ctypes.Structure):
    _fields_ = (
        ("process_time", wintypes.LARGE_INTEGER),
        ("job_time", wintypes.LARGE_INTEGER),
        ("flags", wintypes.DWORD),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", wintypes.DWORD),
        ("scheduling", wintypes.DWORD),
        ("counters", ctypes.c_ulonglong * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


_MOST_LISTED = 4096


class _Members(ctypes.Structure):
    _fields_ = (
        ("assigned", wintypes.DWORD),
        ("listed", wintypes.DWORD),
        ("pids", ctypes.c_size_t * _MOST_LISTED),
    )


_PROCESS_IDS, _EXTENDED_LIMITS = 3, 9
_PROCESS_MEMORY, _DIE_ON_EXCEPTION, _KILL_ON_CLOSE = 0x100, 0x400, 0x2000
_ALL_ACCESS = 0x1FFFFF
_CREATE_SUSPENDED = 0x4

kernel.CreateJobObjectW.restype = wintypes.HANDLE
kernel.CreateJobObjectW.argtypes = (wintypes.LPVOID, wintypes.LPCWSTR)
kernel.OpenProcess.restype = wintypes.HANDLE
kernel.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
kernel.SetInformationJobObject.argtypes = (
    *(wintypes.HANDLE, wintypes.INT, wintypes.LPVOID, wintypes.DWORD),
)
kernel.QueryInformationJobObject.argtypes = (
    *(wintypes.HANDLE, wintypes.INT, wintypes.LPVOID, wintypes.DWORD, wintypes.LPVOID),
)


class Job:
    """A job object: all that a process starts is in it, and ends when it is closed.

    The system closes it when this process ends, however that happens. No process can leave it.
    """

    START = _CREATE_SUSPENDED | 0x08000000 | 0x200
    """Creation flags of its first process: suspended, without a window, in a group of its own."""

    def __init__(self, memory: int = 0) -> None:
        self._handle: int = kernel.CreateJobObjectW(None, None) or 0
        if not self._handle:
            raise failed("job object")
        limits = _Limits(flags=_KILL_ON_CLOSE | _DIE_ON_EXCEPTION)
        if memory:
            limits.flags |= _PROCESS_MEMORY
            limits.process_memory = memory
        size = ctypes.sizeof(limits)
        if not kernel.SetInformationJobObject(
            self._handle, _EXTENDED_LIMITS, ctypes.byref(limits), size
        ):
            error = failed("job object")
            self.close()
            raise error

    def start(self, pid: int) -> None:
        """Put a process that was started suspended into the job, and let it run."""
        process = kernel.OpenProcess(_ALL_ACCESS, False, pid)
        if not process:
            raise failed("job object")
        try:
            if not kernel.AssignProcessToJobObject(self._handle, process):
                raise failed("job object")
            # The handle of its first thread, which `ResumeThread` needs, is not kept by Python.
            if ctypes.WinDLL("ntdll").NtResumeProcess(wintypes.HANDLE(process)):
                raise OSError(errno.EIO, "the process cannot be resumed")
        finally:
            kernel.CloseHandle(process)

    def members(self) -> tuple[int, ...]:
        """The processes in the job that are alive."""
        found = _Members()
        size = ctypes.sizeof(found)
        if not self._handle or not kernel.QueryInformationJobObject(
            self._handle, _PROCESS_IDS, ctypes.byref(found), size, None
        ):
            return ()
        return tuple(found.pids[: found.listed])

    def kill(self) -> None:
        """End every process in the job."""
        if self._handle:
            kernel.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        """End every process in the job, and the job."""
        if self._handle:
            kernel.CloseHandle(self._handle)
            self._handle = 0


class Lifeline:
    """Ends a child process when this one ends, and limits its memory."""

    def __init__(self, memory: int) -> None:
        self._job = Job(memory)
        self.name = "0"
        self.options: dict[str, Any] = {"creationflags": Job.START}
        """Arguments of `subprocess.Popen` for the child."""

    def hold(self, pid: int) -> None:
        """Bind the child that was started."""
        self._job.start(pid)

    def close(self) -> None:
        """Let go; the child ends if it still runs."""
        self._job.close()
