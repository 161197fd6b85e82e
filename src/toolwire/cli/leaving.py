"""Process exit: Ctrl-C outside a turn, and threads that still run."""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType

GRACE = 0.5
"""Seconds to wait for threads to stop."""


@contextmanager
def ending_at_once(code: int) -> Generator[None]:
    """Makes Ctrl-C end the process, even in code that never awaits."""

    def end(number: int, frame: FrameType | None) -> None:
        del number, frame
        os._exit(code)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def end_soon(code: int) -> None:
    """Exits without waiting for busy threads: they cannot be stopped."""

    def end() -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

    timer = threading.Timer(GRACE, end)
    timer.daemon = True
    timer.start()
