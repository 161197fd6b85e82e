"""The same on two nodes of Ray: actors, nodes, the head, the driver and PostgreSQL are killed."""

import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster  # pyright: ignore

from tests.batch.chaos import CALLS, LONGEST, Chaos, Tally
from tests.fakes.cutting_proxy import CuttingProxy
from tests.fakes.postgres import kill_and_restart

ENVIRON = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
_HEAD_IS_MISSED = 150.0
"""Seconds in which a driver notices that the head is gone; Ray itself waits for a minute."""


_KINDS = (("host", 0.4), ("node", 0.6), ("server", 0.75), ("driver", 0.92), ("head", 1.0))


class RayChaos(Chaos):
    """One batch on a cluster of its own: a head without cores, and two nodes."""

    def __init__(
        self, root: Path, upstream: str, seed: int, tally: Tally, tasks: int = 6, url: str = ""
    ) -> None:
        super().__init__(root, upstream, seed, tally, tasks, url)
        self.environ = self._environ()
        self._before = dict(os.environ)
        # Workers inherit the environment of their node.
        os.environ.update(self.environ, TOOLWIRE_HOME=str(self._home()), HOME=str(self.place.root))
        self._start()

    def _environ(self) -> dict[str, str]:
        return dict(ENVIRON)

    def _home(self) -> Path:
        """The settings of the nodes."""
        return self.place.home

    def _start(self) -> None:
        self._cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
        self._nodes: list[Any] = [self._cluster.add_node(num_cpus=2) for _ in range(2)]
        self._cluster.wait_for_nodes()
        self.executor = ("--executor", f"ray={self._cluster.address}")

    def close(self) -> None:
        """Ends the cluster."""
        with suppress(Exception):
            self._cluster.shutdown()
        os.environ.clear()
        os.environ.update(self._before)

    def _hosts(self) -> list[int]:
        home = os.fsencode(str(self._home()))
        found: list[int] = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                ours = (folder / "cmdline").read_bytes().startswith(b"ray::HostActor")
                if ours and home in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def _kill(self, driver: Any) -> int:
        kind = self._next()
        hosts = self._hosts() if kind == "host" else []
        tally = self.tally
        match kind:
            case "host" if hosts:
                with suppress(ProcessLookupError):
                    os.kill(self.chance.choice(hosts), signal.SIGKILL)
                tally.hosts += 1
            case "host" | "node":
                lost = self._nodes.pop(self.chance.randrange(len(self._nodes)))
                self._cluster.remove_node(lost, allow_graceful=False)
                self._nodes.append(self._cluster.add_node(num_cpus=2))
                tally.nodes += 1
            case "server":
                kill_and_restart()
                tally.servers += 1
            case "driver":
                driver.kill()
                driver.wait()
                tally.drivers += 1
            case _:
                self._lose_head(driver)
                tally.heads += 1
        tally.points += 1
        return 1

    def _next(self) -> str:
        """What is killed next."""
        chance = self.chance.random()
        return next(kind for kind, below in _KINDS if chance < below)

    def _lose_head(self, driver: Any) -> None:
        """Kills the head with all that depends on it, and starts another cluster."""
        for node in (self._cluster.head_node, *self._nodes):
            node.kill_all_processes(check_alive=False, allow_graceful=False)
        end = time.monotonic() + _HEAD_IS_MISSED
        while driver.poll() is None and time.monotonic() < end:
            time.sleep(0.2)
        if driver.poll() is None:
            self._complain("the driver does not notice that the head is gone")
        driver.kill()
        driver.wait()
        # However it ended, it is resumed as one that was killed.
        driver.returncode = -signal.SIGKILL
        self._start()


class ShortRayChaos(RayChaos):
    """One kill of each kind that needs no minute to be noticed."""

    KINDS = ("host", "node", "driver", "server")
    gated = True

    def _next(self) -> str:
        return self.KINDS[self.tally.points % len(self.KINDS)]

    def _wait(self, driver: Any) -> None:
        """Until a further call waits for the end of the kills: there is one to interrupt."""
        before = self._gated()
        # After a kill that hit none, all of them may wait already.
        end = time.monotonic() + (10.0 if before else LONGEST)
        while self._gated() <= before and driver.poll() is None and time.monotonic() < end:
            time.sleep(0.02)

    def _gated(self) -> int:
        return len(list(self.marks.glob(f"*.{CALLS - 1}")))


class SilentChaos(RayChaos):
    """PostgreSQL does not answer the hosts for twice the lease; the driver still reaches it."""

    LEASE = 5.0

    def _environ(self) -> dict[str, str]:
        return {**ENVIRON, "TOOLWIRE_LEASE_SECONDS": str(self.LEASE)}

    def _home(self) -> Path:
        home = self.place.root / "nodes"
        if not home.exists():
            home.mkdir()
            # The path of a socket is short.
            self._proxy = CuttingProxy(self.url, Path(tempfile.mkdtemp(prefix="proxy-")))
            (home / "config.toml").write_text(
                f'[tools]\nsandbox = "off"\n[sessions]\nstore = "{self._proxy.address}"\n'
            )
        return home

    def _kill(self, driver: Any) -> int:
        self._proxy.silent = True
        time.sleep(2 * self.LEASE)
        self._proxy.silent = False
        self.tally.points += 1
        self.tally.silences += 1
        return 1
