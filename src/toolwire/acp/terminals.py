"""`run_shell_command` in the editor's terminals: `[acp] client_terminal`."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import msgspec

from toolwire.acp.client import EditorClient
from toolwire.mcp.lists import members, text
from toolwire.mcp.peer import RpcError
from toolwire.request import JsonObject
from toolwire.tools.builtin import run_shell_command
from toolwire.tools.spec import Permit, Tool, ToolContext, ToolFailed, ToolOutput

ShowTerminal = Callable[[str, str], Awaitable[None]]
"""Shows a terminal as the content of a call."""


def terminal_tool(client: EditorClient, session: Callable[[], str], show: ShowTerminal) -> Tool:
    """The tool with the same name and arguments, whose commands the editor runs."""

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        terminal = _Terminal(client, session(), context)
        return await terminal.run(arguments, show)

    return msgspec.structs.replace(run_shell_command.TOOL, run=run)


class _Terminal:
    """One command in a terminal of the editor."""

    def __init__(self, client: EditorClient, session: str, context: ToolContext) -> None:
        self._client = client
        self._session = session
        self._context = context
        self._id = ""

    async def run(self, arguments: JsonObject, show: ShowTerminal) -> ToolOutput:
        permit = self._context.permit or Permit()
        command = permit.command or str(arguments["command"])
        folder = run_shell_command.folder_of(arguments, self._context)
        environ = {"PAGER": "cat", **dict(permit.environ)}
        params: JsonObject = {
            "command": "bash",
            "args": ["-c", command],
            "cwd": str(folder),
            "env": [{"name": name, "value": value} for name, value in environ.items()],
            "outputByteLimit": self._context.settings.output_characters,
        }
        try:
            self._id = text(members(await self._ask("create", params)).get("terminalId"))
            await show(self._context.call_id, self._id)
            status = await self._ended()
            output = members(await self._ask("output", {}))
        except RpcError as error:
            raise ToolFailed(
                f"the editor could not run the command: {error.words}", type="shell_execute_error"
            ) from error
        finally:
            if self._id:
                with suppress(RpcError):
                    await asyncio.shield(self._ask("release", {}))
        return _report(arguments, output, status, permit)

    async def _ended(self) -> JsonObject:
        """How the command ended; it is killed after the limit and when the turn is stopped."""
        seconds = self._context.settings.shell_seconds or None
        try:
            async with asyncio.timeout(seconds):
                found = await self._client.ask("terminal/wait_for_exit", self._about({}))
                return members(found)
        except TimeoutError:
            await self._ask("kill", {})
            return {"exitCode": None, "signal": f"stopped after {seconds:g} seconds"}
        except asyncio.CancelledError:
            with suppress(RpcError):
                await asyncio.shield(self._ask("kill", {}))
            raise

    async def _ask(self, verb: str, params: JsonObject) -> Any:
        return await self._client.call(f"terminal/{verb}", self._about(params))

    def _about(self, params: JsonObject) -> JsonObject:
        about: JsonObject = {"sessionId": self._session, **params}
        return {**about, "terminalId": self._id} if self._id else about


def _report(
    arguments: JsonObject, output: JsonObject, status: JsonObject, permit: Permit
) -> ToolOutput:
    printed = text(output.get("output"))
    cut = "[the beginning was cut by the editor]\n" if output.get("truncated") else ""
    code, signal = status.get("exitCode"), status.get("signal")
    lines = (
        f"Command: {arguments['command']}",
        f"Directory: {arguments.get('directory') or '(root)'}",
        f"Output: {cut}{printed.strip() or '(empty)'}",
        "Error: (none)",
        f"Exit Code: {'(none)' if code is None else code}",
        f"Signal: {signal or '(none)'}",
        *((permit.note,) if permit.note else ()),
    )
    return ToolOutput(text="\n".join(lines), display=printed)
