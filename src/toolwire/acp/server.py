"""The agent's side of a connection: the methods of the protocol, and the sessions behind them."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from toolwire.acp.client import EditorClient, failure
from toolwire.acp.protocol import (
    CANCELLED,
    ENVIRONMENT,
    LOGIN,
    NOT_FOUND,
    bad,
    folder_of,
    folders_of,
    greeting,
    read_features,
    servers_of,
    text_of,
)
from toolwire.errors import SessionError, ToolwireError
from toolwire.mcp.lists import text
from toolwire.mcp.peer import Channel, Peer, RpcError, answered, unknown_method
from toolwire.request import JsonObject
from toolwire.sessions.store import Contents, SessionStore, Summary
from toolwire.wire.jsonrpc import INVALID_REQUEST, Id, RpcFailure, RpcMessage, RpcRequest

if TYPE_CHECKING:
    from toolwire.acp.session import EditorSession
    from toolwire.agent.events import AgentEvent
    from toolwire.app.options import SessionOptions
    from toolwire.client.http.transport import Transport
    from toolwire.config import Settings
    from toolwire.sessions.store import Contents, SessionStore, Summary

Setup: TypeAlias = "Callable[[], tuple[SessionOptions, Transport]]"
"""What sessions are opened with; loaded with the first of them, so that the handshake is fast."""
_PAGE = 50
_END_SECONDS = 0.8
"""Seconds that turns, commands and servers may take to end with the connection."""
Serve = Callable[[JsonObject], Coroutine[Any, Any, Any]]


class AcpServer:
    """Serves one editor; many sessions at the same time."""

    def __init__(
        self,
        channel: Channel,
        setup: Setup,
        *,
        environ: Mapping[str, str],
    ) -> None:
        self._channel = channel
        self._setup = cache(setup)
        self._environ = dict(environ)
        self._peer = Peer(channel, self._serve, self._noticed)
        self._client: EditorClient | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._prompts: dict[str, set[Id]] = {}
        """Prompts of each session that are not answered yet."""
        self._cancelled: set[Id] = set()
        """Prompts that were cancelled before work on them began."""
        self._sending: set[asyncio.Task[None]] = set()
        self._methods: dict[str, Serve] = {
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    def receive(self, message: RpcMessage) -> None:
        """Takes one message of the editor."""
        if isinstance(message, RpcRequest):
            if message.id in self._peer.serving:
                words = "a request of this id is still open"
                self.soon(self._channel.send(RpcFailure(message.id, INVALID_REQUEST, words)))
                return
            if message.method == "session/prompt":
                # A cancellation may follow before work on the prompt begins.
                session = text(message.params.get("sessionId"))
                self._prompts.setdefault(session, set()).add(message.id)
        self._peer.receive(message)

    def soon(self, sending: Coroutine[Any, Any, None]) -> None:
        """Sends in the background."""
        task = asyncio.ensure_future(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Ends every session: turns, commands, servers."""
        self._peer.close()
        ends = [asyncio.ensure_future(one.close()) for one in self._sessions.values()]
        if ends:
            await asyncio.wait(ends, timeout=_END_SECONDS)

    @property
    def client(self) -> EditorClient:
        """The editor, once it has made the handshake."""
        if self._client is None:
            raise RpcError(INVALID_REQUEST, "initialize comes first")
        return self._client

    async def _serve(self, method: str, params: JsonObject) -> Any:
        if method == "initialize":
            features = read_features(params)
            self._client = EditorClient(self._peer, features)
            return greeting(features)
        serve = self._methods.get(method)
        if serve is None:
            raise unknown_method(method)
        client = self.client
        try:
            return await serve(params)
        except RpcError:
            raise
        except ToolwireError as error:
            raise failure(error.kind, str(error), client) from error

    def _noticed(self, method: str, params: JsonObject) -> None:
        if method != "session/cancel":
            return
        id = text(params.get("sessionId"))
        self._cancelled |= self._prompts.get(id, set())
        session = self._sessions.get(id)
        if session is not None:
            session.cancel()

    def _session(self, params: JsonObject) -> "EditorSession":
        id = text_of(params, "sessionId")
        found = self._sessions.get(id)
        if found is None:
            raise _no_session(id)
        return found

    # Authentication.

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        if params.get("methodId") not in (LOGIN, ENVIRONMENT):
            raise bad(f"unknown method {params.get('methodId')!r}")
        from toolwire import config  # noqa: PLC0415 - start-up time
        from toolwire.app.model_choice import choose_model  # noqa: PLC0415 - start-up time

        options, _ = self._setup()
        choose_model(
            config.load(self._environ, Path.cwd()),
            self._environ,
            model=options.model,
            provider=options.provider,
            upstream=options.upstream,
        )
        return {}

    # Sessions.

    async def _new(self, params: JsonObject) -> JsonObject:
        session = await self._opened(params, "")
        return {"sessionId": session.id, **session.state()}

    async def _load(self, params: JsonObject) -> JsonObject:
        id = text_of(params, "sessionId")
        contents = await self._contents(id)
        session = await self._opened(params, id, tuple(contents.events))
        return session.state()

    async def _resume(self, params: JsonObject) -> JsonObject:
        id = text_of(params, "sessionId")
        await self._contents(id)
        return (await self._opened(params, id)).state()

    async def _fork(self, params: JsonObject) -> JsonObject:
        id = text_of(params, "sessionId")
        folder_of(params.get("cwd"), "cwd")
        await self._contents(id)
        copy = await asyncio.to_thread(self._stored().fork, id)
        session = await self._opened(params, copy)
        return {"sessionId": session.id, **session.state()}

    async def _opened(
        self, params: JsonObject, id: str, past: "tuple[AgentEvent, ...]" = ()
    ) -> "EditorSession":
        """Opens a session: a new one without an id."""
        from toolwire.acp.session import EditorSession, EditorStart  # noqa: PLC0415 - start-up time

        client = self.client
        shared, transport = self._setup()
        cwd = folder_of(params.get("cwd"), "cwd")
        before = self._sessions.pop(id, None)
        if before is not None:
            await before.close()
        settings = await asyncio.to_thread(self._settings, cwd)
        servers = shared.servers
        if not servers.off:
            given = {**servers.given, **servers_of(params)}
            servers = msgspec.structs.replace(servers, given=given)
        options = msgspec.structs.replace(
            shared, session=id, folders=folders_of(params), servers=servers
        )
        start = EditorStart(
            options=options,
            settings=settings,
            cwd=cwd,
            environ=self._environ,
            transport=transport,
            past=past,
        )
        session = EditorSession(client, start)
        await session.open()
        self._sessions[session.id] = session
        session.announce()
        return session

    def _stored(self) -> "SessionStore":
        from toolwire import config  # noqa: PLC0415 - start-up time
        from toolwire.app.stored_sessions import stored_sessions  # noqa: PLC0415 - start-up time

        return stored_sessions(self._environ, config.load(self._environ, Path.cwd()))

    def _settings(self, cwd: Path) -> "Settings":
        from toolwire import config  # noqa: PLC0415 - start-up time

        settings = config.load(self._environ, cwd)
        if not settings.acp.client_terminal or not self.client.features.terminal:
            return settings
        # The editor's terminals are not confined: the policy must not count on a sandbox.
        tools = msgspec.structs.replace(settings.tools, sandbox="off")
        return msgspec.structs.replace(settings, tools=tools)

    async def _contents(self, id: str) -> "Contents":
        """What is stored of a session; an error if there is none of that id."""
        try:
            contents = await asyncio.to_thread(self._stored().read, id)
        except SessionError as error:
            raise RpcError(NOT_FOUND, str(error)) from error
        if contents.id != id:
            raise _no_session(id)
        return contents

    async def _list(self, params: JsonObject) -> JsonObject:
        cwd, cursor = params.get("cwd"), params.get("cursor")
        project = None if cwd is None else str(folder_of(cwd, "cwd"))
        start = 0
        if cursor is not None:
            if not isinstance(cursor, str) or not (cursor.isascii() and cursor.isdecimal()):
                raise bad(f"unknown cursor {cursor!r}")
            start = int(cursor)
        found = await asyncio.to_thread(self._stored().list, project)
        page = found[start : start + _PAGE]
        answer: JsonObject = {"sessions": [_listed(one) for one in page]}
        if start + _PAGE < len(found):
            answer["nextCursor"] = str(start + _PAGE)
        return answer

    async def _close(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        self._sessions.pop(session.id)
        await session.close()
        return {}

    async def _delete(self, params: JsonObject) -> JsonObject:
        id = text_of(params, "sessionId")
        session = self._sessions.pop(id, None)
        if session is not None:
            await session.close()
        await self._contents(id)
        await asyncio.to_thread(self._stored().delete, id)
        return {}

    # Turns.

    async def _prompt(self, params: JsonObject) -> JsonObject:
        number, id = answered.get().id, text(params.get("sessionId"))
        try:
            session = self._session(params)
            if number in self._cancelled:
                return CANCELLED
            return await session.prompt(params.get("prompt"))
        finally:
            self._cancelled.discard(number)
            open_prompts = self._prompts.get(id, set())
            open_prompts.discard(number)
            if not open_prompts:
                self._prompts.pop(id, None)

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        await self._session(params).set_mode(params.get("modeId"))
        return {}

    async def _set_option(self, params: JsonObject) -> JsonObject:
        session = self._session(params)
        option = text_of(params, "configId")
        return {"configOptions": await session.set_option(option, params.get("value"))}


def _no_session(id: str) -> RpcError:
    return RpcError(NOT_FOUND, f'no session "{id}"')


def _listed(one: "Summary") -> JsonObject:
    when = datetime.fromtimestamp(one.updated, UTC).isoformat(timespec="seconds")
    return {"sessionId": one.id, "cwd": one.project, "title": one.title, "updatedAt": when}
