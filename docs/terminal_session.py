"""Records the terminal app: `make picture` writes terminal.cast (asciicast v2) and terminal.svg.

A real run on a pseudo terminal, with the simulator in place of a vendor's model: a question about
a failing test, an edit that is approved, the test run, the answer.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT = 96, 36
_PATIENCE = 120.0
_CODE = "def reduced(price, share):\n    return price - share\n"
_TEST = "from prices import reduced\n\nassert reduced(100, 0.2) == 80\nprint('1 passed')\n"
_SCRIPT = """
model = "demo-model"

[[reply]]
when = "the test fails"
text = "I read the function and its test first."
delta = 3
calls = [{ name = "read_many_files", arguments = { paths = ["prices.py", "test_prices.py"] } }]
fault = { wait_each = 0.02 }

[[reply]]
when = "price - share"
text = "`share` is a **part of the price**, but it is taken off as an amount:"
delta = 3
fault = { wait_each = 0.02 }
[[reply.calls]]
name = "replace"
[reply.calls.arguments]
file_path = "FILE"
old_string = "price - share"
new_string = "price * (1 - share)"
instruction = "Take the share off as a part of the price"

[[reply]]
when = "Successfully modified"
calls = [{ name = "run_shell_command", arguments = { command = "python3 test_prices.py" } }]

[[reply]]
when = "1 passed"
text = '''The test passes now. In `prices.py`:

- `reduced` multiplied nothing: 100 less 0.2 was 99.8
- it is `price * (1 - share)` now

```python
reduced(100, 0.2)  # 80.0
```
'''
delta = 3
fault = { wait_each = 0.02 }
"""


class Recording:
    """A program on a pseudo terminal; what it prints is recorded with its time."""

    def __init__(self, words: list[str], cwd: Path, environ: dict[str, str]) -> None:
        self._main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        self._hidden = str(cwd.parent)
        self._begun = time.monotonic()
        self.screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.ByteStream(self.screen)
        self.events: list[tuple[float, str]] = []
        self.process: subprocess.Popen[Any] = subprocess.Popen(  # noqa: S603 - our own program
            words, cwd=cwd, env=environ, stdin=other, stdout=other, stderr=other,
            start_new_session=True,
        )  # fmt: skip
        os.close(other)
        os.set_blocking(self._main, False)

    def read(self) -> None:
        """Records what was printed since."""
        with suppress(OSError):
            while data := os.read(self._main, 65536):
                shown = data.replace(self._hidden.encode(), b"~")
                self._stream.feed(re.sub(rb"\x1b\[[<>=][0-9;]*[a-z]", b"", shown))
                at = time.monotonic() - self._begun
                self.events.append((at, shown.decode("utf-8", "replace")))

    def wait(self, words: str, seconds: float = 0.0) -> None:
        """Waits for words on the screen, then some seconds more."""
        until = time.monotonic() + _PATIENCE
        while words not in "\n".join(self.screen.display):
            if time.monotonic() > until:
                raise SystemExit("\n".join([f"no {words!r}:", *self.screen.display]))
            time.sleep(0.02)
            self.read()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.05)
            self.read()

    def type(self, text: str, every: float = 0.05) -> None:
        """Types a text, letter by letter."""
        for letter in text:
            os.write(self._main, letter.encode())
            time.sleep(every)
            self.read()

    def cast(self) -> str:
        """The recording as asciicast v2."""
        head = {
            "version": 2,
            "width": WIDTH,
            "height": HEIGHT,
            "idle_time_limit": 2,
            "title": "toolwire: a failing test, an edit, an answer",
            "env": {"TERM": "xterm-256color", "SHELL": "/bin/sh"},
        }
        lines = [json.dumps(head)]
        lines += [json.dumps([round(at, 3), "o", text]) for at, text in self.events]
        return "\n".join((*lines, ""))


def picture(screen: pyte.Screen) -> str:
    """The screen as SVG, without fonts from elsewhere."""
    last = max(at for at, row in enumerate(screen.display) if row.strip()) + 1
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, force_terminal=True, file=nowhere)
        for row in range(last):
            line = Text()
            for column in range(WIDTH):
                cell = screen.buffer[row][column]
                line.append(cell.data, _style(cell))
            line.rstrip()
            console.print(line, soft_wrap=True)
        svg = console.export_svg(title="toolwire")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def _style(cell: Any) -> Style:
    def colour(name: str) -> str | None:
        if name == "default":
            return None
        if re.fullmatch(r"[0-9a-f]{6}", name):
            return f"#{name}"
        return {"brown": "yellow"}.get(name, name.replace("bright", "bright_"))

    return Style(
        color=colour(cell.fg),
        bgcolor=colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
    )


def record() -> Recording:
    """One run of the app, to its last answer."""
    with tempfile.TemporaryDirectory() as made:
        work = Path(made).resolve() / "shop"
        work.mkdir()
        (work / "prices.py").write_text(_CODE)
        (work / "test_prices.py").write_text(_TEST)
        script = work.parent / "script.toml"
        script.write_text(_SCRIPT.replace("FILE", str(work / "prices.py")))
        server = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "toolwire", "simulate", str(script), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            origin = server.stdout.readline().strip() if server.stdout else ""
            return _recorded(origin, work)
        finally:
            server.terminate()
            server.communicate()


def _recorded(origin: str, work: Path) -> Recording:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(work.parent),
        "TOOLWIRE_HOME": str(work.parent / "home"),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TOOLWIRE_UI_THEME": "dark",
        "LANG": "C.UTF-8",
    }
    program = str(Path(sys.executable).with_name("toolwire"))
    upstream = f"openai-chat={origin}/v1,key=k,model=demo-model"
    shown = Recording([program, "chat", "--upstream", upstream], work, environ)
    try:
        shown.wait("demo-model · ", 0.8)
        shown.type("the test fails, fix it")
        shown.wait("fix it", 0.4)
        shown.type("\r")
        shown.wait("price * (1 - share)", 2.5)
        shown.wait("y yes", 0.5)
        shown.type("y")
        shown.wait("● replace", 0.5)
        shown.wait("$ python3 test_prices.py", 2.0)
        shown.type("y")
        shown.wait("reduced(100, 0.2)", 2.0)
        shown.wait("› ", 1.0)
    finally:
        shown.process.terminate()
        shown.process.wait()
    return shown


def main() -> None:
    """Records, and writes the recording and the picture."""
    shown = record()
    (HERE / "terminal.cast").write_text(shown.cast(), "utf-8")
    (HERE / "terminal.svg").write_text(picture(shown.screen), "utf-8")


if __name__ == "__main__":
    main()
