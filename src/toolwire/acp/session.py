"""One session of an editor: its turns, what the editor is shown of them, and its end."""

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from toolwire.acp.blocks import PromptInput, read_blocks
from toolwire.acp.choices import SessionChoices, models_of, modes
from toolwire.acp.client import ClientFiles, EditorClient, failure
from toolwire.acp.live_output import INTERVAL, LiveOutput
from toolwire.acp.protocol import CANCELLED
from toolwire.acp.questions import EditorQuestions
from toolwire.acp.slash import SlashCommands
from toolwire.acp.updates import Updates, stop_reason
from toolwire.agent.events import (
    AgentEvent,
    MessageAdded,
    ToolFinished,
    ToolOutputText,
    ToolStarted,
    TurnEnd,
    TurnEnded,
    UsageCounted,
    reader_of,
)
from toolwire.agent.usage import Stats
from toolwire.app.builder import open_session
from toolwire.app.options import AS_OPENED, SessionOptions
from toolwire.app.session import AgentSession
from toolwire.app.user_input import expand_command, read_input
from toolwire.client.http.transport import Transport
from toolwire.config import Settings
from toolwire.errors import ToolwireError
from toolwire.ids import new_id
from toolwire.mcp.peer import RpcError
from toolwire.messages import Message
from toolwire.request import JsonObject
from toolwire.sessions.replay import title_of
from toolwire.tools.spec import ToolFailed
from toolwire.wire.repair import parse_arguments


class EditorStart(msgspec.Struct, frozen=True, kw_only=True):
    """What a session is opened with."""

    options: SessionOptions
    settings: Settings
    cwd: Path
    environ: dict[str, str]
    transport: Transport
    past: tuple[AgentEvent, ...] = ()
    """Events to show first."""


