"""The built-in tools beside what they stand on: ripgrep, fd, plain reads, a bare pipe."""

import asyncio
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from bench.measure import Samples
from bench.report import Cell, Goal, Section, Table
from toolwire.request import JsonObject
from toolwire.tools.builtin import glob, read_file, replace, run_shell_command, search_file_content
from toolwire.tools.spec import Tool, ToolContext, Workspace

_MB = 1 << 20
_PATTERN = "needle_[0-9]+"


def measure(rounds: int, *, quick: bool = False) -> Section:
    """Files, search, deep reads, shell output and edits; CPU of this process and its children."""
    with tempfile.TemporaryDirectory(prefix="toolwire-bench-") as made:
        place = Path(made).resolve()
        tree = _tree(place / "tree", 5_000 if quick else 50_000)
        parts = (
            _searching(tree, place, rounds),
            _reading(place, 20 if quick else 200, rounds),
            _shell(place, 10 if quick else 100, rounds),
            _editing(place, rounds),
        )
    tables = tuple(table for table, _ in parts)
    return Section("tools", tables, tuple(goal for _, goals in parts for goal in goals))


def _tree(root: Path, files: int) -> Path:
    """Small files in nested folders, some of them ignored at two depths."""
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    for number in range(files):
        folder = root / f"part{number % 50}" / f"sub{number // 50 % 20}"
        if number < 1000:
            folder.mkdir(parents=True, exist_ok=True)
        ending = "log" if number % 25 == 0 else "py"
        word = f"needle_{number}" if number % 500 == 1 else "straw"
        (folder / f"file{number}.{ending}").write_text(f"def f{number}():\n    return '{word}'\n")
    for number in range(50):
        (root / f"part{number}" / ".gitignore").write_text("*.tmp\n")
    return root


def _searching(tree: Path, place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    rg = shutil.which("rg", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    here = _context(tree, place)
    own = _context(tree, place, search_with="own")
    runs: dict[str, Callable[[], object]] = {
        "glob (ours)": lambda: _call(glob.TOOL, {"pattern": "**/*.py"}, here),
        "search (ours)": lambda: _call(search_file_content.TOOL, {"pattern": _PATTERN}, here),
        "search, own engine": lambda: _call(search_file_content.TOOL, {"pattern": _PATTERN}, own),
    }
    if rg:
        runs["rg --files"] = lambda: _program(rg, "--files", "-g", "*.py", str(tree))
        runs["rg search"] = lambda: _program(rg, "-n", "-i", "-e", _PATTERN, str(tree))
    fd = shutil.which("fd") or shutil.which("fdfind")
    if fd:
        runs["fd"] = lambda: _program(fd, "-e", "py", ".", str(tree))
    cost = _interleaved(runs, rounds)
    rows = tuple((name, cost[name] / 1e3) for name in runs)
    table = Table("Tools: find and search", ("way", "CPU in ms"), rows)
    if not rg:
        return table, ()
    return table, (
        Goal("glob ÷ rg --files", 1.5, cost.ratio("glob (ours)", "rg --files")),
        Goal("search ÷ the ripgrep it calls", 1.15, cost.ratio("search (ours)", "rg search")),
        Goal("own search ÷ ripgrep", 1.5, cost.ratio("search, own engine", "rg search")),
    )


def _reading(place: Path, megabytes: int, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    file = place / "long.txt"
    line = b"x" * 99 + b"\n"
    with file.open("wb") as out:
        for _ in range(megabytes):
            out.write(line * (_MB // 100))
    lines = megabytes * (_MB // 100)
    deep = lines - 3000
    where: JsonObject = {"absolute_path": str(file), "offset": deep, "limit": 2000}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    here = _context(place, place)
    _call(read_file.TOOL, where, here)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024

    def sliced() -> list[bytes]:
        with file.open("rb") as source:
            return list(islice(source, deep, deep + 2000))

    runs: dict[str, Callable[[], object]] = {
        "read_file, the next time": lambda: _call(read_file.TOOL, where, here),
        "binary islice": sliced,
        "readlines": lambda: file.read_bytes().splitlines()[deep : deep + 2000],
    }
    cost = _interleaved(runs, rounds)
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, cost[name] / 1e3) for name in runs)
    note = f"2,000 lines near the end of {megabytes} MB; memory grew by {grown:.0f} MB."
    table = Table("Tools: a deep read", ("way", "CPU in ms"), rows, note)
    goals = (
        Goal("deep read ÷ a binary islice", 1.2, cost.ratio(*list(runs)[:2])),
        Goal("deep read: memory grows by", 16, grown, unit="MB"),
    )
    file.unlink()
    return table, goals


def _shell(place: Path, megabytes: int, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    command = f"head -c {megabytes * _MB} /dev/zero | tr '\\0' 'y'"
    here = _context(place, place)
    runs: dict[str, Callable[[], object]] = {
        "run_shell_command": lambda: _call(run_shell_command.TOOL, {"command": command}, here),
        "a bare os.read loop": lambda: _drained(command),
        "communicate()": lambda: subprocess.run(
            ["bash", "-c", command], stdout=subprocess.PIPE, check=True
        ).stdout.decode(),
    }
    cost = _interleaved(runs, rounds)
    rows = tuple((name, cost[name] / 1e3) for name in runs)
    table = Table(f"Tools: {megabytes} MB of shell output", ("way", "CPU in ms"), rows)
    return table, (Goal("shell output ÷ a bare read loop", 1.5, cost.ratio(*list(runs)[:2])),)


def _editing(place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
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
            return _call(replace.TOOL, change, _context(place, place))

        return work

    runs = {f"{size:,} lines": edit(size) for size in files}
    cost = _interleaved(runs, rounds)
    rows = tuple((name, cost[name] / 1e3) for name in runs)
    table = Table("Tools: an edit", ("file", "CPU in ms"), rows)
    return table, (Goal("edit: 4 × the lines", 4.4, cost.ratio("20,000 lines", "5,000 lines")),)


def _context(root: Path, place: Path, **settings: object) -> ToolContext:
    temp = place / "temp"
    temp.mkdir(exist_ok=True)
    workspace = Workspace(roots=(root,), temp=temp, home=place)
    environ = {"PATH": os.environ["PATH"], "HOME": str(place)}
    return ToolContext(
        workspace=workspace, call_id="bench", environ=environ, settings=settings, emit=_silent
    )


def _silent(text: str) -> None:
    del text


def _call(tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    return asyncio.run(_awaited(tool, arguments, context))


async def _awaited(tool: Tool, arguments: JsonObject, context: ToolContext) -> object:
    return await tool.run(arguments, context)


def _program(*words: str) -> bytes:
    return subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout


def _drained(command: str) -> int:
    with subprocess.Popen(["bash", "-c", command], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        total = 0
        while piece := os.read(child.stdout.fileno(), 65536):
            total += len(piece)
    return total


def _interleaved(runs: dict[str, Callable[[], object]], rounds: int) -> Samples:
    """CPU of this process and its ended children, in µs."""
    samples = Samples()
    for number in range(rounds + 1):
        for name, work in runs.items():
            before = _used()
            work()
            if number:
                samples.add(name, (_used() - before) * 1e6)
    return samples


def _used() -> float:
    spent = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        spent += usage.ru_utime + usage.ru_stime
    return spent
