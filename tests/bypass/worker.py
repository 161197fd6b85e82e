"""Runs cases inside the container: reads a list of them, writes what each did."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from tests.bypass.canaries import Canaries
from tests.bypass.case import Case, Seen
from tests.bypass.container import contained
from tests.bypass.world import ENVIRON_SECRETS, HOME, PROJECT, Kind, build_world, reset_world
from toolwire.agent.events import AgentEvent, Emit, ToolStarted
from toolwire.app import Toolbox, open_toolbox
from toolwire.config import Settings
from toolwire.messages import Outcome, ToolCall, ToolResult
from toolwire.policy import Mode
from toolwire.tools.spec import ToolSettings

_NOT_RUN = {Outcome.DENIED, Outcome.NOT_RUN}
_SECONDS = 5.0
_LATE = re.compile(r"(?<![>&])&(?![>&\d])|coproc|setsid|\bat ")
"""Commands that may still work after their call is answered."""
_cases = msgspec.json.Decoder(list[Case])
_seen = msgspec.json.Decoder(list[Seen])


def run_cases(cases: Sequence[Case], kind: Kind = "hostile", seconds: float = 900) -> list[Seen]:
    """What each case does, in a container of its own; called outside of it."""
    done = contained(
        [sys.executable, "-m", "tests.bypass.worker", kind],
        given=msgspec.json.encode(cases).decode(),
        seconds=seconds,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return _seen.decode(done.stdout)


def main() -> None:
    """The container's side."""
    cases = _cases.decode(sys.stdin.buffer.read())
    build_world("hostile" if sys.argv[1] == "hostile" else "ordinary")
    with Canaries() as canaries:
        found = asyncio.run(_run_all(cases, canaries))
    sys.stdout.buffer.write(msgspec.json.encode(found))


async def _run_all(cases: Sequence[Case], canaries: Canaries) -> list[Seen]:
    found: dict[int, Seen] = {}
    groups: dict[tuple[str, str, str], list[int]] = {}
    for number, case in enumerate(cases):
        groups.setdefault((case.mode, case.rules, case.path), []).append(number)
    for (mode, rules, path), numbers in groups.items():
        (HOME / ".toolwire/policy.toml").write_text(rules)
        async with _workshop(mode, path) as workshop:
            canaries.arm()
            for number in numbers:
                found[number] = await _run(cases[number], workshop, canaries)
        reset_world()
    return [found[number] for number in range(len(cases))]


async def _run(case: Case, workshop: Toolbox, canaries: Canaries) -> Seen:
    scheduler = workshop.scheduler(emit=_forgetting(canaries))
    if case.before:
        _prepare(case.before)
        canaries.arm()
    results: list[ToolResult] = []
    for number, call in enumerate(case.calls):
        arguments = msgspec.json.encode(call.arguments).decode()
        one = ToolCall(id=f"call-{number}", name=call.tool, arguments=arguments)
        results += (await scheduler.run([one])).results
    outcomes = tuple(str(result.outcome) for result in results)
    if all(result.outcome in _NOT_RUN for result in results) and not case.before:
        canaries.skip()
        return Seen(outcomes=outcomes, effects=(), text=results[-1].text[:400])
    if _LATE.search(case.title):
        await asyncio.sleep(0.15)
    text = "\n".join(result.text for result in results)
    effects = canaries.effects(text)
    if effects or case.before:
        reset_world()
    canaries.arm()
    return Seen(outcomes=outcomes, effects=tuple(effects), text=text[:400])


def _prepare(command: str) -> None:
    subprocess.run(["bash", "-c", command], cwd=PROJECT, capture_output=True, check=False)


def _forgetting(canaries: Canaries) -> Emit:
    async def emit(event: AgentEvent) -> None:
        # Until here only the policy looked around.
        if isinstance(event, ToolStarted):
            canaries.skip()

    return emit


def _workshop(mode: str, path: str) -> AbstractAsyncContextManager[Toolbox]:
    return open_toolbox(
        # Without the second wall: the policy alone is judged.
        Settings(
            tools=ToolSettings(shell_seconds=_SECONDS, shell_idle_seconds=_SECONDS, sandbox="off")
        ),
        environ={
            "HOME": str(HOME),
            "PATH": f"{path}{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TOOLWIRE_HOME": str(HOME / ".toolwire"),
            **ENVIRON_SECRETS,
        },
        cwd=PROJECT,
        mode=Mode(mode),
        headless=True,
    )


if __name__ == "__main__":
    main()
