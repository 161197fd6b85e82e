"""A folder in which a scripted session works, and the whole of it as one value."""

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.simulated import Place, Simulated
from toolwire import config
from toolwire.agent.events import AgentEvent, TurnEnded, reader_of
from toolwire.agent.questions import Approver
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.session import AgentSession
from toolwire.app.stored_sessions import stored_sessions
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.providers.custom import read_upstream
from toolwire.simulator import Answering, Reply
from toolwire.simulator.script import Call, Say


def tree_of(root: Path) -> dict[str, Any]:
    """Every path with its kind, permissions and contents; the user's repository is left out."""
    found: dict[str, Any] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in (*folders, *files):
            path = Path(folder, name)
            about = path.lstat()
            key = os.path.relpath(path, root)
            if stat.S_ISLNK(about.st_mode):
                found[key] = ("link", str(path.readlink()))
            elif stat.S_ISDIR(about.st_mode):
                found[key] = ("folder", stat.S_IMODE(about.st_mode))
            else:
                found[key] = ("file", stat.S_IMODE(about.st_mode), path.read_bytes())
    return found


def sh(command: str) -> Call:
    return Call.of("run_shell_command", **{"command": command})


def turn(*calls: Call) -> list[Reply]:
    """A turn that makes these calls, one after the other."""
    return [*(Reply(pieces=(call,)) for call in calls), Reply(pieces=(Say("done"),))]


class Worked(msgspec.Struct, frozen=True):
    """How a session ended."""

    id: str
    events: list[AgentEvent]
    ends: list[TurnEnded]


def work(
    place: Place,
    *turns: Sequence[Reply],
    answering: Answering | None = None,
    approver: Approver | None = None,
    mode: Mode = Mode.YOLO,
    between: Callable[[int], None] | None = None,
    then: Callable[[AgentSession], Any] | None = None,
    env: dict[str, str] | None = None,
    **options: Any,
) -> Worked:
    """Run these turns in one session; `between` is called after each, `then` in the session."""
    environ = place.environ(TOOLWIRE_TOOLS_SANDBOX="off", **(env or {}))
    events: list[AgentEvent] = []
    ends: list[TurnEnded] = []

    async def receive(event: AgentEvent) -> None:
        events.append(event)

    async def run(upstream: str) -> str:
        chosen = SessionOptions(upstream=read_upstream(upstream), mode=mode, **options)
        settings = config.load(environ, place.work)
        async with open_session(
            chosen,
            settings=settings,
            environ=environ,
            cwd=place.work,
            readers=(reader_of(receive),),
            approver=approver,
        ) as session:
            for number, _ in enumerate(turns or ((),)):
                ends.append(await session.send(Message(role="user", parts=(Text("go"),))))
                if between is not None:
                    between(number)
            if then is not None:
                await then(session)
            return session.id

    script = answering or [reply for one in turns for reply in one]
    with Simulated(script) as sim:
        id = asyncio.run(run(sim.upstream()))
    return Worked(id, events, ends)


def store(place: Place) -> Any:
    return stored_sessions(place.environ())
