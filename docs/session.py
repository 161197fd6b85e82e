"""Draws docs/session.svg from a real run with the embedded model: `python -m docs.session`."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from evals.former.projects import build
from toolwire.storage.paths import state_paths

PROGRAM = str(Path(sys.executable).with_name("toolwire"))
COMMANDS = (
    ("From which total on is an order large? Find the function is_large.",),
    ("Find the setting page_size and double it.", "--allowed-tools", "replace"),
)


def _run(console: Console, folder: Path, arguments: list[str], shown: str) -> None:
    console.print(Text("$ ", style="bold green") + Text(shown, style="bold"))
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "TOOLWIRE_HOME": str(folder.parent / "home"),
        # The weights are those that the person who draws has fetched.
        "TOOLWIRE_LOCAL_WEIGHTS": str(_weights()),
    }
    done = subprocess.run(  # noqa: S603 - our own program
        [PROGRAM, *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    for line in done.stdout.replace(f"{folder}/", "").replace(str(folder), ".").splitlines():
        style = "dim green" if line.startswith("✓") else "dim" if line.startswith("…") else ""
        console.print(Text(line, style=style))
    console.print()


def _weights() -> Path:
    folder = state_paths(os.environ).cache / "models"
    return next(folder.glob("*1.5b*.gguf"))


def main() -> None:
    """Run the commands and write the picture."""
    console = Console(record=True, width=96, force_terminal=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "shop"
        folder.mkdir()
        build("shop", folder)
        for prompt, *options in COMMANDS:
            shown = " ".join(("toolwire run", f'"{prompt}"', *options))
            _run(console, folder, ["run", prompt, *options], shown)
        shown = "git diff -U0 config/settings.json"
        console.print(Text("$ ", style="bold green") + Text(shown, style="bold"))
        diff = subprocess.run(shown.split(), cwd=folder, capture_output=True, text=True, check=True)  # noqa: S603 - git
        for line in diff.stdout.splitlines()[4:]:
            console.print(
                Text(line, style="green" if line[0] == "+" else "red" if line[0] == "-" else "dim")
            )
    svg = console.export_svg(title="toolwire", unique_id="toolwire")
    # The fonts of the picture are the reader's own: nothing is fetched when it is shown.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    Path(__file__).with_name("session.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
