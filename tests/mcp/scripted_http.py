"""The scripted server over HTTP: JSON bodies, event streams, or the older HTTP+SSE."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from aiohttp import web

from tests.mcp.scripted_server import usual

Form = Literal["json", "events", "sse"]


class ScriptedHttp:
    """Answers each request with the lines of a script, in one of three forms."""

    def __init__(self, script: Mapping[str, list[str]], form: Form) -> None:
        self.script = script
        self.form = form
        self.received: list[dict[str, Any]] = []
        self._stream: asyncio.Queue[bytes] = asyncio.Queue()

    def lines(self, message: dict[str, Any]) -> list[bytes]:
        """The raw lines that answer a message; none for a notification."""
        if "id" not in message or "method" not in message:
            return []
        number, method = json.dumps(message["id"]), message["method"]
        return [
            line.replace("$ID", number).encode("latin-1")
            for line in self.script.get(method, [usual(method)])
        ]

    async def post(self, request: web.Request) -> web.StreamResponse:
        message = json.loads(await request.read())
        self.received.append(message)
        lines = self.lines(message)
        if lines == [b"sleep"]:
            await asyncio.sleep(1000)
        if self.form == "sse":
            for line in lines:
                self._stream.put_nowait(_event(line))
            return web.Response(status=202)
        if not lines:
            return web.Response(status=202)
        if self.form == "json":
            return web.Response(body=b"\n".join(lines), content_type="application/json")
        return web.Response(body=b"".join(map(_event, lines)), content_type="text/event-stream")

    async def get(self, request: web.Request) -> web.StreamResponse:
        if self.form != "sse":
            return web.Response(status=405)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /mcp\n\n")
        while True:
            await response.write(await self._stream.get())


def _event(line: bytes) -> bytes:
    return (
        b"event: message\n" + b"".join(b"data: %b\n" % each for each in line.split(b"\n")) + b"\n"
    )


@asynccontextmanager
async def serving(application: web.Application) -> AsyncGenerator[str]:
    """The address of an application on loopback."""
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def scripted_http(
    script: Mapping[str, list[str]], form: Form
) -> AsyncGenerator[tuple[str, ScriptedHttp]]:
    """The address of a scripted server, and the server."""
    server = ScriptedHttp(script, form)
    application = web.Application(client_max_size=1 << 30)
    application.router.add_post("/mcp", server.post)
    application.router.add_get("/mcp", server.get)
    async with serving(application) as address:
        yield f"{address}/mcp", server
