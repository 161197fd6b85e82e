"""The editor: its features, requests to it, and its files."""

import asyncio
import threading
from pathlib import Path
from typing import Any

from toolwire.acp.protocol import NOT_FOUND, ClientFeatures, auth_required
from toolwire.errors import ErrorKind
from toolwire.mcp.lists import members
from toolwire.mcp.peer import Peer, RpcError, TimeLimits
from toolwire.request import JsonObject
from toolwire.tools.spec import ToolFailed
from toolwire.wire.jsonrpc import INTERNAL_ERROR

_FOREVER = TimeLimits(silence=float("inf"), total=float("inf"))
_FILE_SECONDS = 60.0
_FILE = TimeLimits(silence=_FILE_SECONDS, total=_FILE_SECONDS)


class EditorClient:
    """The other side of the connection."""

    def __init__(self, peer: Peer, features: ClientFeatures) -> None:
        self._peer = peer
        self.features = features

    async def update(self, session: str, update: JsonObject) -> None:
        """Sends one update of a session."""
        await self._peer.notify("session/update", {"sessionId": session, "update": update})

    async def ask(self, method: str, params: JsonObject) -> Any:
        """The answer to a request that waits for the user."""
        return await self._peer.request(method, params, _FOREVER)

    async def call(self, method: str, params: JsonObject) -> Any:
        """The answer to a request that the editor answers by itself."""
        return await self._peer.request(method, params, _FILE)


class ClientFiles:
    """Files as the editor holds them; tools call it from their threads."""

    def __init__(self, client: EditorClient, roots: tuple[Path, ...]) -> None:
        self._client = client
        self._roots = roots
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self.session = ""

    def read(self, path: Path) -> str | None:
        """The editor's text; None for a file outside of the session's folders."""
        if not self._client.features.reads or not self._is_inside(path):
            return None
        try:
            answer = self._called("fs/read_text_file", {"path": str(path)})
        except RpcError as error:
            if error.code == NOT_FOUND or not path.exists():
                raise FileNotFoundError(str(path)) from error
            raise ToolFailed(
                f"The editor cannot read {path}: {error.words}", type="read_failure"
            ) from error
        found = members(answer).get("content")
        if not isinstance(found, str):
            raise ToolFailed(f"The editor gave no text of {path}", type="read_failure")
        return found

    def write(self, path: Path, text: str) -> bool:
        """Writes through the editor; False if it cannot hold the file or the text."""
        if not self._client.features.writes or not self._is_inside(path):
            return False
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            # Bytes that are not text: only the disk can hold them.
            return False
        try:
            self._called("fs/write_text_file", {"path": str(path), "content": text})
        except RpcError as error:
            raise ToolFailed(
                f"The editor did not write {path}: {error.words}", type="file_write_failure"
            ) from error
        return True

    def _is_inside(self, path: Path) -> bool:
        # A wait on the thread of the loop would never end.
        return threading.get_ident() != self._thread and any(
            path.is_relative_to(root) for root in self._roots
        )

    def _called(self, method: str, params: JsonObject) -> Any:
        work = self._client.call(method, {"sessionId": self.session, **params})
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result(_FILE_SECONDS + 5)
        except TimeoutError as error:
            waiting.cancel()
            raise ToolFailed("The editor does not answer", type="read_failure") from error


def failure(kind: str, words: str, client: EditorClient) -> RpcError:
    """The protocol's error for a failure of ours or a vendor's."""
    if kind in (ErrorKind.AUTH, "model_missing"):
        return auth_required(words, client.features)
    return RpcError(INTERNAL_ERROR, words, {"type": kind, "message": words})
