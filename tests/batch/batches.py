"""A model for batches: a prompt says what it does. And the commands before it."""

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from click.testing import CliRunner

from tests.fakes.simulated import Done, Place, Simulated
from toolwire.cli.commands import toolwire
from toolwire.simulator import Call, Decline, Question, Reply, reply


def answer(question: Question) -> Reply:
    """`RUN command`: one shell call, then its output. `REFUSE`: a refusal. Else an echo."""
    prompt = next(
        (
            message.text
            for message in question.request.messages
            if message.role == "user" and re.search(r"^(RUN|REFUSE|SAY|LOOP)", message.text, re.M)
        ),
        "",
    )
    results = sum(len(message.results) for message in question.request.messages)
    if "REFUSE" in prompt:
        return reply(Decline("no"))
    commands = re.findall(r"^RUN (.*)$", prompt, re.M)
    if "LOOP" in prompt:
        commands = [f"echo {results} >> loop.txt"] * (results + 1)
    if results < len(commands):
        return reply(Call.of("run_shell_command", command=commands[results]))
    return reply(f"done: {question.last_result[-300:]}" if results else "said")


def write_tasks(path: Path, tasks: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(task) + b"\n" for task in tasks))
    return path


def lines_of(out: Path) -> dict[str, dict[str, Any]]:
    found = (
        msgspec.json.decode(line) for line in (out / "results.jsonl").read_bytes().splitlines()
    )
    return {line["id"]: line for line in found}


def processes_with(words: str) -> list[str]:
    """Every process whose command line contains these words."""
    found = subprocess.run(["pgrep", "-af", words], capture_output=True, text=True).stdout
    return [line for line in found.splitlines() if "pgrep" not in line]


class Bench:
    """A folder, a model, and `toolwire batch` there."""

    def __init__(self, root: Path, sim: Simulated) -> None:
        self.place = Place(root)
        self.sim = sim
        self.out = root / "out"

    def run(self, tasks: list[dict[str, Any]], *options: str, **env: str) -> Done:
        file = write_tasks(self.place.work / "tasks.jsonl", tasks)
        given = ("--upstream", self.sim.upstream(), "-j", "4", "-q", *options)
        return self.batch("run", str(file), "-o", str(self.out), *given, env=env)

    def inside(self, *args: str) -> Done:
        """A command that starts nothing, in this process."""
        done = CliRunner().invoke(toolwire, ["batch", *args])
        return Done(done.exit_code, done.stdout, done.stderr)

    def batch(self, *args: str, env: dict[str, str] | None = None) -> Done:
        return self.place.toolwire("batch", *args, env=env)


def until(test: Callable[[], object], seconds: float = 180.0) -> None:
    """Waits until the test holds."""
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end
        time.sleep(0.02)
