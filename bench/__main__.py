"""`python -m bench [--quick] [--rounds N] [SECTION ...]`; without sections, all of them."""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.report import Goal, Section, as_json, render, render_goals

WIRE = ("memory", "loopback", "growth", "arguments", "requests", "startup")
SECTIONS = (*WIRE, "tools", "agent", "mcp", "gateway", "terminal", "batch")
OUT = Path(__file__).parent / "out" / "wire.json"
_PEERS = (
    "msgspec",
    "aiohttp",
    "mcp",
    "openai",
    "anthropic",
    "google-genai",
    "pydantic-ai-slim",
    "jiter",
)


def main() -> None:
    """Measure, print the tables, keep the figures."""
    chosen = _arguments()
    rounds: int = chosen.rounds or (3 if chosen.quick else 5)
    names: list[str] = chosen.sections or list(SECTIONS)
    if "wire" in names:
        names = list(WIRE)
    sections: list[Section] = []
    for name in names:
        begun = time.monotonic()
        measure: Callable[..., Section] = import_module(f"bench.{name}").measure
        section = measure(rounds, quick=chosen.quick)
        sections.append(section)
        for table in section.tables:
            print(render(table), flush=True)
        print(f"({name}: {time.monotonic() - begun:.0f} s)\n", file=sys.stderr, flush=True)
    goals: tuple[Goal, ...] = tuple(goal for section in sections for goal in section.goals)
    print(render_goals(goals))
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_bytes(as_json(_environment(rounds), tuple(sections)))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, "wire", []], metavar="SECTION")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter streams")
    parser.add_argument("--rounds", type=int, default=0, help="how often each figure is taken")
    return parser.parse_args()


def _environment(rounds: int) -> dict[str, str]:
    found = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": str(os.cpu_count()),
        "rounds": str(rounds),
    }
    for name in _PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found


if __name__ == "__main__":
    main()
