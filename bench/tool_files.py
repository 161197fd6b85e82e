"""Files found, searched and read by the tools, beside ripgrep, fd, git, node and plain reads."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from bench.report import Cell, Goal, Table
from bench.tool_calls import MB, call, context_in, growth, program, taken
from toolwire.request import JsonObject
from toolwire.tools.builtin import glob, read_file, search_file_content
from toolwire.tools.files.text import INDEXES

_PATTERN = "needle_[0-9]+"
_GLOB = "**/*.ts"
_ENDS = (*(".py",) * 5, *(".ts",) * 3, *(".js",) * 2, ".md", ".json", ".txt", ".rs", ".go")
_WORDS = ("def", "class", "import", "return", "self", "value_1", "read_file", "token", "stream")
_NODE = """
const {globSync} = require(process.argv[1]);
const found = globSync("**/*.ts", {cwd: process.argv[2], nodir: true, dot: true, stat: true,
  withFileTypes: true, ignore: ["**/node_modules/**", "**/.git/**"]});
console.log(found.length);
"""


def tree(root: Path, files: int) -> Path:
    """A repository: three files in five are the project's, two lie in an ignored directory."""
    chosen = random.Random(3)
    bodies = [
        "".join(
            "    " * chosen.randint(0, 3) + " ".join(chosen.choices(_WORDS, k=6)) + "\n"
            for _ in range(chosen.randint(10, 200))
        )
        for _ in range(300)
    ]
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    place = root
    for number in range(files):
        if number % 25 == 0:
            base = root if number < files * 3 // 5 else root / "node_modules"
            way = [f"d{chosen.randint(0, 9)}" for _ in range(chosen.randint(1, 4))]
            place = base.joinpath(*way, f"m{number}")
            place.mkdir(parents=True)
        body = chosen.choice(bodies) + (f"needle_{number}\n" if number % 500 == 1 else "")
        (place / f"file{number}{chosen.choice(_ENDS)}").write_text(body)
    (root / ".gitignore").write_text(
        "node_modules/\n*.log\n__pycache__/\nbuild/\n!keep.log\n/dist\n*.tmp\n"
    )
    for number in range(10):
        (root / f"d{number}" / ".gitignore").write_text("*.bak\n/secret/\n")
    return root


