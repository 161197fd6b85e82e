"""What the console says of the gateway itself, and the description of its API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from toolwire import __version__
from toolwire.gateway.console.calls import ApiRoute, Call
from toolwire.gateway.metrics import of_process

if TYPE_CHECKING:
    from toolwire.gateway.console.api import Console


class GatewayStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The running gateway."""

    version: str
    server: str
    origin: str
    started: float
    uptime: float
    rss: int
    open_requests: int
    waiting: int
    sessions: int
    recording: str
    problem: str
    workers: int
    project: str


async def status(console: Console, call: Call) -> None:
    """Answers with the state of the gateway."""
    host = console.host
    settings = host.gateway.parts.settings
    await call.answer(
        GatewayStatus(
            version=__version__,
            server=console.boot,
            origin=host.origin,
            started=host.started,
            uptime=max(0.0, time.time() - host.started),
            rss=_resident(),
            open_requests=host.gateway.open_calls,
            waiting=host.accounts.room.turns.waiting,
            sessions=len(console.sessions.here()),
            recording=settings.record,
            problem=host.reloader.problem,
            workers=settings.workers,
            project=str(host.folder),
        )
    )


def _resident() -> int:
    """Bytes of memory, where the system tells."""
    sizes = [one.value for one in of_process() if one.name == "process_resident_memory_bytes"]
    return int(sizes[0]) if sizes else 0


async def openapi(console: Console, call: Call) -> None:
    """Answers with the description of the API."""
    await call.answer(console.openapi())


ENDPOINTS = (
    ApiRoute(
        method="GET",
        path="/status",
        does=status,
        about="The state of the gateway.",
        returns=GatewayStatus,
    ),
    ApiRoute(method="GET", path="/openapi.json", does=openapi, about="This description."),
)
