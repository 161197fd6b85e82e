"""Draws docs/session.svg from a real run of the agent: `python docs/session.py`.

The model is the simulator's, so that the picture comes out the same; everything else is real.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from rich.console import Console
from rich.text import Text

from toolwire.simulator import Call, Reply, Simulator
from toolwire.simulator.script import Say

PROGRAM = str(Path(sys.executable).with_name("toolwire"))
PRICES = """def total(prices, discount):
    return sum(prices) - discount * 100
"""
TEST = """from prices import total

assert total([40, 60], 0.1) == 90
print("1 test passed")
"""


def _replies(folder: Path) -> list[Reply]:
    file = str(folder / "prices.py")
    edit = Call.of(
        "replace",
        file_path=file,
        instruction="Take the discount as a share of the sum.",
        old_string="    return sum(prices) - discount * 100\n",
        new_string="    return sum(prices) * (1 - discount)\n",
    )
    test = Call.of("run_shell_command", command="python3 test_prices.py")
    words = "The discount was taken as a fixed amount. It is a share now, and the test passes."
    return [
        Reply(pieces=(Say("I read the function and its test."), _reads(file))),
        Reply(pieces=(edit,)),
        Reply(pieces=(test,)),
        Reply(pieces=(Say(words),)),
        Reply(pieces=(Say("A share: total([40, 60], 0.1) takes a tenth off and gives 90."),)),
    ]


def _reads(file: str) -> Call:
    return Call.of("read_many_files", paths=[file, file.replace("prices", "test_prices")])


def _run(console: Console, folder: Path, shown: str, arguments: list[str]) -> None:
    console.print(Text("$ ", style="bold green") + Text(shown, style="bold"))
    environ = {**os.environ, "TOOLWIRE_HOME": str(folder.parent / "home")}
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
    for line in done.stdout.replace(f"{folder}/", "").splitlines():
        style = "dim green" if line.startswith("✓") else ""
        console.print(Text(line, style=style))
    console.print()


def main() -> None:
    """Run the commands and write the picture."""
    console = Console(record=True, width=96, force_terminal=True)
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "shop"
        folder.mkdir()
        (folder / "prices.py").write_text(PRICES)
        (folder / "test_prices.py").write_text(TEST)
        simulator = Simulator(_replies(folder))
        asyncio.run_coroutine_threadsafe(simulator.__aenter__(), loop).result()
        upstream = ["--upstream", f"openai-chat={simulator.origin}/v1"]
        _run(
            console,
            folder,
            'toolwire run "the test fails, mend it" --approval-mode auto_edit \\\n'
            '    --allowed-tools "run_shell_command(python3)"',
            [
                "run",
                "the test fails, mend it",
                "--approval-mode",
                "auto_edit",
                "--allowed-tools",
                "run_shell_command(python3)",
                *upstream,
            ],
        )
        _run(
            console,
            folder,
            'toolwire run --continue "a share or an amount?"',
            ["run", "--continue", "a share or an amount?", *upstream],
        )
        _run(console, folder, "toolwire sessions list", ["sessions", "list"])
    svg = console.export_svg(title="toolwire", unique_id="toolwire")
    # The fonts of the picture are the reader's own: nothing is fetched when it is shown.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    Path(__file__).with_name("session.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
