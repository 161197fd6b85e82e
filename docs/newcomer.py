"""Does what a newcomer does, and records it: `make newcomer`.

From a bare clone and a bare environment: install, a first answer, an edit that is approved at a
terminal, the session resumed. Every command runs in a pseudo terminal. Writes newcomer.md with the
seconds of each step, newcomer.cast (asciicast v2) and newcomer.svg.
"""

import argparse
import fcntl
import json
import os
import platform
import pty
import re
import select
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import TypeAlias

import msgspec
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WIDTH, HEIGHT = 96, 32
_PATIENCE = 900.0
Typed: TypeAlias = tuple[tuple[str, str], ...]
"""A text to wait for, and what is typed then."""
_CODE = "def greet(name):\n    print('Helo, ' + name)\n"
_SCRIPT = """
model = "sim-1"

[[reply]]
when = "What is in this directory"
text = "One Python file, hello.py, with a function greet(name)."

[[reply]]
when = "Fix the typo"
calls = [{ name = "read_file", arguments = { absolute_path = "FILE" } }]

[[reply]]
when = "def greet"
[[reply.calls]]
name = "replace"
[reply.calls.arguments]
file_path = "FILE"
old_string = "Helo"
new_string = "Hello"
instruction = "Fix the typo"

[[reply]]
when = "Successfully modified"
text = "Fixed: hello.py now prints Hello."

[[reply]]
when = "What did you change"
text = "One word in hello.py: Helo became Hello."
"""


class Step(msgspec.Struct, frozen=True):
    """One step and how long it took."""

    name: str
    shown: str
    seconds: float


