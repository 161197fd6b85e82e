"""`python -m tests.tui.latency SECONDS COMMAND…`: a terminal that is as far away as that."""

import fcntl
import os
import pty
import select
import signal
import sys
import termios
import time
import tty
from collections import deque


def main() -> None:
    """Relays both directions, each byte delayed; ends with the program."""
    delay, command = float(sys.argv[1]), sys.argv[2:]
    pid, main_end = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    _same_size(main_end)
    signal.signal(signal.SIGWINCH, lambda *_: _same_size(main_end))
    saved = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        _relay(main_end, delay)
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, saved)


def _relay(main_end: int, delay: float) -> None:
    waiting: deque[tuple[float, int, bytes]] = deque()
    while True:
        left = max(waiting[0][0] - time.monotonic(), 0.0) if waiting else None
        ready, _, _ = select.select([0, main_end], [], [], left)
        for source in ready:
            try:
                data = os.read(source, 65536)
            except OSError:
                data = b""
            if not data and source == main_end:
                for _, target, rest in waiting:
                    os.write(target, rest)
                return
            target = main_end if source == 0 else 1
            waiting.append((time.monotonic() + delay, target, data))
        while waiting and waiting[0][0] <= time.monotonic():
            _, target, data = waiting.popleft()
            while data:
                data = data[os.write(target, data) :]


def _same_size(main_end: int) -> None:
    size = fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8)
    fcntl.ioctl(main_end, termios.TIOCSWINSZ, size)


if __name__ == "__main__":
    main()
