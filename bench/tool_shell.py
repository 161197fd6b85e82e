"""Output of commands, their start, and edits, beside bare pipes and `subprocess`."""

import asyncio
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench.report import Goal, Table
from bench.tool_calls import MB, apart, awaited, call, context_in, growth, run, taken
from toolwire.request import JsonObject
from toolwire.tools.builtin import replace, run_shell_command
from toolwire.tools.spec import ToolContext

_STARTS = 100


def output(place: Path, megabytes: int, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """A flood of output, bounded in memory, and a loop that goes on meanwhile."""
    command = f"yes {'x' * 79} | head -c {megabytes * MB}"
    here = context_in(place, place)
    grown = growth(lambda: call(run_shell_command.TOOL, {"command": command}, here))
    gaps = [run(_longest_gap(command, here)) for _ in range(rounds)]
    runs: dict[str, Callable[[], object]] = {
        "run_shell_command": lambda: call(run_shell_command.TOOL, {"command": command}, here),
        "a bare os.read loop": lambda: _drained(command),
        "communicate()": lambda: run(_communicated(command)),
    }

    def tidy() -> None:
        # Every call of a session has a file of its own; only ours here share one.
        (here.workspace.temp / "bench.output").unlink(missing_ok=True)

    cost, together = apart(runs, rounds, tidy)
    rows = tuple((name, cost[name] / 1e3, together[name] / 1e3) for name in runs)
    longest = median(gap for gap, _ in gaps) * 1e3
    worked = median(cpu for _, cpu in gaps) * 1e3
    note = (
        f"Memory grew by {grown:.1f} MB; the loop was blocked for at most {longest:.1f} ms "
        f"({worked:.1f} ms of CPU), the median of {rounds} runs. Goals are judged without the "
        f"command's own CPU, which is nobody's merit; with it, ours ÷ the bare loop is "
        f"{together.ratio(*list(runs)[:2]):.2f}."
    )
    heads = ("way", "CPU in ms", "with the command's")
    table = Table(f"Tools: {megabytes} MB of shell output", heads, rows, note)
    ours, bare, theirs = runs
    return table, (
        Goal("shell output ÷ a bare read loop", 1.5, cost.ratio(ours, bare)),
        Goal("communicate() ÷ shell output", 4, cost.ratio(theirs, ours), at_least=True),
        Goal("shell output: memory grows by", 16, grown, unit="MB"),
        Goal("shell output: the loop is blocked for", 10, longest, unit="ms"),
    )


async def _longest_gap(command: str, context: ToolContext) -> tuple[float, float]:
    """The longest time between two turns of a task that wants to run every millisecond."""
    task = asyncio.ensure_future(awaited(run_shell_command.TOOL, {"command": command}, context))
    longest = worked = 0.0
    last, cpu = time.perf_counter(), time.thread_time()
    while not task.done():
        await asyncio.sleep(0.001)
        now, used = time.perf_counter(), time.thread_time()
        longest, worked = max(longest, now - last - 0.001), max(worked, used - cpu)
        last, cpu = now, used
    await task
    return longest, worked


async def _communicated(command: str) -> str:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=pipe)
    said, _ = await child.communicate()
    return said.decode()


def _drained(command: str) -> int:
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        total = 0
        while piece := os.read(child.stdout.fileno(), 65536):
            total += len(piece)
    return total


def starting(place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """Commands that do nothing, one after the other in one session."""
    here = context_in(place, place)

    async def ours() -> None:
        for _ in range(_STARTS):
            await awaited(run_shell_command.TOOL, {"command": "true"}, here)

    def theirs(*words: str) -> None:
        for _ in range(_STARTS):
            subprocess.run(words, capture_output=True, check=True)

    runs: dict[str, Callable[[], object]] = {
        "run_shell_command": lambda: run(ours()),
        "subprocess.run of bash": lambda: theirs("bash", "-c", "true"),
        "subprocess.run of /bin/true": lambda: theirs("/bin/true"),
    }
    cost = taken(runs, rounds)
    rows = tuple((name, cost[name] / _STARTS / 1e3) for name in runs)
    table = Table("Tools: start of a command", ("way", "CPU in ms"), rows)
    ours_, bash, _ = runs
    return table, (Goal("start of a command ÷ subprocess.run", 1.5, cost.ratio(ours_, bash)),)


def editing(place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """One line changed in files of two sizes."""
    files = {size: place / f"edit{size}.py" for size in (5_000, 20_000)}
    turn = {"n": 0}

    def edit(size: int) -> Callable[[], object]:
        def work() -> object:
            turn["n"] += 1
            text = "".join(f"value_{number} = {number}\n" for number in range(size))
            files[size].write_text(text.replace("value_2500 = 2500", f"marker = {turn['n']}"))
            change: JsonObject = {
                "file_path": str(files[size]),
                "instruction": "Change the marker.",
                "old_string": f"marker = {turn['n']}\n",
                "new_string": f"marker = -{turn['n']}\n",
            }
            return call(replace.TOOL, change, context_in(place, place))

        return work

    runs = {f"{size:,} lines": edit(size) for size in files}
    cost = taken(runs, rounds)
    rows = tuple((name, cost[name] / 1e3) for name in runs)
    table = Table("Tools: an edit", ("file", "CPU in ms"), rows)
    return table, (Goal("edit: 4 × the lines", 4.4, cost.ratio("20,000 lines", "5,000 lines")),)
