"""`python -m bench.agent_session DIALECT TURNS CONTEXT HOME MARKS`: one long session, measured.

A process of its own, so that its memory is its own. Prints one JSON object a line: a `mark` after
every MARKS turns, `prefix` at the end, `resumed` after the session was opened again.
"""

import asyncio
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path

import msgspec

from bench.agent_script import MODEL, ScriptedTransport
from toolwire.app import AgentSession, SessionOptions, open_session
from toolwire.config import Settings
from toolwire.context.cache import compared_bodies
from toolwire.messages import Message, Text
from toolwire.providers import ModelInfo
from toolwire.providers.custom import NAME, read_upstream
from toolwire.simulator.script import Call

NOTES = "The answer to the question is 42, and this line says so.\n" * 60


class Mark(msgspec.Struct, frozen=True, kw_only=True, tag="mark"):
    """How the session stands after so many turns."""

    turns: int
    cpu_ms: float
    """Of one turn, over the turns since the last mark."""
    rss_mb: float
    body_kb: float
    """The longest request since the last mark."""


class Prefix(msgspec.Struct, frozen=True, kw_only=True, tag="prefix"):
    """What part of all bytes of requests was an unchanged prefix of the request before."""

    requests: int
    as_sent: float
    as_read: float
    """In the order in which vendors cache: tools, system prompt, messages."""
    changes: int


class Resumed(msgspec.Struct, frozen=True, kw_only=True, tag="resumed"):
    """What opening the session again took."""

    wall_ms: float
    cpu_ms: float
    file_mb: float


Report = Mark | Prefix | Resumed


class Bodies:
    """Request bodies as they go out: sizes always, prefixes if they are wanted."""

    def __init__(self, *, compare: bool) -> None:
        self._compare = compare
        self._last = b""
        self.longest = 0
        self.count = 0
        self._all = self._sent = self._known = self._read = self._changes = 0

    def hear(self, body: bytes) -> None:
        """One more request."""
        self.count += 1
        self.longest = max(self.longest, len(body))
        if self._compare and self._last:
            self._all += len(body)
            self._sent += common(self._last, body)
            change = compared_bodies(self._last, body)
            self._known += change.following
            self._read += change.shared
            self._changes += not change.stable
        self._last = body

    def told(self) -> Prefix:
        """The shares so far."""
        return Prefix(
            requests=self.count,
            as_sent=self._sent / self._all,
            as_read=self._read / self._known,
            changes=self._changes,
        )


def common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


class Work(msgspec.Struct, frozen=True):
    """What is measured."""

    dialect: str
    turns: int
    context: int
    """Tokens of the model's window; 0 for one that never fills."""
    home: Path

    @asynccontextmanager
    async def session(self, bodies: Bodies, session: str = "") -> AsyncGenerator[AgentSession]:
        """The session in a folder with one file, its model scripted."""
        folder = self.home / "work"
        folder.mkdir(exist_ok=True)
        notes = folder / "notes.txt"
        notes.write_text(NOTES)
        call = Call.of("read_file", absolute_path=str(notes))
        info = ModelInfo(provider=NAME, id=MODEL, context=self.context)
        async with open_session(
            SessionOptions(
                upstream=read_upstream(f"{self.dialect}=http://127.0.0.1:9/v1,key=k,model={MODEL}"),
                session=session,
            ),
            settings=Settings(models=(info,)),
            environ={"HOME": str(self.home), "TOOLWIRE_HOME": str(self.home / "state")},
            cwd=folder,
            transport=ScriptedTransport(self.dialect, call, bodies.hear),
            today=lambda: date(2026, 1, 1),
        ) as opened:
            yield opened


async def run(work: Work, marks: int) -> None:
    """The session, a mark after every so many turns; then it is opened again."""
    # Where the window fills, compression changes the prefix by its nature.
    bodies = Bodies(compare=work.context == 0)
    async with work.session(bodies) as session:
        begun = time.process_time()
        for turn in range(1, work.turns + 1):
            ended = await session.send(_question(turn))
            if ended.reason != "done":
                raise RuntimeError(f"turn {turn} ended with {ended.reason}: {ended.detail}")
            if turn % marks == 0:
                spent = (time.process_time() - begun) / marks * 1e3
                _tell(
                    Mark(turns=turn, cpu_ms=spent, rss_mb=_memory(), body_kb=bodies.longest / 1024)
                )
                bodies.longest = 0
                begun = time.process_time()
        id = session.id
    if work.context == 0:
        _tell(bodies.told())
    await _resume(work, id)


async def _resume(work: Work, id: str) -> None:
    (file,) = (work.home / "state").rglob(f"{id}.sqlite")
    wall, cpu = time.perf_counter(), time.process_time()
    async with work.session(Bodies(compare=False), id):
        _tell(
            Resumed(
                wall_ms=(time.perf_counter() - wall) * 1e3,
                cpu_ms=(time.process_time() - cpu) * 1e3,
                file_mb=file.stat().st_size / (1 << 20),
            )
        )


def _question(turn: int) -> Message:
    words = f"Question {turn}: what do the notes say, and has anything changed since last time?"
    return Message(role="user", parts=(Text(words),))


def _memory() -> float:
    """MB in use now; the highest so far where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except OSError:
        scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def _tell(report: Report) -> None:
    print(msgspec.json.encode(report).decode(), flush=True)


if __name__ == "__main__":
    dialect, turns, context, home, marks = sys.argv[1:]
    asyncio.run(run(Work(dialect, int(turns), int(context), Path(home)), int(marks)))
