"""Conformance in the console: suites of the wire formats, and probes of real servers."""

from __future__ import annotations

import asyncio
import time
from pkgutil import get_data
from typing import TYPE_CHECKING

import msgspec

from toolwire import __version__, dialects
from toolwire.gateway.console.calls import ApiError, ApiRoute, Call
from toolwire.gateway.console.probe import Probe, new_probe, run_probe
from toolwire.gateway.console.suites import SUITES, CaseFailure, run
from toolwire.storage.private_files import read_private, write_private

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console

CLIENT_TABLE = "clients.json"
"""Written by the acceptance run."""
_PROBES = 50
"""Probes whose findings are stored."""


class SuiteRow(msgspec.Struct, frozen=True, kw_only=True):
    """One suite for one format."""

    name: str
    format: str
    date: float | None = None
    passed: int = 0
    total: int = 0
    failures: list[CaseFailure] = []
    running: bool = False


class ClientRow(msgspec.Struct, frozen=True, kw_only=True):
    """A client before each upstream format."""

    client: str
    cells: list[str]


class ClientTable(msgspec.Struct, frozen=True, kw_only=True):
    """The last acceptance run: clients before upstream formats."""

    date: float
    version: str
    columns: list[str]
    rows: list[ClientRow]


class ConformanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of formats, servers and clients."""

    version: str
    suites: list[SuiteRow]
    probes: list[Probe]
    clients: ClientTable | None


class SuiteChoice(msgspec.Struct, frozen=True):
    """A format; all of them by default."""

    format: str | None = None


class SuiteList(msgspec.Struct, frozen=True):
    """Suites."""

    suites: list[SuiteRow]


class ProbeStart(msgspec.Struct, frozen=True):
    """A name that clients may send."""

    model: str


class OneProbe(msgspec.Struct, frozen=True):
    """A probe."""

    probe: Probe


class _File(msgspec.Struct, kw_only=True):
    version: str = ""
    suites: list[SuiteRow] = []
    probes: list[Probe] = []


class Conformance:
    """The last results, stored over restarts."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._path = console.host.state / "conformance.json"
        self._file = self._load()
        self._tasks: set[asyncio.Task[None]] = set()
        self._suites: asyncio.Task[None] | None = None

    def _load(self) -> _File:
        data = read_private(self._path, lambda text: None)
        try:
            found = msgspec.json.decode(data, type=_File) if data else _File()
        except msgspec.MsgspecError:
            found = _File()
        if found.version != __version__:
            found.suites = []
        for probe in found.probes:
            if probe.state == "running":
                probe.state, probe.error = "failed", "the gateway was restarted"
        return found

    def _save(self) -> None:
        self._file.version = __version__
        self._file.probes = self._file.probes[-_PROBES:]
        write_private(self._path, msgspec.json.encode(self._file))

    @property
    def suites(self) -> list[SuiteRow]:
        """Every suite of every format, run or not."""
        known = {(row.name, row.format): row for row in self._file.suites}
        return [
            known.get((name, dialect), SuiteRow(name=name, format=dialect))
            for dialect in dialects.NAMES
            for name in SUITES
        ]

    @property
    def probes(self) -> list[Probe]:
        """The last probes, the newest first."""
        return self._file.probes[::-1]

    @property
    def clients(self) -> ClientTable | None:
        """The last acceptance run, which is part of the package."""
        data = get_data(__package__ or "", CLIENT_TABLE)
        return msgspec.json.decode(data, type=ClientTable) if data else None

    def badge(self, model: str) -> str:
        """How a model did in its last probe."""
        for probe in self.probes:
            if probe.model == model and probe.state == "done":
                bad = any(one.result in ("failed", "differs") for one in probe.findings)
                return "failed" if bad else "passed"
        return "unknown"

    def start_suites(self, chosen: str | None) -> None:
        """Runs the suites in a thread, unless they run."""
        if chosen is not None and chosen not in dialects.NAMES:
            listed = ", ".join(dialects.NAMES)
            raise ApiError(400, f'format: "{chosen[:50]}" is none of {listed}')
        if self._suites is not None and not self._suites.done():
            return
        rows = [row for row in self.suites if chosen in (None, row.format)]
        for row in rows:
            self._put(msgspec.structs.replace(row, running=True))
        self._suites = asyncio.create_task(self._run(rows))

    async def _run(self, rows: list[SuiteRow]) -> None:
        for row in rows:
            total, failures = await asyncio.to_thread(run, row.name, row.format)
            self._put(
                SuiteRow(
                    name=row.name,
                    format=row.format,
                    date=time.time(),
                    passed=total - len(failures),
                    total=total,
                    failures=failures,
                )
            )
        self._save()

    def _put(self, row: SuiteRow) -> None:
        others = [
            one for one in self._file.suites if (one.name, one.format) != (row.name, row.format)
        ]
        self._file.suites = [*others, row]

    async def start_probe(self, model: str) -> Probe:
        """Begins a probe of a model; ToolwireError if there is none of that name."""
        gateway = self._console.host.gateway
        route = await gateway.parts.routes.find(model)
        opened = route.all[0].opened
        probe = new_probe(opened.name, gateway.parts.clock())
        self._file.probes.append(probe)
        task = asyncio.create_task(run_probe(probe, opened, gateway.parts.clock))
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return probe

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is None:
            self._save()

    def find_probe(self, probe: str) -> Probe:
        """A probe by its id."""
        for one in self._file.probes:
            if one.id == probe:
                return one
        raise ApiError(404, f'no probe "{probe[:100]}"')

    async def aclose(self) -> None:
        """Stops what still runs."""
        for task in (*self._tasks, *(() if self._suites is None else (self._suites,))):
            task.cancel()


async def report(console: Console, call: Call) -> None:
    """Answers with suites, probes and the table of clients."""
    found = console.conformance
    await call.answer(
        ConformanceReport(
            version=__version__, suites=found.suites, probes=found.probes, clients=found.clients
        )
    )


async def run_suites(console: Console, call: Call) -> None:
    """Runs the suites."""
    console.conformance.start_suites(call.body(SuiteChoice).format)
    await call.answer(SuiteList(console.conformance.suites), 202)


async def start_probe(console: Console, call: Call) -> None:
    """Begins to probe a model."""
    given = call.body(ProbeStart)
    await call.answer(OneProbe(await console.conformance.start_probe(given.model)), 202)


async def show_probe(console: Console, call: Call) -> None:
    """Answers with a probe as far as it is."""
    await call.answer(OneProbe(console.conformance.find_probe(call.parts["id"])))


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/conformance",
        does=report,
        about="Suites per format, probes of servers, and the last acceptance run.",
        returns=ConformanceReport,
    ),
    ApiRoute(
        method="POST",
        path="/conformance/run",
        does=run_suites,
        about="Run the suites of a format, or of all.",
        takes=SuiteChoice,
        returns=SuiteList,
        status=202,
    ),
    ApiRoute(
        method="POST",
        path="/conformance/probe",
        does=start_probe,
        about="Probe a server with about a dozen requests.",
        takes=ProbeStart,
        returns=OneProbe,
        status=202,
    ),
    ApiRoute(
        method="GET",
        path="/conformance/probe/{id}",
        does=show_probe,
        about="The findings of a probe so far.",
        returns=OneProbe,
    ),
)
