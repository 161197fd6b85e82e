"""Tools a project brings along: one command lists them, another runs them (gemini-cli's way)."""

import asyncio
import os
import shlex
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from toolwire.errors import BadInput
from toolwire.request import JsonObject
from toolwire.tools.environment import clean_environment
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput
from toolwire.wire.reading import encode, parse

MOST_BYTES = 10_000_000
"""Of a list of tools, or of one stream of a call."""
_PATIENCE = 60.0
_NOTE = (
    "This tool was found by running `{discover}` in the project. "
    "Calling it runs `{call} {name}` there, with the arguments as JSON on standard input. "
    "On success the result is what the command prints; otherwise Stdout, Stderr, Error, "
    "Exit Code and Signal are told."
)


class _Ended(msgspec.Struct, frozen=True):
    stdout: str
    stderr: str
    code: int | None
    signal: int | None


async def discover(
    discovery_command: str, call_command: str, *, cwd: Path, environ: Mapping[str, str]
) -> tuple[Tool, ...]:
    """The tools that a project's command lists."""
    try:
        async with asyncio.timeout(_PATIENCE):
            ended = await _run(_words(discovery_command), b"", cwd, environ)
    except (OSError, TimeoutError) as error:
        raise BadInput(
            f"the discovery command cannot be run: {discovery_command}: {error}"
        ) from error
    if ended.code:
        said = ended.stderr.strip() or ended.stdout.strip()
        raise BadInput(f"the discovery command failed with code {ended.code}: {said[:500]}")
    found: object = parse(ended.stdout, "the discovery command's output")
    if not isinstance(found, list):
        raise BadInput("the discovery command must print a JSON list of tool declarations")
    return tuple(
        _tool(declaration, discovery_command, call_command, cwd)
        for entry in cast(list[object], found)
        for declaration in _declarations(entry)
    )


def _declarations(entry: object) -> list[JsonObject]:
    """A bare declaration, or those of a `{function_declarations: […]}` object."""
    if not isinstance(entry, dict):
        return []
    members = cast(JsonObject, entry)
    inner = members.get("function_declarations", members.get("functionDeclarations"))
    if isinstance(inner, list):
        return [cast(JsonObject, one) for one in cast(list[object], inner) if isinstance(one, dict)]
    return [members] if members.get("name") else []


def _tool(declaration: JsonObject, discovery: str, call: str, cwd: Path) -> Tool:
    name = str(declaration.get("name", ""))
    about = str(declaration.get("description", ""))
    note = _NOTE.format(discover=discovery, call=call, name=name)
    schema: Any = declaration.get("parametersJsonSchema", declaration.get("parameters"))

    async def run(arguments: JsonObject, context: ToolContext) -> ToolOutput:
        try:
            ended = await _run([*_words(call), name], encode(arguments), cwd, context.environ)
        except OSError as error:
            words = _told(_Ended("", "", None, None), str(error))
            raise ToolFailed(words, type="discovered_tool_execution_error") from error
        if ended.code or ended.signal or ended.stderr:
            raise ToolFailed(_told(ended, ""), type="discovered_tool_execution_error")
        return ToolOutput(text=ended.stdout)

    return Tool(
        name=name,
        description=f"{about}\n\n{note}" if about else note,
        parameters=cast(JsonObject, schema) if isinstance(schema, dict) else {"type": "object"},
        effect=Effect.OTHER,
        run=run,
    )


def _told(ended: _Ended, error: str) -> str:
    code = "(none)" if ended.code is None else str(ended.code)
    return "\n".join(
        (
            f"Stdout: {ended.stdout or '(empty)'}",
            f"Stderr: {ended.stderr or '(empty)'}",
            f"Error: {error or '(none)'}",
            f"Exit Code: {code}",
            f"Signal: {ended.signal or '(none)'}",
        )
    )


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise BadInput(f"the command cannot be read: {command}: {error}") from error
    if not words:
        raise BadInput("a command for the project's own tools is empty")
    return words


async def _run(command: list[str], given: bytes, cwd: Path, environ: Mapping[str, str]) -> _Ended:
    """Run a command in its own process group, which does not outlive this call."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=dict(environ) or clean_environment(os.environ, ()),
        start_new_session=True,
    )
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_write(process.stdin, given))
            out = group.create_task(_read(process.stdout))
            err = group.create_task(_read(process.stderr))
        code = await process.wait()
    finally:
        _kill(process.pid)
    return _Ended(
        out.result(), err.result(), None if code < 0 else code, -code if code < 0 else None
    )


async def _write(pipe: asyncio.StreamWriter | None, given: bytes) -> None:
    if pipe is None:
        return
    try:
        pipe.write(given)
        await pipe.drain()
    except (BrokenPipeError, ConnectionResetError):
        # A command that reads nothing may close its end first.
        return
    finally:
        pipe.close()


async def _read(pipe: asyncio.StreamReader | None) -> str:
    """Everything up to the limit; the rest is read and dropped, so that the command can end."""
    kept = bytearray()
    while pipe is not None and (chunk := await pipe.read(65_536)):
        kept += chunk[: max(0, MOST_BYTES - len(kept))]
    return kept.decode("utf-8", "replace")


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
