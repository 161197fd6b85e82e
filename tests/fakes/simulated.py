"""A simulator in a thread of its own, and `toolwire` as a real process before it."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolwire.simulator import Answering, Received, Reply, Script, Simulator
from toolwire.simulator.vendor_rules import Seals

BASES = {
    "openai-chat": "/v1",
    "openai-responses": "/v1",
    "anthropic-messages": "",
    "gemini": "",
    "code-assist": "",
}
LONGEST = 120
"""Seconds after which a child process or a scenario hangs, on a loaded machine too."""


class Simulated:
    """`with Simulated(replies) as sim:` a server on loopback that keeps what it was asked."""

    def __init__(self, script: Script | Iterable[Reply] | Answering, **more: Any) -> None:
        self._simulator = Simulator(script, **more)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Simulated":
        self._thread.start()
        self._do(self._simulator.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._simulator.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LONGEST)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of all requests for an answer, in order."""
        return [msgspec.json.decode(one.body) for one in self._simulator.requests]

    @property
    def requests(self) -> list[Received]:
        """All requests in order."""
        return self._simulator.requests

    @property
    def refusals(self) -> list[str]:
        """What a vendor would have refused."""
        return self._simulator.refusals

    @property
    def seals(self) -> Seals:
        """What the server issued."""
        return self._simulator.seals

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:port`."""
        return self._simulator.origin

    def upstream(self, dialect: str = "openai-chat", **more: str) -> str:
        """The argument of `--upstream`."""
        members = "".join(f",{name}={value}" for name, value in more.items())
        return f"{dialect}={self._simulator.origin}{BASES[dialect]}{members}"


class Place(msgspec.Struct, frozen=True):
    """A workspace and a home of their own below a test's folder."""

    root: Path

    @property
    def work(self) -> Path:
        path = self.root / "work"
        path.mkdir(exist_ok=True)
        return path

    @property
    def home(self) -> Path:
        path = self.root / "home"
        path.mkdir(exist_ok=True)
        return path

    def environ(self, **more: str) -> dict[str, str]:
        """What a fresh user of this machine has, and no key at all."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.root),
            "TOOLWIRE_HOME": str(self.home),
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }

    def start(self, *args: str, env: Mapping[str, str] | None = None, **more: Any) -> Any:
        """The command as a child process."""
        return subprocess.Popen(
            command(args),
            cwd=more.pop("cwd", self.work),
            env=self.environ(**(env or {})),
            stdin=more.pop("stdin", subprocess.DEVNULL),
            stdout=more.pop("stdout", subprocess.PIPE),
            stderr=more.pop("stderr", subprocess.PIPE),
            **more,
        )

    def toolwire(
        self, *args: str, input: str | bytes = b"", env: Mapping[str, str] | None = None
    ) -> "Done":
        """The command run to its end."""
        data = input.encode() if isinstance(input, str) else input
        process = self.start(*args, env=env, stdin=subprocess.PIPE)
        out, err = process.communicate(data, timeout=LONGEST)
        return Done(process.returncode, out.decode(), err.decode())

    def run(self, sim: Simulated, *args: str, dialect: str = "openai-chat", **more: Any) -> "Done":
        """`toolwire run` before a simulator."""
        return self.toolwire("run", "--upstream", sim.upstream(dialect), *args, **more)


class Done(msgspec.Struct, frozen=True):
    """How a command ended."""

    code: int
    out: str
    err: str


def command(args: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "toolwire", *args]


def interrupt(process: Any) -> None:
    process.send_signal(signal.SIGINT)