class EditorSession:
    """An agent's session in a task of its own, which ends with it."""

    def __init__(self, client: EditorClient, start: EditorStart) -> None:
        self._client = client
        self._start = start
        self._updates: Updates | None = None
        self._early: list[AgentEvent] = []
        """Events before the session was open."""
        self._questions = EditorQuestions(client, self._shown)
        self._stats = Stats()
        self._agent: AgentSession | None = None
        self._choices: SessionChoices | None = None
        self._commands: SlashCommands | None = None
        self._turn: asyncio.Task[JsonObject] | None = None
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._open: asyncio.Future[AgentSession] = asyncio.get_running_loop().create_future()
        self._output = LiveOutput(self._show_output, self._soon)
        self._background: set[asyncio.Task[None]] = set()
        self._joining: set[asyncio.Task[None]] = set()
        """Prompts for the running turn whose files are being read."""
        self._announced: list[JsonObject] = []
        self._titled = False

    @property
    def id(self) -> str:
        """The session's id."""
        return self.agent.id

    @property
    def agent(self) -> AgentSession:
        """The open session."""
        assert self._agent is not None  # noqa: S101 - set by open()
        return self._agent

    def _shown(self) -> Updates:
        assert self._updates is not None  # noqa: S101 - set by open()
        return self._updates

    # Opening and closing.

    async def open(self) -> None:
        """Opens it; the errors are those of the protocol."""
        self._task = asyncio.ensure_future(self._run())
        try:
            await asyncio.shield(self._open)
        except ToolwireError as error:
            raise failure(error.kind, str(error), self._client) from error

    async def _run(self) -> None:
        start = self._start
        try:
            async with AsyncExitStack() as stack:
                files = None
                if start.settings.acp.client_files:
                    roots = (start.cwd, *start.options.folders)
                    files = ClientFiles(self._client, roots)
                servers = msgspec.structs.replace(
                    start.options.servers, elicit=self._questions.of_server, interactive=True
                )
                options = msgspec.structs.replace(
                    start.options, files=files, servers=servers, live_seconds=INTERVAL
                )
                session = await stack.enter_async_context(
                    open_session(
                        options,
                        settings=start.settings,
                        environ=start.environ,
                        cwd=start.cwd,
                        readers=(reader_of(self._receive),),
                        approver=self._questions.approve,
                        ask=self._questions.ask,
                        tools=self._tools(),
                        transport=start.transport,
                    )
                )
                self._questions.session = session.id
                if files is not None:
                    files.session = session.id
                await self._opened(session)
                self._open.set_result(session)
                await self._ending.wait()
                await self._stop()
        except BaseException as error:
            if not self._open.done():
                self._open.set_exception(error)
                return
            raise

    def _tools(self) -> tuple[Any, ...]:
        if not (self._start.settings.acp.client_terminal and self._client.features.terminal):
            return ()
        from toolwire.acp.terminals import terminal_tool  # noqa: PLC0415 - only on request

        return (terminal_tool(self._client, lambda: self.id, self._show_terminal),)

    async def _show_terminal(self, call_id: str, terminal: str) -> None:
        content = [{"type": "terminal", "terminalId": terminal}]
        id = self._shown().call_id(call_id)
        await self._send(
            {"sessionUpdate": "tool_call_update", "toolCallId": id, "content": content}
        )

    async def _opened(self, session: AgentSession) -> None:
        self._agent = session
        info = session.opened.info
        own_terminals = self._start.settings.acp.client_terminal and self._client.features.terminal
        self._updates = Updates(
            session.toolbox.registry,
            session.toolbox.context,
            new_id=new_id,
            display_terminal=self._client.features.display_terminal and not own_terminals,
            window=info.context if info is not None else 0,
        )
        models = await models_of(self._start.settings, self._start.environ)
        self._choices = SessionChoices(session, models)
        self._commands = SlashCommands(session, self._start.settings, self._start.environ)
        for update in self._updates.replay(self._start.past):
            await self._send(update)
        self._titled = any(
            isinstance(one, MessageAdded) and not one.context and one.message.role == "user"
            for one in self._start.past
        )
        early, self._early = self._early, []
        for event in early:
            await self._receive(event)
        for words in self._commands.problems:
            await session.note("command", words)

    def state(self) -> JsonObject:
        """The modes and options, for the answer that opens a session."""
        return {"modes": modes(self.agent), "configOptions": self.options()}

    def options(self) -> list[JsonObject]:
        """Every option with its value."""
        assert self._choices is not None  # noqa: S101 - set by open()
        return self._choices.listed()

    def announce(self) -> None:
        """Announces the commands after the answer that opened the session, and again when MCP
        servers have brought theirs.
        """
        self._soon(self._announce())

    async def _announce(self) -> None:
        await self._send_commands()
        servers = self.agent.toolbox.servers
        if servers is not None:
            await servers.servers.started()
            await self._send_commands()

    async def _send_commands(self) -> None:
        assert self._commands is not None  # noqa: S101 - set by open()
        listed = self._commands.listed()
        if listed != self._announced:
            self._announced = listed
            update = {"sessionUpdate": "available_commands_update", "availableCommands": listed}
            await self._send(update)

    async def close(self) -> None:
        """Ends its turn, its commands and its servers."""
        self._ending.set()
        if self._task is not None:
            with suppress(ToolwireError):
                await self._task

    async def _stop(self) -> None:
        for task in (*self._background, *([self._turn] if self._turn else [])):
            task.cancel()
        self._output.stop()
        if self._turn is not None:
            await asyncio.wait({self._turn})

    # Prompts.

    async def prompt(self, blocks: Any) -> JsonObject:
        """The answer to a prompt; one that arrives during a turn is part of that turn."""
        given = read_blocks(blocks, self.agent.toolbox.context.workspace)
        # A turn that is cancelled before its first step ends without any.
        if self._turn is None or self._turn.done():
            self._turn = asyncio.ensure_future(self._turned(given))
        else:
            task = self._soon(self._join(given))
            self._joining.add(task)
            task.add_done_callback(self._joining.discard)
        turn = self._turn
        # A request that is dropped must not end the turn of another.
        await asyncio.wait({turn})
        return CANCELLED if turn.cancelled() else turn.result()

    async def _join(self, given: PromptInput) -> None:
        """Adds a prompt to the running turn; a command of ours is answered beside it."""
        assert self._commands is not None  # noqa: S101 - set by open()
        name, rest = self._commands.find(given.text)
        if not name or self._commands.command(name) is not None:
            self.agent.say(await self._message(given))
            return
        words = "a turn is running; try it again when it has ended"
        if name != "compress":
            words = await self._commands.answer(name, rest, self._stats)
        for update in self._shown().say(words):
            await self._send(update)

    def cancel(self) -> None:
        """Stops the turn: every prompt is then answered `cancelled`."""
        if self._turn is not None:
            self._turn.cancel()

    async def _turned(self, given: PromptInput) -> JsonObject:
        try:
            return await self._answered(given)
        except asyncio.CancelledError:
            if self._ending.is_set():
                raise
            return CANCELLED
        except RpcError:
            raise
        except ToolwireError as error:
            raise failure(error.kind, str(error), self._client) from error
        finally:
            await self._output.flush_all()
            self._turn = None

    async def _answered(self, given: PromptInput) -> JsonObject:
        assert self._commands is not None  # noqa: S101 - set by open()
        name, rest = self._commands.find(given.text)
        custom = self._commands.command(name)
        if name and custom is None:
            for update in self._shown().say(await self._commands.answer(name, rest, self._stats)):
                await self._send(update)
            return {"stopReason": "end_turn"}
        servers = self.agent.toolbox.servers
        if servers is not None:
            await servers.servers.started()
            await self._send_commands()
        own: str | None = None
        options = AS_OPENED
        if custom is not None:
            found, options = await expand_command(
                custom, rest, self.agent, self._questions.approve, self._show_later
            )
            given = msgspec.structs.replace(given, text=found.text)
            own = found.own
        ended = await self.agent.send(await self._message(given, own), options)
        while await self._is_waiting() and ended.reason is TurnEnd.DONE:
            ended = await self.agent.send(None)
        return self._ended(ended)

    async def _is_waiting(self) -> bool:
        """Whether a prompt arrived after the turn took its last input."""
        if self._joining:
            await asyncio.wait(tuple(self._joining))
        return self.agent.waiting

    def _show_later(self, event: AgentEvent) -> None:
        self._soon(self._receive(event))

    async def _message(self, given: PromptInput, own: str | None = None) -> Message:
        context = self._start.settings.context
        found = await read_input(
            self.agent.toolbox,
            given.text,
            respect_git_ignore=context.respect_git_ignore,
            own=own,
        )
        for words in found.notices:
            await self.agent.note("mention", words)
        parts = found.message.parts if given.text.strip() else found.message.parts[1:]
        return msgspec.structs.replace(found.message, parts=(*parts, *given.parts))

    def _ended(self, ended: TurnEnded) -> JsonObject:
        stop = stop_reason(ended)
        if not stop:
            raise failure(ended.error or "failed", ended.detail, self._client)
        return {"stopReason": stop}

    # Options.

    async def set_mode(self, mode: object) -> None:
        """Changes the approval mode."""
        assert self._choices is not None  # noqa: S101 - set by open()
        await self._choices.set_mode(mode)
        await self._report_change()

    async def set_option(self, option: str, value: object) -> list[JsonObject]:
        """Changes an option; returns all of them."""
        assert self._choices is not None  # noqa: S101 - set by open()
        try:
            await self._choices.set(option, value)
        except RpcError:
            raise
        except ToolwireError as error:
            raise failure(error.kind, str(error), self._client) from error
        await self._report_change()
        return self.options()

    # Events.

    async def _receive(self, event: AgentEvent) -> None:
        self._stats.add(event)
        updates = self._updates
        if updates is None:
            self._early.append(event)
            return
        match event:
            case ToolOutputText():
                if updates.is_terminal(event.call_id):
                    await self._show_output(event.call_id, event.text)
                else:
                    await self._output.add(event.call_id, event.text)
                return
            case ToolStarted():
                if event.name == "ask_user":
                    self._questions.asking_call = event.call_id
                await self._preview(updates, event)
            case ToolFinished():
                if self._questions.asking_call == event.call_id:
                    self._questions.asking_call = ""
                await self._output.flush(event.call_id)
            case UsageCounted(purpose="turn", failed=False):
                await self._fell_back(event.model)
            case MessageAdded(context=False) if event.message.role == "user" and not self._titled:
                await self._send_title(event.message.text)
            case _:
                pass
        for update in updates.of(event):
            await self._send(update)

    async def _send(self, update: JsonObject) -> None:
        await self._client.update(self.id, update)

    async def _send_title(self, words: str) -> None:
        self._titled = True
        now = datetime.now(UTC).isoformat(timespec="seconds")
        update = {
            "sessionUpdate": "session_info_update",
            "title": title_of(words),
            "updatedAt": now,
        }
        await self._send(update)

    async def _report_change(self) -> None:
        mode = {"sessionUpdate": "current_mode_update", "currentModeId": str(self.agent.mode)}
        await self._send(mode)
        info = self.agent.opened.info
        self._shown().window = info.context if info is not None else 0
        await self._send_options()

    async def _send_options(self) -> None:
        options = {"sessionUpdate": "config_option_update", "configOptions": self.options()}
        await self._send(options)

    async def _fell_back(self, model: str) -> None:
        """Reports which model answered, if it is not the one that was chosen."""
        assert self._choices is not None  # noqa: S101 - set by open()
        others = self._start.settings.fallback
        named = [each for each in others if each.partition("/")[2] == model]
        answering = named[0] if named and model != self.agent.opened.model else ""
        if answering != self._choices.answering:
            self._choices.answering = answering
            await self._send_options()

    async def _preview(self, updates: Updates, event: ToolStarted) -> None:
        """Notes the texts of an edit that needed no question."""
        tool = self.agent.toolbox.registry.get(event.name)
        if tool is None or tool.preview is None or not updates.lacks_proposal(event.call_id):
            return
        arguments = parse_arguments(event.arguments).value or {}
        with suppress(ToolFailed):
            found = await asyncio.to_thread(tool.preview, arguments, self.agent.toolbox.context)
            updates.proposed(event.call_id, found)

    async def _show_output(self, call_id: str, text: str) -> None:
        for update in self._shown().live(call_id, text):
            await self._send(update)

    def _soon(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task
