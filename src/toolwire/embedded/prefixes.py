"""The beginning of a prompt, read once: its state is kept on disk for the next process."""

import hashlib
import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from toolwire.client.http.transport import Incoming, Outgoing, Transport
from toolwire.embedded.partial import sha256_of
from toolwire.wire.json_access import encode
from toolwire.wire.sse import SseDecoder

_KEPT = 4
"""Beginnings whose states are kept; each takes some tens of megabytes."""
_SHORT = 400
"""Characters; what is shorter is read faster than it is looked up."""
_CHAT = "/v1/chat/completions"
_PROGRESS = b'"prompt_progress"'


class _Message(msgspec.Struct):
    role: str = ""
    content: Any = None


class _Body(msgspec.Struct):
    messages: list[_Message] = []
    stream: bool = False


_read = msgspec.json.Decoder(_Body).decode


class Prefixes:
    """Sends requests to an engine that has already read their system prompt, where possible.

    What is kept on disk is made of the system prompt alone, never of the conversation.
    """

    def __init__(
        self, transport: Transport, *, address: str, key: str, folder: Path, identity: str
    ) -> None:
        self._transport = transport
        self._address = address
        self._headers = (
            ("authorization", f"Bearer {key}"),
            ("content-type", "application/json"),
            # The server drops a connection after a stream, and does not say so.
            ("connection", "close"),
        )
        self._folder = folder
        self._identity = identity
        self._held = ""
        """The beginning that the engine last read or was given."""

    @asynccontextmanager
    async def open(self, request: Outgoing) -> AsyncGenerator[Incoming]:
        """Send; where a beginning must be read first, its progress comes before the answer."""
        body = _read(request.body)
        system = _beginning(body)
        sent = self._to(urlsplit(request.url).path, request.body, request.method)
        if len(system) < _SHORT or not body.stream or await self._holds(system):
            async with self._transport.open(sent) as incoming:
                yield incoming
            return
        async with aclosing(self._after_reading(system, sent)) as chunks:
            yield Incoming(status=200, headers={}, chunks=chunks)

    async def _holds(self, system: str) -> bool:
        """Whether the engine knows the beginning, perhaps from a state on disk."""
        if system == self._held:
            return True
        for file in self._folder.glob(f"{self._known(system)}-*.state"):
            if await self._restored(file.name):
                self._held = system
                return True
        return False

    async def _restored(self, name: str) -> bool:
        """Whether the engine took the state; one that it does not take is removed.

        llama.cpp ends the process over a state that was cut, and takes one with changed bytes, so
        the hash in the name is compared first.
        """
        file = self._folder / name
        try:
            whole = file.stem.rpartition("-")[2] == await sha256_of(file)
            if whole and await self._slot("restore", file):
                file.touch()
                return True
            file.unlink(missing_ok=True)
        except OSError:
            # Another process removed it, or it cannot be read.
            pass
        return False

    async def _kept(self, system: str) -> bool:
        """Whether the state was written; it gets its name when it is whole."""
        known = self._known(system)
        draft = self._folder / f"{known}-{secrets.token_hex(4)}.part"
        try:
            if await self._slot("save", draft):
                draft.replace(self._folder / f"{known}-{await sha256_of(draft)}.state")
                return True
            draft.unlink(missing_ok=True)
        except OSError:
            # What cannot be kept is read again by the next process.
            pass
        return False

    async def _after_reading(self, system: str, sent: Outgoing) -> AsyncGenerator[bytes]:
        """The progress of reading the beginning, then the answer."""
        asked = {"messages": [{"role": "system", "content": system}], "max_tokens": 1}
        first = encode({**asked, "stream": True, "return_progress": True, "temperature": 0})
        sse = SseDecoder()
        async with self._transport.open(self._to(_CHAT, first)) as incoming:
            async for chunk in incoming.chunks:
                for frame in sse.feed(chunk):
                    if _PROGRESS in frame.data:
                        yield b"data: " + frame.data + b"\n\n"
            read = incoming.status == 200
        if read and await self._kept(system):
            self._held = system
            self._forget_old()
        async with self._transport.open(sent) as incoming:
            if incoming.status == 200:
                async for chunk in incoming.chunks:
                    yield chunk
                return
            # The answer has begun, so its refusal is told as an error in the stream.
            words = b"".join([chunk async for chunk in incoming.chunks])
            yield b"data: " + b" ".join(words.splitlines()) + b"\n\n"

    async def _slot(self, action: str, file: Path) -> bool:
        url = f"{self._address}/slots/0?action={action}"
        body = encode({"filename": file.name})
        request = Outgoing(method="POST", url=url, headers=self._headers, body=body)
        async with self._transport.open(request) as incoming:
            async for _ in incoming.chunks:
                pass
            return incoming.status == 200

    def _to(self, path: str, body: bytes, method: str = "POST") -> Outgoing:
        url = f"{self._address}{path}"
        return Outgoing(method=method, url=url, headers=self._headers, body=body)

    def _known(self, system: str) -> str:
        return hashlib.sha256(f"{self._identity}\n{system}".encode()).hexdigest()[:40]

    def _forget_old(self) -> None:
        def age(path: Path) -> float:
            try:
                return -path.stat().st_mtime
            except OSError:
                return 0.0

        # Drafts too: a process may have ended while it wrote one.
        found = (*self._folder.glob("*.state"), *self._folder.glob("*.part"))
        for path in sorted(found, key=age)[_KEPT:]:
            path.unlink(missing_ok=True)


def _beginning(body: _Body) -> str:
    """The system prompt, if the conversation begins with one."""
    if not body.messages or body.messages[0].role != "system":
        return ""
    content = body.messages[0].content
    return content if isinstance(content, str) else ""
