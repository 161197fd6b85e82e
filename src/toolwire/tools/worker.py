"""The program of a child process for work on hostile input, which can be killed at any moment.

It is started by file name and imports nothing of the package. On standard input and output go
frames, each with its length before it. It dies with its parent, after its time, or on request.
"""

import importlib.util
import os
import re
import select
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress

LENGTH = struct.Struct(">Q")
MEMORY = 4 << 30
"""Bytes that it may use."""


def main() -> None:
    """`worker.py LIFELINE SECONDS MODE …`: answer frame after frame."""
    lifeline, seconds, mode, *arguments = sys.argv[1:]
    _confine(int(lifeline))
    answer = {"lines": _lines, "page": _page}[mode](*arguments)
    while (frame := _read()) is not None:
        _end_within(int(seconds))
        reply = answer(frame)
        _end_within(0)
        sys.stdout.buffer.write(LENGTH.pack(len(reply)) + reply)
        sys.stdout.buffer.flush()


def _confine(lifeline: int) -> None:
    if sys.platform == "win32":
        return  # the job object of the parent limits its memory, and ends it with the parent
    import fcntl  # noqa: PLC0415 - not on every system
    import resource  # noqa: PLC0415 - same

    for one in (signal.SIGINT, signal.SIGALRM):
        signal.signal(one, signal.SIG_DFL)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The parent holds the other end and never writes: closing it raises a signal that ends us.
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        os._exit(1)


def _end_within(seconds: int) -> None:
    """End this process after its time, 0 for no limit; on Windows the parent does it."""
    if sys.platform != "win32":
        signal.alarm(seconds)


def _read() -> bytes | None:
    head = sys.stdin.buffer.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    return sys.stdin.buffer.read(LENGTH.unpack(head)[0])


def _lines(pattern: str, whole: str) -> Callable[[bytes], bytes]:
    """Numbers, from 0, of the lines of a text that fit; `whole`: try the text as one before."""
    expression = re.compile(pattern, re.IGNORECASE | re.MULTILINE)

    def answer(frame: bytes) -> bytes:
        text = frame.decode("utf-8", "surrogatepass")
        if whole and not expression.search(text.replace("\r\n", "\n")):
            return b""
        fits = [
            number
            for number, line in enumerate(text.split("\n"))
            if expression.search(line.removesuffix("\r"))
        ]
        return struct.pack(f">{len(fits)}Q", *fits)

    return answer


def _page(converter: str) -> Callable[[bytes], bytes]:
    """HTML as Markdown, by the module in a file."""
    spec = importlib.util.spec_from_file_location("page_text", converter)
    assert spec is not None  # noqa: S101 - our own file
    assert spec.loader is not None  # noqa: S101 - same
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def answer(frame: bytes) -> bytes:
        text: str = module.page_text(frame.decode("utf-8", "surrogatepass"))
        return text.encode("utf-8", "replace")

    return answer


if __name__ == "__main__":
    main()
