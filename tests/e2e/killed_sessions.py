"""Program that runs a session in forks, each killed where its line says.

A run is described by a line on standard input; its end is reported in a line on standard output.
The first run is that of the program itself and is not reported. The last line lists the processes
that the runs left behind.
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
from toolwire.agent.events import AgentEvent, MessageAdded, ToolFinished, TurnEnd, reader_of
from toolwire.app.builder import open_session
from toolwire.app.options import SessionOptions
from toolwire.app.stored_sessions import stored_sessions
from toolwire.messages import Message, Text
from toolwire.policy import Mode
from toolwire.providers.custom import read_upstream
from toolwire.sessions.sqlite_journal import SqliteJournal
from toolwire.tools.shell.process_table import below
from toolwire.tools.shell.protocol import adopt_orphans
from toolwire.tools.shell.watchdogs import WATCHDOGS


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a session, and where it is killed, if at all."""

    root: str
    upstream: str
    prompt: str
    seconds: float | None = None
    """Killed after so long."""
    before: int = 0
    """Killed when it is about to write its record of this number, counted from 1."""
    after: int = 0
    """Killed when that record is written and not yet emitted."""

    @property
    def environ(self) -> dict[str, str]:
        home = str(Path(self.root) / "home")
        return {"PATH": os.environ["PATH"], "HOME": self.root, "TOOLWIRE_HOME": home}


class Kill(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended."""

    pid: int
    killed: bool
    code: int = 0


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """What was shown to the user."""

    role: str = ""
    text: str = ""
    call_id: str = ""
    outcome: str = ""


def shown_in(root: Path) -> list[Shown]:
    file = root / "shown.jsonl"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Shown) for line in lines]


def _shows(root: Path) -> Any:
    screen = os.open(root / "shown.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def show(event: AgentEvent) -> None:
        if isinstance(event, MessageAdded) and not event.context:
            shown = Shown(role=event.message.role, text=event.message.text)
        elif isinstance(event, ToolFinished):
            shown = Shown(call_id=event.call_id, outcome=event.outcome)
        else:
            return
        os.write(screen, msgspec.json.encode(shown) + b"\n")

    return show


def _kill_at_record(run: Run) -> None:
    """The journal writes in a thread of its own: there every call of its `_write` is seen."""
    write = SqliteJournal._write.__code__
    written = 0

    def look(frame: FrameType, event: str, arg: object) -> None:
        nonlocal written
        if frame.f_code is not write:
            return
        written += event == "call"
        if written == (run.before if event == "call" else run.after):
            os.kill(os.getpid(), signal.SIGKILL)

    threading.setprofile(look)


async def _run(run: Run) -> int:
    root, environ = Path(run.root), run.environ
    cwd = root / "work"
    went_on = stored_sessions(environ).latest(str(cwd)) is not None
    options = SessionOptions(upstream=read_upstream(run.upstream), mode=Mode.YOLO, latest=went_on)
    settings = config.load(environ, cwd)
    async with open_session(
        options, settings=settings, environ=environ, cwd=cwd, readers=(reader_of(_shows(root)),)
    ) as session:
        ended = await session.send(Message(role="user", parts=(Text(run.prompt),)))
    if ended.reason is not TurnEnd.DONE:
        sys.stderr.write(f"{run}: {ended}\n")
        return 3
    return 0


def _child(run: Run) -> int:
    try:
        if run.before or run.after:
            _kill_at_record(run)
        return asyncio.run(_run(run))
    except BaseException:
        sys.stderr.write(f"{run}\n{traceback.format_exc()}")
        return 4
    finally:
        sys.stderr.flush()


def _killed_run(run: Run) -> Kill:
    # Its end closes when the child is gone, whatever ended it.
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(alive)
        os._exit(_child(run))
    os.close(held)
    killed = not select.select([alive], [], [], run.seconds)[0]
    if killed:
        os.kill(child, signal.SIGKILL)
    os.close(alive)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Kill(pid=child, killed=code == -signal.SIGKILL, code=code)


def _load(run: Run) -> None:
    """What is loaded where it is used: by a first run of our own, not in every child again."""
    code = asyncio.run(_run(run))
    assert code == 0
    WATCHDOGS.close()
    gc.collect()
    gc.freeze()


def _left() -> list[int]:
    """What is still there of all runs, after the time that ending it may take."""
    until = time.monotonic() + 20
    while left := below(os.getpid()):
        if time.monotonic() > until:
            break
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        time.sleep(0.02)
    return left


if __name__ == "__main__":
    # Whatever a killed run leaves behind becomes a child of ours.
    adopt_orphans()
    _load(msgspec.json.decode(sys.stdin.readline(), type=Run))
    for line in sys.stdin:
        kill = _killed_run(msgspec.json.decode(line, type=Run))
        os.write(1, msgspec.json.encode(kill) + b"\n")
    os.write(1, msgspec.json.encode(_left()) + b"\n")
