"""Started as a program: lives of a session, each a fork that is killed where the line says.

A life is described by a line on standard input; how it ended is told in a line on standard output.
The first is lived by the program itself, and nothing is told of it. The last line of all lists the
processes that the lives left behind.
"""

import asyncio
import gc
import os
import select
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from toolwire import config
from toolwire.agent.events import AgentEvent, MessageAdded, ToolFinished, TurnEnd
from toolwire.app.builder import stored_sessions
from toolwire.app.options import SessionOptions
from toolwire.app.session import open_session
from toolwire.messages import Message, Text
from toolwire.policy.rules import Mode
from toolwire.providers.upstream import read_upstream
from toolwire.sessions.sqlite import SqliteJournal
from toolwire.tools.shell.process_table import below
from toolwire.tools.shell.signals import adopt_orphans
from toolwire.tools.shell.watchdogs import WATCHDOGS


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """What a process does, and where it is killed: nowhere, if nothing says so."""

    root: str
    upstream: str
    prompt: str
    seconds: float | None = None
    """Killed after so long."""
    before: int = 0
    """Killed when it is about to write its record of this number, counted from 1."""
    after: int = 0
    """Killed when that record is written and nobody has heard of it yet."""

    @property
    def environ(self) -> dict[str, str]:
        home = str(Path(self.root) / "home")
        return {"PATH": os.environ["PATH"], "HOME": self.root, "TOOLWIRE_HOME": home}


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """How a life ended."""

    pid: int
    killed: bool
    code: int = 0


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a person at the screen knows: it was shown."""

    role: str = ""
    text: str = ""
    call_id: str = ""
    outcome: str = ""


def heard_in(root: Path) -> list[Heard]:
    file = root / "heard.jsonl"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Heard) for line in lines]


def _hears(root: Path) -> Any:
    screen = os.open(root / "heard.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def hear(event: AgentEvent) -> None:
        if isinstance(event, MessageAdded) and not event.context:
            heard = Heard(role=event.message.role, text=event.message.text)
        elif isinstance(event, ToolFinished):
            heard = Heard(call_id=event.call_id, outcome=event.outcome)
        else:
            return
        os.write(screen, msgspec.json.encode(heard) + b"\n")

    return hear


def _kill_at_record(life: Life) -> None:
    """The journal writes in a thread of its own: there every call of its `_write` is seen."""
    write = SqliteJournal._write.__code__
    written = 0

    def look(frame: FrameType, event: str, arg: object) -> None:
        nonlocal written
        if frame.f_code is not write:
            return
        written += event == "call"
        if written == (life.before if event == "call" else life.after):
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(look)


async def _live(life: Life) -> int:
    root, environ = Path(life.root), life.environ
    cwd = root / "work"
    went_on = stored_sessions(environ).latest(cwd) is not None
    wanted = SessionOptions(upstream=read_upstream(life.upstream), mode=Mode.YOLO, latest=went_on)
    settings = config.load(environ, cwd)
    async with open_session(
        wanted, settings=settings, environ=environ, cwd=cwd, readers=(_hears(root),)
    ) as session:
        ended = await session.send(Message(role="user", parts=(Text(life.prompt),)))
    if ended.reason is not TurnEnd.DONE:
        sys.stderr.write(f"{life}: {ended}\n")
        return 3
    return 0


def _child(life: Life) -> int:
    try:
        if life.before or life.after:
            _kill_at_record(life)
        return asyncio.run(_live(life))
    except BaseException:
        sys.stderr.write(f"{life}\n{traceback.format_exc()}")
        return 4
    finally:
        sys.stderr.flush()


def _die(life: Life) -> Death:
    # Its end closes when the child is gone, whatever ended it.
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(alive)
        os._exit(_child(life))
    os.close(held)
    killed = not select.select([alive], [], [], life.seconds)[0]
    if killed:
        os.kill(child, signal.SIGKILL)
    os.close(alive)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Death(pid=child, killed=code == -signal.SIGKILL, code=code)


def _load(life: Life) -> None:
    """What is loaded where it is used: by a first life of our own, not in every child again."""
    code = asyncio.run(_live(life))
    assert code == 0
    WATCHDOGS.close()
    gc.collect()
    gc.freeze()


def _left() -> list[int]:
    """What is still there of all lives, after the time that ending it may take."""
    until = time.monotonic() + 20
    while left := below(os.getpid()):
        if time.monotonic() > until:
            break
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.02)
    return left


if __name__ == "__main__":
    # Whatever a killed life leaves behind becomes a child of ours.
    adopt_orphans()
    _load(msgspec.json.decode(sys.stdin.readline(), type=Life))
    for line in sys.stdin:
        death = _die(msgspec.json.decode(line, type=Life))
        os.write(1, msgspec.json.encode(death) + b"\n")
    os.write(1, msgspec.json.encode(_left()) + b"\n")
