"""The first prompt: drawn before any library is loaded; what is typed reaches the composer."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from select import select

from toolwire.platform import raw_keys

MARK = "› "
"""What the composer begins with."""
ERASE_LINE = "\r\x1b[2K"
UP = "\x1b[A"
_PASTES_ON = "\x1b[?2004h"
_PASTES_OFF = "\x1b[?2004l"
_INTERRUPT = b"\x03"
_ENDING = (signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else ()


def heading(version: str) -> str:
    """The first line, as long as no more is known."""
    return f"toolwire {version}"


class EarlyPrompt:
    """Two rows and the keys of the terminal, until the app takes them over.

    It holds nothing that is not ours: the version, the mark, and keys that print themselves.
    """

    def __init__(self, descriptor: int, out: int, version: str, encoding: str = "utf-8") -> None:
        """Draws the prompt; `descriptor` is read and `out` is written."""
        self._descriptor, self._out, self._encoding = descriptor, out, encoding
        self._typed = bytearray()
        self.shown = ""
        """What was typed and is drawn after the mark."""
        self._plain = True
        """Whether everything typed so far is drawn."""
        self._drawn = True
        self._undo_raw: Callable[[], None] | None = raw_keys(descriptor)
        self._reading, self._stop = os.pipe()
        self._wait: Callable[[], None] = _nothing
        for number in _ENDING:
            signal.signal(number, self.end_process)
        # What came before is echoed already, with Enter as a line feed.
        ready = bool(select([descriptor], [], [], 0)[0])
        ahead = os.read(descriptor, 65536) if ready else b""
        echoed = f"{ERASE_LINE}{UP}" * ahead.count(b"\n") + ERASE_LINE if ahead else ""
        self._write(f"{echoed}{_PASTES_ON}{heading(version)}\r\n\x1b[1m{MARK}\x1b[0m")
        if ahead:
            self._take_keys(ahead.replace(b"\n", b"\r"))
        self._wait = _start(self._read)

    def take(self) -> bytes:
        """Ends the reading; returns what was typed. The rows stay, and the terminal stays raw."""
        self._end_reading()
        self._drawn = False
        return bytes(self._typed)

    def withdraw(self) -> None:
        """Erases the prompt, and gives the terminal its modes back; nothing if it was taken."""
        if self._drawn:
            self._drawn = False
            self._end_reading()
            self._write(f"{ERASE_LINE}{UP}{ERASE_LINE}")
            self.restore()

    def restore(self) -> None:
        """Gives the terminal its modes back, also after the prompt was taken."""
        self.withdraw()
        undo, self._undo_raw = self._undo_raw, None
        if undo is not None:
            self._write(_PASTES_OFF)
            undo()

    def _end_reading(self) -> None:
        stop, self._stop = self._stop, -1
        if stop >= 0:
            os.close(stop)
            self._wait()

    def _read(self) -> None:
        while True:
            ready = select([self._descriptor, self._reading], [], [])[0]
            if self._reading in ready:
                os.close(self._reading)
                return
            with suppress(OSError):
                if data := os.read(self._descriptor, 65536):
                    self._take_keys(data)
                    continue
            # The terminal was closed: its signal ends the process.
            return

    def _take_keys(self, data: bytes) -> None:
        self._typed += data
        if self._typed.count(_INTERRUPT) > 1:
            # Pressed twice, as one leaves the app; its libraries may still load for a while.
            self._write(f"{ERASE_LINE}{UP}{ERASE_LINE}{_PASTES_OFF}")
            if self._undo_raw is not None:
                self._undo_raw()
            os._exit(0)
        room = _columns(self._out) - len(MARK) - len(self.shown) - 1
        text = data.decode("ascii", "replace")
        self._plain = self._plain and text.isascii() and text.isprintable() and len(text) < room
        if self._plain:
            self.shown += text
            self._write(text)

    def end_process(self, number: int, frame: object) -> None:
        """Ends the process by a signal, with the terminal as it was."""
        del frame
        self.restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _write(self, text: str) -> None:
        # A terminal that was closed cannot be written.
        with suppress(OSError):
            os.write(self._out, text.encode(self._encoding, "replace"))


def _nothing() -> None:
    """Waits for no thread."""


def _columns(out: int) -> int:
    try:
        return os.get_terminal_size(out).columns or 80
    except OSError:
        return 80


def _start(work: Callable[[], None]) -> Callable[[], None]:
    """Runs a function in a thread; returns what waits for its end."""
    from threading import Thread  # noqa: PLC0415 - the prompt is drawn first

    thread = Thread(target=work, daemon=True)
    thread.start()
    return thread.join