class Recorder:
    """Runs commands in a pseudo terminal; what they print is recorded with its time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._begun = time.monotonic()
        self.events: list[tuple[float, str]] = []
        self.steps: list[Step] = []

    def run(
        self,
        name: str,
        shown: str,
        words: list[str],
        cwd: Path,
        environ: dict[str, str],
        typed: Typed = (),
    ) -> str:
        """Runs one step to its end; ends the program if it fails."""
        self._add(f"\x1b[1;32m$\x1b[0m \x1b[1m{shown}\x1b[0m\r\n")
        start = time.monotonic()
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
        process = subprocess.Popen(  # noqa: S603 - the commands of this file
            words,
            cwd=cwd,
            env=environ,
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)
        printed = self._follow(main, process, list(typed))
        seconds = time.monotonic() - start
        os.close(main)
        if process.wait():
            raise SystemExit(f"{shown} failed with exit code {process.returncode}:\n{printed}")
        self._add("\r\n")
        self.steps.append(Step(name, shown, seconds))
        print(f"{seconds:8.1f} s  {name}", flush=True)
        return printed

    def _follow(
        self, main: int, process: subprocess.Popen[bytes], typed: list[tuple[str, str]]
    ) -> str:
        printed, until = "", time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if select.select([main], [], [], 0.05)[0]:
                try:
                    piece = os.read(main, 65536).decode("utf-8", "replace")
                except OSError:
                    break
                printed += piece
                self._add(piece.replace(f"{self._folder}/", "").replace(str(self._folder), "~"))
            elif process.poll() is not None:
                break
            if typed and typed[0][0] in printed:
                os.write(main, typed.pop(0)[1].encode())
        else:
            process.kill()
            raise SystemExit(f"no end after {_PATIENCE:g} s:\n{printed}")
        return printed

    def _add(self, text: str) -> None:
        self.events.append((time.monotonic() - self._begun, text))

    def cast(self) -> str:
        """The recording as asciicast v2."""
        head = {
            "version": 2,
            "width": WIDTH,
            "height": HEIGHT,
            "timestamp": int(time.time()),
            "idle_time_limit": 2,
            "title": "toolwire: install, first answer, an edit, a session resumed",
            "env": {"TERM": "xterm-256color", "SHELL": "/bin/sh"},
        }
        lines = [json.dumps(head)]
        lines += [json.dumps([round(at, 3), "o", text]) for at, text in self.events]
        return "\n".join((*lines, ""))


_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-LN-Za-ln-z]|\x1b\][^\x07]*\x07")


def screen(events: list[tuple[float, str]]) -> list[str]:
    """The lines that remain on the screen; a line that was drawn over is its last state."""
    text = "".join(piece for _, piece in events)
    found: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        found.append(_CONTROL.sub("", line.rpartition("\r")[2]).rstrip())
    return found


def picture(events: list[tuple[float, str]]) -> str:
    """The recording's last screen, as long as it needs to be, as SVG."""
    console = Console(record=True, width=WIDTH, force_terminal=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123 - until the end
    blank = False
    for line in screen(events):
        if line or not blank:
            console.print(Text.from_ansi(line), soft_wrap=False)
        blank = not line
    svg = console.export_svg(title="toolwire: the first minutes")
    # No fonts from elsewhere.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def page(steps: list[Step]) -> str:
    """The figures as a page."""
    rows = "\n".join(f"| {one.name} | `{one.shown}` | {one.seconds:.1f} |" for one in steps)
    total = sum(one.seconds for one in steps)
    return f"""\
# The first minutes
Generated by `make newcomer`; do not edit by hand.

From a bare clone and a bare environment, each command in a terminal. The simulator answers in
place of a vendor's model, so the seconds are those of toolwire and of pip; with a model its own
time is added. The last two rows are the embedded model, its weights already fetched. The chat is
the one of plain lines, as on a terminal that cannot redraw.

| step | command | seconds |
|---|---|---:|
{rows}
| together | | {total:.1f} |

Measured with {_machine()}. The recording is
[newcomer.cast](newcomer.cast); play it with `asciinema play docs/newcomer.cast`.

![The recording](newcomer.svg)
"""


def _machine() -> str:
    cores, load = os.cpu_count(), os.getloadavg()[0]
    system = f"{platform.system()} {platform.machine()}"
    return f"Python {platform.python_version()} on {system}, {cores} cores, load {load:.0f}"


def main() -> None:
    """Runs all steps and writes the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the three files")
    parser.add_argument("--no-embedded", action="store_true", help="leave out the embedded model")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as place:
        recorder = Recorder(Path(place).resolve())
        _all_steps(recorder, Path(place).resolve(), embedded=not options.no_embedded)
    steps = recorder.steps
    (options.out / "newcomer.cast").write_text(recorder.cast(), "utf-8")
    (options.out / "newcomer.svg").write_text(picture(recorder.events), "utf-8")
    (options.out / "newcomer.md").write_text(page(steps), "utf-8")


def _all_steps(recorder: Recorder, place: Path, *, embedded: bool) -> None:
    clone, work, bin_ = place / "toolwire", place / "project", place / "env" / "bin"
    work.mkdir()
    (work / "hello.py").write_text(_CODE)
    environ = _environment(place, bin_)

    def step(name: str, words: list[str], cwd: Path = place, typed: Typed = ()) -> None:
        shown = shlex.join(words).replace("'", '"').replace(f"file://{ROOT}", "…/toolwire")
        recorder.run(name, shown, words, cwd, environ, typed)

    clone_words = ["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", "toolwire"]
    step("clone", clone_words)
    step("environment", ["python3", "-m", "venv", "env"])
    step("install", ["pip", "install", "--quiet", "./toolwire"])
    step("version", ["toolwire", "--version"])
    toolwire = str(bin_ / "toolwire")
    server, address = _simulator(toolwire, place, environ, work / "hello.py")
    # As a key would be: nothing of it is on the command line.
    environ["TOOLWIRE_SIMULATOR_BASE_URL"] = f"{address}/v1"
    environ["TOOLWIRE_DEFAULT_MODEL"] = "simulator/sim-1"
    try:
        step("first answer", ["toolwire", "run", "What is in this directory?"], work)
        answers = (("run it?", "y\n"), ("now prints Hello.", "\x04"))
        edit = ["toolwire", "Fix the typo in hello.py"]
        step("an edit, approved at the terminal", edit, work, answers)
        if "Hello, " not in (work / "hello.py").read_text():
            raise SystemExit("the file was not changed")
        step("the session resumed", ["toolwire", "run", "-c", "What did you change?"], work)
        # The Makefile makes an environment of its own in the clone.
        step("make run, the first time", ["make", "run", "ARGS=--version"], clone)
    finally:
        server.kill()
        server.wait()
    weights = Path("~/.cache/toolwire/models").expanduser()
    found = next(weights.glob("*1.5b*.gguf"), None) if embedded else None
    if found is not None:
        environ["TOOLWIRE_LOCAL_WEIGHTS"] = str(found)
        environ["TOOLWIRE_DEFAULT_MODEL"] = "local/qwen2.5-coder-1.5b"
        step("the engine of the embedded model", ["pip", "install", "--quiet", "./toolwire[local]"])
        step("its first answer", ["toolwire", "run", "What does hello.py print?"], work)


def _environment(place: Path, bin_: Path) -> dict[str, str]:
    return {
        "PATH": f"{bin_}:{Path(sys.executable).resolve().parent}:{os.environ['PATH']}",
        "HOME": str(place),
        "TOOLWIRE_HOME": str(place / "home"),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        **{name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_"))},
    }


def _simulator(
    toolwire: str, place: Path, environ: dict[str, str], file: Path
) -> tuple[subprocess.Popen[bytes], str]:
    script = place / "script.toml"
    script.write_text(_SCRIPT.replace("FILE", str(file)))
    server = subprocess.Popen(  # noqa: S603 - our own program
        [toolwire, "simulate", str(script), "--port", "0"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert server.stdout is not None  # noqa: S101 - made with the pipe
    found = re.search(rb"http://\S+", server.stdout.readline())
    assert found is not None  # noqa: S101 - its first line
    return server, found[0].decode()


if __name__ == "__main__":
    main()
