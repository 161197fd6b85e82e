"""The end of the process: Ctrl-C before and after a turn, and threads that still work."""

import os
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType

GRACE = 0.5
"""Seconds for threads to notice that they are not needed any more."""


@contextmanager
def ending_at_once(code: int) -> Generator[None]:
    """Ctrl-C ends the process, even in the middle of work that awaits nothing."""

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
    """Do not wait for a thread that is in the middle of something: it cannot be stopped."""

    def end() -> None:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)

    timer = threading.Timer(GRACE, end)
    timer.daemon = True
    timer.start()
