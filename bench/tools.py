"""The built-in tools beside what they stand on: ripgrep, fd, plain reads, a bare pipe."""

import tempfile
from pathlib import Path

from bench.report import Section
from bench.tool_calls import LOOP
from bench.tool_files import finding, reading, searching, tree
from bench.tool_shell import editing, output, starting


def measure(rounds: int, *, quick: bool = False) -> Section:
    """Files, search, deep reads, shell and edits; CPU of this process and its children."""
    with LOOP, tempfile.TemporaryDirectory(prefix="toolwire-bench-") as made:
        place = Path(made).resolve()
        root = tree(place / "tree", 5_000 if quick else 50_000)
        parts = (
            output(place, 10 if quick else 100, rounds),
            reading(place, 30 if quick else 200, rounds),
            finding(root, place, rounds),
            searching(root, place, rounds),
            starting(place, rounds),
            editing(place, rounds),
        )
    tables = tuple(table for table, _ in parts)
    return Section("tools", tables, tuple(goal for _, goals in parts for goal in goals))