def finding(root: Path, place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """Files by their names."""
    here = context_in(root, place)
    runs: dict[str, Callable[[], object]] = {
        f"glob {_GLOB}": lambda: call(glob.TOOL, {"pattern": _GLOB}, here),
        "glob **/*": lambda: call(glob.TOOL, {"pattern": "**/*"}, here),
    }
    if rg := _ripgrep():
        runs["rg --files"] = lambda: program(rg, "--files", str(root))
        runs[f"rg --files -g {_GLOB}"] = lambda: program(rg, "--files", "-g", _GLOB, str(root))
        runs["rg --files, by time"] = lambda: program(rg, "--files", "--sortr=modified", str(root))
    if fd := shutil.which("fd") or shutil.which("fdfind"):
        runs["fd -e ts"] = lambda: program(fd, "-e", "ts", ".", str(root))
    if node := _node_glob():
        runs["node glob"] = lambda: program("node", "-e", _NODE, node, str(root))
    absent = [name for name, there in (("rg", rg), ("fd", fd), ("node's glob", node)) if not there]
    cost = taken(runs, rounds)
    rows = tuple((name, cost[name] / 1e3) for name in runs)
    note = "Ours and `by time` are sorted by time, which takes a look at every file found."
    if absent:
        note += f" Absent: {', '.join(absent)}."
    goals: list[Goal] = []
    if rg:
        goals = [
            Goal("glob ÷ rg --files", 1.5, cost.ratio(f"glob {_GLOB}", "rg --files")),
            Goal("glob of all ÷ rg by time", 1.5, cost.ratio("glob **/*", "rg --files, by time")),
        ]
    if node:
        ratio = cost.ratio("node glob", f"glob {_GLOB}")
        goals.append(Goal("node's glob ÷ glob", 6, ratio, at_least=True))
    return Table("Tools: find files", ("way", "CPU in ms"), rows, note), tuple(goals)


def _ripgrep() -> str:
    near = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return shutil.which("rg", path=near) or ""


def _node_glob() -> str:
    """The package `glob` that node finds, or that npm brings along; empty if there is none."""
    node = shutil.which("node")
    if not node:
        return ""
    places = [Path(node).resolve().parents[1], Path("/usr"), Path("/usr/local")]
    packages = [
        *(Path(one) / "glob" for one in os.environ.get("NODE_PATH", "").split(os.pathsep) if one),
        *(one / "lib/node_modules/npm/node_modules/glob" for one in places),
    ]
    for package in packages:
        about = package / "package.json"
        if about.is_file() and int(json.loads(about.read_text())["version"].split(".")[0]) >= 9:
            return str(package)
    return ""


def searching(root: Path, place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """Lines in files, by each of our ways."""
    words: JsonObject = {"pattern": _PATTERN}

    def ours(way: str) -> Callable[[], object]:
        here = context_in(root, place, search_with=way)
        return lambda: call(search_file_content.TOOL, words, here)

    runs: dict[str, Callable[[], object]] = {
        "search by git grep": ours("git"),
        "search by ourselves": ours("own"),
    }
    if rg := _ripgrep():
        runs["search by ripgrep"] = ours("rg")
        runs["rg alone"] = lambda: program(rg, "-n", "-i", "-e", _PATTERN, str(root))
    cost = taken(runs, rounds)
    rows = tuple((name, cost[name] / 1e3) for name in runs)
    table = Table("Tools: search in files", ("way", "CPU in ms"), rows)
    if not rg:
        return table, ()
    return table, (
        Goal("search ÷ the ripgrep it calls", 1.15, cost.ratio("search by ripgrep", "rg alone")),
        Goal("search by git grep ÷ ripgrep", 1.5, cost.ratio("search by git grep", "rg alone")),
        Goal("search by ourselves ÷ ripgrep", 1.5, cost.ratio("search by ourselves", "rg alone")),
    )


def reading(place: Path, megabytes: int, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """Lines near the end of a long file, the first time and again."""
    file = place / "long.txt"
    line = b"x" * 99 + b"\n"
    with file.open("wb") as out:
        for _ in range(megabytes):
            out.write(line * (MB // 100))
    # Read at once, it would count as still being written.
    os.utime(file, (1, 1))
    deep = megabytes * (MB // 100) - 3000
    where: JsonObject = {"absolute_path": str(file), "offset": deep, "limit": 2000}
    here = context_in(place, place)
    grown = growth(lambda: call(read_file.TOOL, where, here))

    def first() -> object:
        INDEXES.forget()
        return call(read_file.TOOL, where, here)

    def sliced() -> list[bytes]:
        with file.open("rb") as source:
            return list(islice(source, deep, deep + 2000))

    def whole() -> list[bytes]:
        with file.open("rb") as source:
            return source.readlines()[deep : deep + 2000]

    runs: dict[str, Callable[[], object]] = {
        "read_file, the first time": first,
        "read_file, the next time": lambda: call(read_file.TOOL, where, here),
        "binary islice": sliced,
        "readlines": whole,
    }
    cost = taken(runs, rounds)
    rows: tuple[tuple[Cell, ...], ...] = tuple((name, cost[name] / 1e3) for name in runs)
    note = f"2,000 lines near the end of {megabytes} MB; memory grew by {grown:.1f} MB."
    table = Table("Tools: a deep read", ("way", "CPU in ms"), rows, note)
    ours, again, bare, naive = runs
    goals = (
        Goal("first deep read ÷ a binary islice", 1.2, cost.ratio(ours, bare)),
        Goal("readlines ÷ the next deep read", 50, cost.ratio(naive, again), at_least=True),
        Goal("deep read: memory grows by", 16, grown, unit="MB"),
    )
    file.unlink()
    return table, goals
