"""A companion of an IDE: a real MCP server over loopback HTTP, announced by its file."""

import asyncio
import json
import os
import threading
from pathlib import Path
from typing import Any

from toolwire.http_server.exchange import Answering, Asked
from toolwire.http_server.listener import HttpListener

TOKEN = "companion-token-0123456789"
JSON = (("content-type", "application/json"),)
EVENTS = (("content-type", "text/event-stream"),)


class IdeServer:
    """`with IdeServer(temp, workspace) as ide:`; tests accept, change or reject its diffs."""

    def __init__(
        self, temp: Path, workspace: str, *, token: str = TOKEN, pid: int | None = None
    ) -> None:
        self._temp = temp
        self._workspace = workspace
        self._token = token
        self._pid = pid or os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._streams: list[Answering] = []
        self.diffs: dict[str, str] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.refused: list[str] = []
        self.left: dict[str, str] = {}
        """What the user has typed into a diff without accepting it."""
        self.port = 0

    def __enter__(self) -> "IdeServer":
        self._thread.start()
        self._listener = HttpListener(self._handle)
        self.port = self._do(self._listener.start("127.0.0.1", 0))
        self.file = (
            self._temp / "gemini" / "ide" / f"gemini-ide-server-{self._pid}-{self.port}.json"
        )
        self.file.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "port": self.port,
            "workspacePath": self._workspace,
            "authToken": TOKEN,
            "ideInfo": {"name": "fake", "displayName": "Fake Code"},
        }
        self.file.write_text(json.dumps(about))
        self.file.chmod(0o600)
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._listener.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _do(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _handle(self, asked: Asked, answering: Answering) -> None:
        if asked.field("authorization") != f"Bearer {self._token}":
            self.refused.append(asked.field("authorization"))
            await answering.whole(401, JSON, b"{}")
            return
        if asked.method == "GET":
            await answering.begin(200, EVENTS)
            self._streams.append(answering)
            await answering.gone.wait()
            return
        if asked.method != "POST":
            await answering.whole(200, JSON, b"{}")
            return
        body = json.loads(asked.body)
        if "id" not in body:
            await answering.whole(202)
            return
        result = self._answer(body["method"], body.get("params", {}))
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        fields = (*JSON, ("mcp-session-id", "ide-session"))
        await answering.whole(200, fields, json.dumps(answer).encode())

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            }
        if method == "tools/list":
            names = ("openDiff", "closeDiff")
            return {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in names]}
        name, given = params["name"], params["arguments"]
        self.calls.append((name, given))
        if name == "openDiff":
            self.diffs[given["filePath"]] = given["newContent"]
            return {"content": []}
        proposed = self.diffs.pop(given["filePath"], "")
        text = json.dumps({"content": self.left.get(given["filePath"], proposed)})
        return {"content": [{"type": "text", "text": text}]}

    def tell(self, method: str, **params: Any) -> None:
        """Sends a notification on every stream."""
        message = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})

        async def send() -> None:
            for stream in self._streams:
                if not stream.gone.is_set():
                    await stream.send(f"event: message\ndata: {message}\n\n".encode())

        self._do(send())

    def accept(self, path: Path, content: str | None = None) -> None:
        proposed = self.diffs.pop(str(path))
        text = proposed if content is None else content
        self.tell("ide/diffAccepted", filePath=str(path), content=text)

    def reject(self, path: Path, method: str = "ide/diffRejected") -> None:
        self.diffs.pop(str(path))
        self.tell(method, filePath=str(path))

    @property
    def connected(self) -> bool:
        return bool(self._streams)
