"""One headless turn in a fresh process, against a scripted server: CPU and memory."""

import json
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from bench.report import Goal, Table
from bench.startup import Sample, Spawner

GEMINI_CPU_MS, GEMINI_RSS_MB = 2000.0, 250.0
"""What one headless turn of gemini-cli 0.61.0 takes; used where that program is not installed."""
GEMINI_VERSION = "0.61.0"
PROMPT = "Say what the notes are about."
_PEER_PROMPT = "Say what the others are about."
_ANSWER = "Only answer."
_SHELL = "Count the words."


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The middle of all runs of one command."""

    name: str
    cpu_ms: float
    wall_ms: float
    rss_mb: float
    measured: bool = True


def measure_turns(place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """Ours, and gemini-cli's where it is installed, interleaved."""
    folder = place / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("alpha 42\n")
    (folder / "others.txt").write_text("beta 42\n")
    script = place / "script.toml"
    script.write_text(_script(folder))
    with _serving(script) as origin:
        turns = _run(_commands(origin, folder, place), rounds, place)
    peer = next((turn for turn in turns if turn.name.startswith("gemini-cli")), None)
    note = ""
    if peer is None:
        note = (
            "gemini-cli is not installed: compared with the figures of its "
            f"{GEMINI_VERSION}, {GEMINI_CPU_MS / 1e3:g} s and {GEMINI_RSS_MB:g} MB."
        )
        peer = Turn(
            name=f"gemini-cli {GEMINI_VERSION} (not run)",
            cpu_ms=GEMINI_CPU_MS,
            wall_ms=0.0,
            rss_mb=GEMINI_RSS_MB,
            measured=False,
        )
        turns = (*turns, peer)
    rows = tuple(
        (turn.name, turn.cpu_ms, turn.wall_ms if turn.measured else None, turn.rss_mb)
        for turn in turns
    )
    table = Table("One headless turn", ("command", "CPU ms", "wall ms", "RSS MB"), rows, note)
    return table, _goals(turns[0], peer)


def _goals(ours: Turn, peer: Turn) -> tuple[Goal, ...]:
    where = peer.name
    cpu, memory = peer.cpu_ms / ours.cpu_ms, peer.rss_mb / ours.rss_mb
    return (
        Goal("headless turn: gemini-cli ÷ ours, CPU", 5, cpu, where, at_least=True),
        Goal("headless turn: the same, the aim", 8, cpu, where, at_least=True),
        Goal("headless turn: gemini-cli ÷ ours, memory", 4, memory, where, at_least=True),
    )


def _script(folder: Path) -> str:
    """Two small calls and an answer; one shell command and an answer; an answer alone."""
    notes, others = (json.dumps(str(folder / name)) for name in ("notes.txt", "others.txt"))
    here = json.dumps(str(folder))
    # The names of arguments changed between versions of gemini-cli, so it gets both.
    return f"""
[[reply]]
when = "{PROMPT}"
calls = [{{ name = "read_file", arguments = {{ absolute_path = {notes} }} }}]
[[reply]]
when = "alpha 42"
calls = [{{ name = "list_directory", arguments = {{ path = {here} }} }}]
[[reply]]
when = "{_PEER_PROMPT}"
calls = [{{ name = "read_file", arguments = {{ absolute_path = {others}, file_path = {others} }} }}]
[[reply]]
when = "beta 42"
calls = [{{ name = "list_directory", arguments = {{ path = {here}, dir_path = {here} }} }}]
[[reply]]
when = "{_SHELL}"
calls = [{{ name = "run_shell_command", arguments = {{ command = "wc -w notes.txt" }} }}]
[[reply]]
default = true
text = "They are about alpha, and the answer is 42."
"""


@contextmanager
def _serving(script: Path) -> Generator[str]:
    """The address of a scripted model in another process."""
    server = subprocess.Popen(
        [sys.executable, "-m", "toolwire", "simulate", str(script), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout is not None
        origin = server.stdout.readline().strip()
        if not origin.startswith("http"):
            raise RuntimeError("the scripted server did not start")
        yield origin
    finally:
        server.terminate()
        server.communicate()


def _commands(origin: str, folder: Path, place: Path) -> dict[str, list[str]]:
    program = str(Path(sys.executable).parent / "toolwire")
    ours = _inside(folder, f"HOME={place}", f"TOOLWIRE_HOME={place / 'own'}")
    upstream = f"openai-chat={origin}/v1,key=k,model=scripted"
    run = [*ours, program, "run", "--yolo", "--upstream", upstream]
    found = {
        "toolwire, two tool calls": [*run, PROMPT],
        "toolwire, answer alone": [*run, _ANSWER],
        "toolwire, a shell command": [*run, _SHELL],
        "bare python": [*ours, sys.executable, "-c", "pass"],
    }
    gemini = shutil.which("gemini")
    if gemini is not None:
        found[f"gemini-cli {_version(gemini)}, two tool calls"] = [
            *_gemini_environment(origin, folder, place),
            gemini,
            "--yolo",
            "--prompt",
            _PEER_PROMPT,
        ]
    return found


def _gemini_environment(origin: str, folder: Path, place: Path) -> list[str]:
    home = place / "gemini"
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    auth = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    settings.write_text(
        json.dumps({"security": auth, "privacy": {"usageStatisticsEnabled": False}})
    )
    return _inside(folder, f"HOME={home}", "GEMINI_API_KEY=k", f"GOOGLE_GEMINI_BASE_URL={origin}")


def _inside(folder: Path, *variables: str) -> list[str]:
    """The beginning of a command that runs in a folder, in the process that is measured."""
    return ["/bin/sh", "-c", 'cd "$0" && exec env "$@"', str(folder), *variables]


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "of an unknown version"


def _run(commands: dict[str, list[str]], rounds: int, place: Path) -> tuple[Turn, ...]:
    taken: dict[str, list[Sample]] = {name: [] for name in commands}
    spawner = Spawner(str(place / "bytecode"))
    try:
        for turn in range(rounds + 1):
            for name, command in commands.items():
                sample = spawner.run(command)
                if turn:
                    taken[name].append(sample)
    finally:
        spawner.close()
    return tuple(
        Turn(
            name=name,
            cpu_ms=median(sample.cpu_ms for sample in samples),
            wall_ms=median(sample.wall_ms for sample in samples),
            rss_mb=median(sample.rss_mb for sample in samples),
        )
        for name, samples in taken.items()
    )
