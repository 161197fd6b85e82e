"""A reverse proxy that serves another server below a path, as nginx in front of a gateway does."""

import asyncio
import threading
from typing import Any

import aiohttp
from aiohttp import web

from tests.fakes.simulated import LONGEST

_HOP = {"transfer-encoding", "connection", "content-length", "content-encoding", "host"}


class PathProxy:
    """`with PathProxy("/tw", port) as proxy:` what is below the path goes to `proxy.target`."""

    def __init__(self, path: str, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.target = ""
        self._path = path
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "PathProxy":
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LONGEST)

    async def _open(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", self._path + "/{tail:.*}", self._forward)
        self._client = aiohttp.ClientSession(auto_decompress=False)
        self._runner = web.AppRunner(app, shutdown_timeout=0.5)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def _close(self) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        fields = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        fields["accept-encoding"] = "identity"
        address = self.target + request.raw_path.removeprefix(self._path)
        asked = self._client.request(
            request.method,
            address,
            headers=fields,
            data=await request.read(),
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        async with asked as answer:
            kept = [(k, v) for k, v in answer.headers.items() if k.lower() not in _HOP]
            out = web.StreamResponse(status=answer.status)
            for name, value in kept:
                out.headers.add(name, value)
            await out.prepare(request)
            async for chunk in answer.content.iter_any():
                await out.write(chunk)
            return out
