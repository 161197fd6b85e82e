import asyncio
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tools import shell_cases
from tests.tools.shell_cases import Case
from toolwire.tools.builtin.run_shell_command import TOOL
from toolwire.tools.shell.process_table import table
from toolwire.tools.shell.shells import end_shells
from toolwire.tools.spec import ToolContext, ToolSettings, Workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc"),
]

CASES = (
    *shell_cases.STAYING,
    *shell_cases.READING,
    *shell_cases.FLOODING,
    *shell_cases.PIPING,
    *shell_cases.ENDING,
)
LIMITS: dict[str, dict[str, float]] = {
    "": {"shell_seconds": 60, "shell_idle_seconds": 60},
    "idle": {"shell_seconds": 60, "shell_idle_seconds": 1},
    "wall": {"shell_seconds": 1, "shell_idle_seconds": 60},
}
REASON = {
    "idle": "stopped after 1 seconds without output",
    "wall": "stopped after 1 seconds, the time limit of a command",
}
TOGETHER = 7
"""Commands at once, where each takes as long as its limit."""
FIELDS = ("Error", "Exit Code", "Signal", "Background PIDs", "Process Group PGID")
_numbers = itertools.count(10_000_000 + os.getpid() * 1000)


@pytest.fixture
def number() -> int:
    return next(_numbers)


def context_in(folder: Path, limits: dict[str, Any]) -> ToolContext:
    (folder / "ws").mkdir(parents=True)
    place = Workspace(roots=(folder / "ws",), temp=folder / "temp", home=folder)
    return ToolContext(
        workspace=place,
        call_id="call",
        environ=dict(os.environ),
        settings=ToolSettings(**limits),
        emit=lambda text: None,
    )


def carrying(number: int) -> set[int]:
    """Living processes with the number on their command line, ourselves aside."""

    def found() -> Iterator[int]:
        for process in table():
            try:
                words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            except OSError:
                continue
            watching = b"fork_server" in words
            if str(number).encode() in words and process.state != "Z" and not watching:
                yield process.pid

    return set(found())


def facts(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.split("\n")[-len(FIELDS) :])


def output(text: str, command: str) -> str:
    start = text.index(f"Command: {command}\nDirectory: (root)\nOutput: ")
    body = text[start:].split("\nOutput: ", 1)[1]
    return body.rsplit("\nError: ", 1)[0].replace("(empty)", "")


async def told(command: str, context: ToolContext) -> str:
    return (await TOOL.run({"command": command}, context)).text


async def run(case: Case, command: str, folder: Path, number: int) -> tuple[str, set[int]]:
    try:
        async with asyncio.timeout(120):
            text = await told(command, context_in(folder, LIMITS[case.stops]))
        return text, carrying(number)
    finally:
        await end_shells("")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command[:60])
def test_nothing_survives_and_what_is_reported_is_true(
    case: Case, tmp_path: Path, number: int
) -> None:
    command = case.command.replace("{n}", str(number))
    text, alive = asyncio.run(run(case, command, tmp_path, number))
    assert carrying(number) == set()
    check(case, command, text, alive)


@pytest.mark.parametrize("start", range(0, len(shell_cases.HANGING), TOGETHER))
def test_a_limit_ends_what_would_hang(start: int, tmp_path: Path) -> None:
    cases = shell_cases.HANGING[start : start + TOGETHER]
    numbers = [next(_numbers) for _ in cases]
    commands = [
        case.command.replace("{n}", str(number))
        for case, number in zip(cases, numbers, strict=True)
    ]

    async def all_of_them() -> list[tuple[str, set[int]]]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(run(case, command, tmp_path / str(number), number))
                for case, command, number in zip(cases, commands, numbers, strict=True)
            ]
        return [task.result() for task in tasks]

    results = asyncio.run(all_of_them())
    for case, command, number, (text, alive) in zip(cases, commands, numbers, results, strict=True):
        assert (command, alive, carrying(number)) == (command, set(), set())
        check(case, command, text, alive)


def check(case: Case, command: str, text: str, alive: set[int]) -> None:
    fields = facts(text)
    assert tuple(fields) == FIELDS
    assert fields["Error"] == REASON.get(case.stops, "(none)")
    background = {int(pid) for pid in fields["Background PIDs"].split(", ") if pid != "(none)"}
    if case.left is None:
        assert background
    else:
        assert len(background) == case.left
        assert alive <= background
    if case.out is not None:
        assert output(text, command) == case.out
    if case.code is not None:
        assert (fields["Exit Code"], fields["Signal"]) == (str(case.code), "(none)")
    elif case.signal is not None:
        assert (fields["Exit Code"], fields["Signal"]) == ("(none)", str(case.signal))


@pytest.mark.parametrize("command", shell_cases.UNWATCHED)
def test_a_command_that_kills_its_watchdog_is_ended_and_reported(
    command: str, tmp_path: Path, number: int
) -> None:
    command = command.replace("{n}", str(number))
    text, alive = asyncio.run(run(Case(command), command, tmp_path, number))
    assert alive == set()
    assert facts(text)["Error"].startswith("the process that watched over the command was killed")
    assert facts(text)["Background PIDs"] == "(none)"


@pytest.mark.parametrize("command", shell_cases.CANCELLED)
def test_a_cancelled_command_ends_with_all_it_started(
    command: str, tmp_path: Path, number: int
) -> None:
    command = command.replace("{n}", str(number))

    async def cancelled() -> list[str]:
        context = context_in(tmp_path, LIMITS[""])
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            ready = await opened(tmp_path / "ws" / "ready")
            task = group.create_task(told(command, context))
            await ready
            task.cancel()
            try:
                await task
            except asyncio.CancelledError as error:
                return error.__notes__
        raise AssertionError("the command was not cancelled")

    notes = asyncio.run(cancelled())
    assert carrying(number) == set()
    assert len(notes) == 1
    assert notes[0].startswith(
        "Command was cancelled by user before it could complete. "
        "Below is the output before it was cancelled:\nsaid"
    )


async def opened(fifo: Path) -> asyncio.Future[None]:
    """Done when somebody writes into the fifo."""
    os.mkfifo(fifo)
    descriptor = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    loop = asyncio.get_running_loop()
    written: asyncio.Future[None] = loop.create_future()

    def seen() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        written.set_result(None)

    loop.add_reader(descriptor, seen)
    return written


def test_there_are_enough_of_them(counted: Any) -> None:
    groups = (CASES, shell_cases.HANGING, shell_cases.UNWATCHED, shell_cases.CANCELLED)
    number = sum(map(len, groups))
    counted(f"adversarial shell: {number} commands, nothing survived, nothing hung")
    assert number >= 100
