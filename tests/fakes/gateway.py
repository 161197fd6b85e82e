"""A real gateway on loopback in front of the simulator, in a thread of its own."""

import asyncio
import threading
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from tests.fakes.simulated import BASES, LONGEST
from toolwire.client.redact import Secret
from toolwire.config import Settings
from toolwire.config.gateway import GatewaySettings
from toolwire.gateway.host import RunningGateway, ServeOptions, open_gateway
from toolwire.gateway.record import RequestRecord
from toolwire.providers.custom import read_upstream
from toolwire.simulator import Answering, Received, Reply, Script, Simulator

TOKEN = "gateway-token-of-this-test"


class ServedGateway:
    """`with ServedGateway("gemini", replies, home=tmp_path) as served:` a gateway whose upstream is
    a simulator that speaks that format. Clients use `served.origin` and `TOKEN`.
    """

    def __init__(
        self,
        dialect: str,
        script: Script | Iterable[Reply] | Answering,
        *,
        home: Path,
        model: str = "",
        token: str | None = TOKEN,
        settings: Settings | None = None,
        upstream_key: str = "",
        **gateway: Any,
    ) -> None:
        """`gateway` are members of `GatewaySettings`, such as `hold_seconds`."""
        self.simulator = Simulator(script, key=upstream_key)
        self.records: list[RequestRecord] = []
        self.running: RunningGateway
        self._dialect = dialect
        self._model = model
        self._key = upstream_key
        self._token = token
        self.home = home
        self._environ = {"TOOLWIRE_HOME": str(home), "HOME": str(home)}
        own = msgspec.convert({"port": 0, **gateway}, GatewaySettings)
        self._settings = msgspec.structs.replace(settings or Settings(), gateway=own)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._stack = AsyncExitStack()

    def __enter__(self) -> "ServedGateway":
        self._thread.start()
        self.do(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self.do(self._stack.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def do(self, work: Any) -> Any:
        """Runs a coroutine in the gateway's own event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LONGEST)

    async def _open(self) -> None:
        await self._stack.enter_async_context(self.simulator)
        members = f",key={self._key}" if self._key else ""
        members += f",model={self._model}" if self._model else ""
        address = f"{self._dialect}={self.simulator.origin}{BASES[self._dialect]}{members}"
        options = ServeOptions(
            upstream=read_upstream(address), token=Secret(self._token) if self._token else None
        )
        self.running = await self._stack.enter_async_context(
            open_gateway(
                self._settings,
                options,
                environ=self._environ,
                notice=lambda text: None,
                readers=(self.records.append,),
            )
        )

    @property
    def origin(self) -> str:
        """`http://127.0.0.1:port`."""
        return self.running.origin

    @property
    def received(self) -> list[Received]:
        """What the upstream was asked, in order."""
        return self.simulator.requests

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies that the upstream got, in order."""
        return [msgspec.json.decode(one.body) for one in self.received]
