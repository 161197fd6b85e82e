"""The connection to a companion: diffs of edits are opened in the IDE, and its answers count."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from toolwire.agent.questions import Approver, Choice, Confirmation, EditDetails, UserAnswer
from toolwire.client.http.transport import HttpLimits, HttpTransport
from toolwire.client.redact import SHORTEST, Secret
from toolwire.errors import ToolwireError
from toolwire.ide.context import IdeState, context_text, read_state
from toolwire.ide.discovery import Companion
from toolwire.mcp.client import Host
from toolwire.mcp.connection import Reach, ServerConnection
from toolwire.mcp.entry import ServerEntry
from toolwire.mcp.http_channel import HttpRefused
from toolwire.mcp.lists import members, text
from toolwire.request import JsonObject
from toolwire.tools.files.encodings import with_line_end
from toolwire.tools.proposals import Proposal

_PROTOCOL = "2025-06-18"
_CONNECT_SECONDS = 2.0
_CLOSE_SECONDS = 5.0
_APPROVING = (Choice.ONCE, Choice.SESSION, Choice.ALWAYS, Choice.EVERYWHERE, Choice.SERVER)


class IdeAnswer(msgspec.Struct, frozen=True):
    """The user's answer in the IDE; `content` is the text that they accept."""

    accepted: bool
    content: str | None = None


class _Token:
    """The token of every request."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self._token}"} if self._token else {}

    async def challenged(self, refused: HttpRefused) -> bool:
        del refused
        return False


class IdeConnection:
    """A companion in use."""

    def __init__(self, companion: Companion, cwd: Path, environ: Mapping[str, str]) -> None:
        self.title = companion.title
        self._port = companion.port
        if len(companion.token) >= SHORTEST:
            Secret(companion.token)
        self._transport = HttpTransport(HttpLimits(read=None))
        entry = ServerEntry(
            url=f"http://127.0.0.1:{companion.port}/mcp", transport="http", protocol=_PROTOCOL
        )
        reach = Reach(
            directory=cwd,
            environ=environ,
            transport=self._transport,
            login=lambda entry: _Token(companion.token),
        )
        host = Host(noticed=self._noticed)
        self._server = ServerConnection("ide", entry, host, reach)
        self._server.tries = 1
        self._diffs: dict[str, asyncio.Future[IdeAnswer]] = {}
        self._state: IdeState | None = None
        self._sent: IdeState | None = None
        """The state that the model knows."""

    async def open(self) -> None:
        """Connects; ToolwireError says why it cannot."""
        try:
            # The file of an IDE that has ended may be left: its port refuses at once.
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError as error:
            raise ToolwireError(f"nothing listens at port {self._port}") from error
        writer.close()
        await self._server.ready(_CONNECT_SECONDS)

    async def close(self) -> None:
        """Ends the connection."""
        for waiting in self._diffs.values():
            waiting.cancel()
        await self._server.aclose()
        await self._transport.aclose()

    def context(self) -> str:
        """What the user looks at, for the next prompt: the whole at first, then changes."""
        now = self._state
        words = "" if now is None else context_text(self._sent, now)
        self._sent = now if words else self._sent
        return words

    def _noticed(self, method: str, params: JsonObject) -> None:
        if method == "ide/contextUpdate":
            self._state = read_state(params)
            return
        waiting = self._diffs.get(text(params.get("filePath")))
        if waiting is None or waiting.done():
            return
        if method == "ide/diffAccepted":
            content = params.get("content")
            answer = IdeAnswer(True, content if isinstance(content, str) else None)
            waiting.set_result(answer)
        elif method in ("ide/diffRejected", "ide/diffClosed"):
            waiting.set_result(IdeAnswer(False))

    async def opened(self, path: str, content: str) -> "asyncio.Future[IdeAnswer] | None":
        """The answer that the user will give in the IDE; None if it shows no diff."""
        waiting: asyncio.Future[IdeAnswer] = asyncio.get_running_loop().create_future()
        self._diffs[path] = waiting
        try:
            arguments: JsonObject = {"filePath": path, "newContent": content}
            result = await self._server.call("openDiff", arguments, None)
        except ToolwireError:
            result = {"isError": True}
        if result.get("isError"):
            self._diffs.pop(path, None)
            return None
        return waiting

    async def closed(self, path: str) -> str | None:
        """Closes a diff; the text that it had, None if that is not known."""
        self._diffs.pop(path, None)
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                result = await self._server.call("closeDiff", {"filePath": path}, None)
        except (ToolwireError, TimeoutError):
            return None
        return None if result.get("isError") else _text_of(result)

    def dismiss(self, path: str) -> None:
        """Forgets a diff that the IDE has closed."""
        self._diffs.pop(path, None)


def _text_of(result: JsonObject) -> str | None:
    """The text of a closed diff: in a JSON object, or by itself."""
    listed = result.get("content")
    first = cast(list[Any], listed)[0] if isinstance(listed, list) and listed else None
    words = text(members(first).get("text"))
    with suppress(msgspec.DecodeError):
        found = members(msgspec.json.decode(words)).get("content")
        if isinstance(found, str):
            return found
    return words or None


def asking_both(ask: Approver, connection: IdeConnection, show: Callable[[str], None]) -> Approver:
    """Asks in the terminal and, about an edit of one file, in the IDE; the first answer counts.

    `show` reports an answer of the IDE in the terminal.
    """

    async def approve(question: Confirmation) -> UserAnswer:
        details = question.details
        editable = isinstance(details, EditDetails) and details.editable
        if not editable or len(question.proposals) != 1:
            return await ask(question)
        proposal = question.proposals[0]
        answering = await connection.opened(str(proposal.path), proposal.after)
        if answering is None:
            return await ask(question)
        asking = asyncio.ensure_future(_asked(ask, question))
        return await _first(asking, answering, connection, proposal, show)

    return approve


async def _first(
    asking: "asyncio.Task[UserAnswer]",
    answering: "asyncio.Future[IdeAnswer]",
    connection: IdeConnection,
    proposal: Proposal,
    show: Callable[[str], None],
) -> UserAnswer:
    """The first answer; the question on the other side is closed."""
    path = str(proposal.path)
    try:
        await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        asking.cancel()
        await asyncio.shield(connection.closed(path))
        raise
    if asking.done():
        left = await connection.closed(path)
        return _with_text(asking.result(), left, proposal.after)
    asking.cancel()
    await asyncio.wait({asking})
    connection.dismiss(path)
    found = answering.result()
    show(f"{'accepted' if found.accepted else 'rejected'} in {connection.title}")
    if not found.accepted:
        return UserAnswer(choice=Choice.CANCEL)
    return _with_text(UserAnswer(choice=Choice.ONCE), found.content, proposal.after)


async def _asked(ask: Approver, question: Confirmation) -> UserAnswer:
    return await ask(question)


def _with_text(answer: UserAnswer, content: str | None, proposed: str) -> UserAnswer:
    """An approval with the text that the user left in the IDE, if it is another."""
    if content is None or answer.choice not in _APPROVING:
        return answer
    if with_line_end(content, "\n") == with_line_end(proposed, "\n"):
        return answer
    return msgspec.structs.replace(answer, content=content)
