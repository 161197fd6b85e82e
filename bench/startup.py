"""Start-up: imports and commands in fresh processes, over bare Python."""

import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from bench.report import Goal, Section, Table

_CORE = "import toolwire.codec, toolwire.codec; from toolwire import dialects; "
_ALL_DIALECTS = _CORE + "[dialects.get(name) for name in dialects.NAMES]"
_SELF_TIME = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|( +)(\S+)")


class Sample(msgspec.Struct, frozen=True):
    """What one run of a command took."""

    cpu_ms: float
    wall_ms: float
    rss_mb: float


def measure(rounds: int, *, quick: bool = False) -> Section:
    """Ours and the peers' imports, interleaved; and what our import loads."""
    commands = _commands(quick)
    taken: dict[str, list[Sample]] = {name: [] for name in commands}
    with TemporaryDirectory() as bytecode:
        spawner = Spawner(bytecode)
        for turn in range(rounds + 1):
            for name, command in commands.items():
                sample = spawner.run(command)
                if turn:
                    taken[name].append(sample)
        spawner.close()
        loaded = _loaded(bytecode)
    found = {name: _middle(samples) for name, samples in taken.items()}
    bare = found["bare python"]
    rows = tuple(
        (
            name,
            sample.cpu_ms,
            sample.cpu_ms - bare.cpu_ms,
            sample.wall_ms,
            sample.rss_mb,
            sample.rss_mb - bare.rss_mb,
        )
        for name, sample in found.items()
    )
    columns = ("command", "CPU ms", "over bare", "wall ms", "RSS MB", "over bare ")
    return Section(
        "startup",
        (Table("Start-up", columns, rows), loaded),
        _goals(found),
    )


def _commands(quick: bool) -> dict[str, list[str]]:
    python = sys.executable
    ours = {
        "bare python": [python, "-c", "pass"],
        "import toolwire": [python, "-c", "import toolwire"],
        "import toolwire.codec": [python, "-c", "import toolwire.codec"],
        "all of the wire core": [python, "-c", _ALL_DIALECTS],
        "toolwire --version": [str(Path(python).parent / "toolwire"), "--version"],
        "import msgspec": [python, "-c", "import msgspec"],
        "import aiohttp": [python, "-c", "import aiohttp"],
    }
    peers = ("openai", "anthropic", "google.genai", "pydantic_ai")
    if quick:
        peers = peers[:1]
    return ours | {f"import {peer}": [python, "-c", f"import {peer}"] for peer in peers}


class Spawner:
    """The small process that starts the commands."""

    def __init__(self, bytecode: str) -> None:
        script = Path(__file__).parent / "spawn.py"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(bytecode),
        )

    def run(self, command: list[str]) -> Sample:
        """One run of a command."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\x1f".join(command) + "\n")
        self._process.stdin.flush()
        code, cpu, wall, rss = self._process.stdout.readline().split()
        if code != "0":
            raise RuntimeError(f"{' '.join(command)} exited with {code}")
        return Sample(float(cpu) * 1e3, float(wall) * 1e3, float(rss))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _environment(bytecode: str) -> dict[str, str]:
    # Users start from compiled modules; the uncounted first round writes them.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return environment


def _middle(samples: list[Sample]) -> Sample:
    return Sample(
        median(sample.cpu_ms for sample in samples),
        median(sample.wall_ms for sample in samples),
        median(sample.rss_mb for sample in samples),
    )


def _loaded(bytecode: str, limit: int = 12) -> Table:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import toolwire.codec"],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(bytecode),
    )
    own: dict[str, int] = {}
    for line in done.stderr.splitlines():
        found = _SELF_TIME.match(line)
        if found is not None:
            own[found.group(4)] = int(found.group(1))
    slowest = sorted(own.items(), key=lambda item: -item[1])[:limit]
    packages = sorted({name.partition(".")[0] for name in own} - set(sys.stdlib_module_names))
    note = f"{len(own)} modules; beyond the standard library: {', '.join(packages)}."
    rows = tuple((name, spent / 1e3) for name, spent in slowest)
    return Table("Loaded by `import toolwire.codec`", ("module", "own ms"), rows, note)


def _goals(found: dict[str, Sample]) -> tuple[Goal, ...]:
    bare, core = found["bare python"], found["all of the wire core"]
    version = found["toolwire --version"]
    return (
        Goal("start-up: importing the core over bare", 130, core.cpu_ms - bare.cpu_ms, unit="ms"),
        Goal("start-up: memory of the core", 40, core.rss_mb, unit="MB"),
        # The quickest agent command measured elsewhere takes 150 ms where bare Python takes 31.
        Goal("start-up: `toolwire --version`", 150, version.cpu_ms, unit="ms"),
    )
