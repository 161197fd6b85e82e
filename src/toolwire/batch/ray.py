"""The executor of a Ray cluster: one actor per node and core, each of them a host."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from toolwire.batch.executor import (
    AttemptDone,
    EventQueue,
    ExecutorEvent,
    HostLost,
    HostReady,
    events_of,
)
from toolwire.batch.store import Claim
from toolwire.errors import BadInput, ToolwireError

_WATCH_EVERY = 2.0
_CPUS = 0.5
"""Of a core, for each actor: most of the time it waits for models and tools."""
_GATHER = 0.02
"""Seconds in which ends are gathered: a call of Ray costs more than an end does."""
_FOLLOW = 0.005
"""Seconds in which the driver starts others in their place: these go with the next call."""
_claims: msgspec.json.Decoder[list[Claim]] = msgspec.json.Decoder(list[Claim])


def load_ray() -> Any:
    """The library; BadInput if it is not installed."""
    try:
        return import_module("ray")
    except ImportError as error:
        raise BadInput(
            "--executor ray needs Ray: pip install 'toolwire[ray]', here and on every node"
        ) from error


class HostActor:
    """A host in a worker process of Ray; the same code as in local processes."""

    def __init__(self, out: str, name: str, secret: Any) -> None:
        self._out = Path(out)
        self._name = name
        self._upstream: str = secret
        self._stack = AsyncExitStack()
        self._host: Any = None
        self._opened = asyncio.Event()
        self._ended: list[int] = []
        self._any_ended = asyncio.Event()

    async def open(self) -> str:
        """Opens the host; returns its name once it takes attempts."""
        from toolwire.batch.host import open_host  # noqa: PLC0415 - only in workers

        self._host = await open_host(
            self._stack,
            self._out,
            name=self._name,
            environ=os.environ,
            upstream=self._upstream,
            done=self._done,
        )
        self._opened.set()
        return self._name

    def _done(self, claim: Claim) -> None:
        self._ended.append(claim.n)
        self._any_ended.set()

    async def start(self, body: bytes) -> None:
        """Starts attempts; their results are in the store when they have ended."""
        await self._opened.wait()
        for claim in _claims.decode(body):
            self._host.start(claim)

    async def exchange(self, body: bytes) -> list[int]:
        """Starts attempts, and waits for some to end; returns the numbers of those that did."""
        await self.start(body)
        await self._any_ended.wait()
        await asyncio.sleep(_GATHER)
        ended, self._ended = self._ended, []
        self._any_ended.clear()
        return ended

    async def cancel(self, n: int) -> None:
        """Ends an attempt."""
        self._host.cancel(n)

    async def stop(self, hard: bool) -> None:
        """Ends all attempts."""
        self._host.stop(hard=hard)

    async def close(self) -> None:
        """Ends the host and everything it opened."""
        from toolwire.batch.host import settled  # noqa: PLC0415 - only in workers

        await settled(self._host, 0.0)
        await self._stack.aclose()


class _RayHost:
    def __init__(self, name: str, node: str, actor: Any) -> None:
        self.name = name
        self.node = node
        self.actor = actor
        self.running: set[int] = set()
        self.starting: list[Claim] = []
        """Attempts of the next call."""
        self.waited_for = False
        """Whether a call waits for ends: what is to be started meanwhile needs one of its own."""
        self.ready = False
        self.out = False


class RayExecutor:
    """Hosts on the nodes of a cluster; nodes and actors that are lost are replaced."""

    def __init__(
        self,
        out: Path,
        *,
        slots: int,
        batch: str,
        address: str = "",
        upstream: str = "",
        shared: bool = False,
    ) -> None:
        """`shared`: whether the batch is on a server that every machine reaches."""
        self.slots = slots
        self._out = out
        self._batch = batch
        self._address = address or os.environ.get("RAY_ADDRESS", "")
        self._upstream = upstream
        self._shared = shared
        self._ray = load_ray()
        self._hosts: dict[str, _RayHost] = {}
        self._pending: list[Claim] = []
        self._events: EventQueue = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._closing = False
        self._secret: Any = None
        self._stack = ExitStack()

    async def open(self) -> None:
        """Joins the cluster and starts the actors."""
        # Ray prints events of nodes to the standard output, which is that of the report.
        self._stack.enter_context(redirect_stdout(sys.stderr))
        # Without an address Ray would join whichever cluster was started last on this machine.
        options: dict[str, Any] = {"address": self._address or "local"}
        if not self._address:
            options["include_dashboard"] = False
        try:
            self._ray.init(log_to_driver=False, logging_level="ERROR", **options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise ToolwireError(f"cannot join the Ray cluster: {error}") from error
        nodes = self._nodes()
        machines = {node["NodeManagerHostname"] for node in nodes}
        if len(machines) > 1 and not self._shared:
            names = ", ".join(sorted(machines))
            raise BadInput(
                f"the cluster has {len(machines)} machines ({names}), and this batch is stored in "
                "files of one; set sessions.store to a PostgreSQL server and start it again"
            )
        # Once, in the object store: never in specs, logs or the environment of workers.
        self._secret = self._ray.put(self._upstream)
        self._fill(nodes)
        self._keep(self._watched())

    def _nodes(self) -> list[dict[str, Any]]:
        return [
            node
            for node in self._ray.nodes()
            if node["Alive"] and node["Resources"].get("CPU", 0) >= _CPUS
        ]

    def _keep(self, work: Any) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fill(self, nodes: list[dict[str, Any]]) -> None:
        """Starts an actor for each core of each node that has fewer."""
        for node in nodes:
            id = node["NodeID"]
            wanted = max(1, int(node["Resources"]["CPU"]))
            there = sum(host.node == id for host in self._hosts.values())
            for _ in range(min(wanted - there, self.slots - len(self._hosts))):
                self._start(id)

    def _start(self, node: str) -> None:
        self._number += 1
        name = f"toolwire-{self._batch}-{self._number}"
        strategy = import_module("ray.util.scheduling_strategies")
        kind = self._ray.remote(HostActor).options(
            name=name,
            num_cpus=_CPUS,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=self.slots + 8,
            scheduling_strategy=strategy.NodeAffinitySchedulingStrategy(node, soft=False),
        )
        host = _RayHost(f"ray/{node[:8]}/{self._number}", node, None)
        host.actor = kind.remote(str(self._out), host.name, self._secret)
        self._hosts[host.name] = host
        self._keep(self._opened(host))

    async def _opened(self, host: _RayHost) -> None:
        try:
            await host.actor.open.remote()
        except Exception as error:  # Ray's errors share no base that is exported
            self._lost(host, error)
            return
        host.ready = True
        self._events.put_nowait(HostReady(host.name))
        pending, self._pending = self._pending, []
        for claim in pending:
            await self.submit(claim)
        await self._listen(host)

    async def _listen(self, host: _RayHost) -> None:
        """Reports the ends of a host's attempts until it is lost."""
        while not self._closing:
            claims, host.starting = host.starting, []
            host.waited_for = True
            try:
                ended = await host.actor.exchange.remote(msgspec.json.encode(claims))
            except Exception as error:  # Ray's errors share no base that is exported
                self._lost(host, error)
                return
            host.waited_for = False
            for n in ended:
                host.running.discard(n)
                self._events.put_nowait(AttemptDone(n, host.name))
            await asyncio.sleep(_FOLLOW)

    async def _watched(self) -> None:
        """Replaces actors on nodes that are there, and uses nodes that join."""
        while not self._closing:
            await asyncio.sleep(_WATCH_EVERY)
            # A head that does not answer in time is asked again: hosts must be replaced then, too.
            with suppress(Exception):
                self._fill(await asyncio.to_thread(self._nodes))

    async def submit(self, claim: Claim, avoid: str = "") -> None:
        """Runs an attempt on the host with the fewest."""
        hosts = [host for host in self._hosts.values() if not host.out]
        others = [host for host in hosts if host.name != avoid] or hosts
        if not others:
            self._pending.append(claim)
            return
        host = min(others, key=lambda one: (not one.ready, len(one.running)))
        host.running.add(claim.n)
        if host.waited_for and not host.starting:
            asyncio.get_running_loop().call_soon(self._send, host)
        host.starting.append(claim)

    def _send(self, host: _RayHost) -> None:
        """Starts what was submitted at once in one call; a host that is lost reports itself."""
        claims, host.starting = host.starting, []
        if not claims:
            # They went with the next call that waits for ends.
            return
        with suppress(Exception):
            host.actor.start.options(num_returns=0).remote(msgspec.json.encode(claims))

    def _lost(self, host: _RayHost, error: Exception) -> None:
        """Reports the loss of a host, once."""
        if self._hosts.pop(host.name, None) is None or self._closing:
            return
        with suppress(Exception):
            # One that could not be opened is still there.
            self._ray.kill(host.actor)
        lost = tuple(sorted(host.running))
        self._events.put_nowait(HostLost(host.name, lost, type(error).__name__))

    def events(self) -> AsyncIterator[ExecutorEvent]:
        """What happens, until it is closed."""
        return events_of(self._events)

    async def cancel(self, n: int) -> None:
        """Ends an attempt."""
        for host in self._hosts.values():
            if n in host.running:
                host.actor.cancel.remote(n)

    async def take_out(self, host: str) -> None:
        """Gives a host no more attempts."""
        if host in self._hosts:
            self._hosts[host].out = True

    async def stop(self, *, hard: bool) -> None:
        """Ends all attempts at their next record, or now."""
        for host in self._hosts.values():
            if host.ready:
                host.actor.stop.remote(hard)

    async def close(self, grace: float) -> None:
        """Ends the actors and leaves the cluster."""
        self._closing = True
        with self._stack:
            await self._leave(grace)

    async def _leave(self, grace: float) -> None:
        if not self._ray.is_initialized():
            return
        closing = [host.actor.close.remote() for host in self._hosts.values() if host.ready]
        if closing:
            await asyncio.to_thread(self._waited, closing, grace)
        for host in self._hosts.values():
            with suppress(Exception):
                self._ray.kill(host.actor)
        for task in tuple(self._tasks):
            task.cancel()
        self._ray.shutdown()
        self._events.put_nowait(None)

    def _waited(self, refs: list[Any], seconds: float) -> None:
        wait: Callable[..., Any] = self._ray.wait
        wait(refs, num_returns=len(refs), timeout=seconds)
