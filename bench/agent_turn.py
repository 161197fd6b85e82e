"""One headless turn in a fresh process, against a scripted server: CPU and memory.

Ours and every other agent that is installed take turns; ratios are of measured runs only.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from bench.agent_peers import PEERS, Peer, folder_of
from bench.report import Goal, Table
from bench.startup import Sample, Spawner

PROMPT = "Say what the notes are about."
OURS = "toolwire, two tool calls"
_ANSWER = "Only answer."
_SHELL = "Count the words."
_COLUMNS = ("command", "CPU ms", "wall ms", "RSS MB", "CPU ÷ ours", "RSS ÷ ours")


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The middle of all runs of one command."""

    name: str
    cpu_ms: float
    wall_ms: float
    rss_mb: float
    cpu_ratio: float | None = None
    """To ours, the middle of the ratios within each round; for other agents only."""
    rss_ratio: float | None = None


def measure_turns(place: Path, rounds: int) -> tuple[Table, tuple[Goal, ...]]:
    """Ours, and every other agent that is installed and does the turn, interleaved."""
    folder = place / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("alpha 42\n")
    script = place / "script.toml"
    script.write_text(_script(folder) + "".join(one.script(folder_of(one, place)) for one in PEERS))
    with serving(script) as origin:
        commands, left_out = installed_peers(origin, place)
        turns = _run(_commands(origin, folder, place) | commands, rounds, place)
    rows = tuple(
        (one.name, one.cpu_ms, one.wall_ms, one.rss_mb, one.cpu_ratio, one.rss_ratio)
        for one in turns
    )
    note = f"Not compared: {'; '.join(left_out)}." if left_out else ""
    return Table("One headless turn", _COLUMNS, rows, note), goals(turns)


def installed_peers(origin: str, place: Path) -> tuple[dict[str, list[str]], list[str]]:
    """Commands of the agents that can be measured, and the others with the reason."""
    commands: dict[str, list[str]] = {}
    left_out: list[str] = []
    for peer in PEERS:
        name, why = peer.name, _missing(peer)
        if not why:
            command = peer.command(origin, place)
            name, why = f"{name} {peer.version()}", peer.complaint(command)
            if not why:
                commands[f"{name}, two tool calls"] = command
                continue
        left_out.append(f"{name} ({why})")
    return commands, left_out


def _missing(peer: Peer) -> str:
    return "" if shutil.which(peer.program) else f"`{peer.program}` is not on the path"


def goals(turns: tuple[Turn, ...]) -> tuple[Goal, ...]:
    """Against gemini-cli, if it was measured."""
    peer = next((one for one in turns if one.name.startswith("gemini-cli")), None)
    if peer is None or peer.cpu_ratio is None or peer.rss_ratio is None:
        return ()
    where = peer.name
    return (
        Goal("headless turn: gemini-cli ÷ ours, CPU", 5, peer.cpu_ratio, where, at_least=True),
        Goal("headless turn: the same, the aim", 8, peer.cpu_ratio, where, at_least=True),
        Goal("headless turn: gemini-cli ÷ ours, memory", 4, peer.rss_ratio, where, at_least=True),
    )


def _script(folder: Path) -> str:
    """Two small calls and an answer; one shell command and an answer; an answer alone."""
    notes, here = json.dumps(str(folder / "notes.txt")), json.dumps(str(folder))
    listing = json.dumps(f"Directory listing for {folder}:")
    return f"""
[[reply]]
when = "{PROMPT}"
calls = [{{ name = "read_file", arguments = {{ absolute_path = {notes} }} }}]
[[reply]]
when = "alpha 42"
calls = [{{ name = "list_directory", arguments = {{ path = {here} }} }}]
[[reply]]
when = "{_SHELL}"
calls = [{{ name = "run_shell_command", arguments = {{ command = "wc -w notes.txt" }} }}]
[[reply]]
when = "{_ANSWER}"
text = "The answer is 42."
[[reply]]
when = {listing}
text = "They are about alpha, and the answer is 42."
[[reply]]
when = "2 notes.txt"
text = "There are two words."
"""


@contextmanager
def serving(script: Path) -> Generator[str]:
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
    return {
        OURS: [*run, PROMPT],
        "toolwire, answer alone": [*run, _ANSWER],
        "toolwire, a shell command": [*run, _SHELL],
        "bare python": [*ours, sys.executable, "-c", "pass"],
    }


def _inside(folder: Path, *variables: str) -> list[str]:
    """The beginning of a command that runs in a folder, in the process that is measured."""
    return ["/bin/sh", "-c", 'cd "$0" && exec env "$@"', str(folder), *variables]


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
    return tuple(middle(name, samples, taken[OURS]) for name, samples in taken.items())


def middle(name: str, samples: list[Sample], ours: list[Sample]) -> Turn:
    """The medians of a command; of another agent also the ratios to ours."""
    pairs = list(zip(samples, ours, strict=True)) if name.endswith("calls") and name != OURS else []
    return Turn(
        name=name,
        cpu_ms=median(one.cpu_ms for one in samples),
        wall_ms=median(one.wall_ms for one in samples),
        rss_mb=median(one.rss_mb for one in samples),
        cpu_ratio=median(one.cpu_ms / our.cpu_ms for one, our in pairs) if pairs else None,
        rss_ratio=median(one.rss_mb / our.rss_mb for one, our in pairs) if pairs else None,
    )
