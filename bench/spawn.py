"""Runs commands for the start-up figures from a process that is smaller than any of them.

A child's peak memory counts its parent's, so the parent must be small: started with `-I -S`, and
only what Python has loaded anyway. One command per line, its words apart by \\x1f.
"""

import os
import sys
import time


def _run(command: list[str]) -> str:
    null = os.open(os.devnull, os.O_RDWR)
    redirect = [(os.POSIX_SPAWN_DUP2, null, target) for target in (0, 1, 2)]
    begun = time.perf_counter()
    child = os.posix_spawn(command[0], command, os.environ, file_actions=redirect)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - begun
    os.close(null)
    code = os.waitstatus_to_exitcode(status)
    return f"{code} {used.ru_utime + used.ru_stime} {wall} {used.ru_maxrss / 1024}"


if __name__ == "__main__":
    for line in sys.stdin:
        print(_run(line.rstrip("\n").split("\x1f")), flush=True)
