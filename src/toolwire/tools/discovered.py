"""Tools of a project: one command lists them, another runs them, as in gemini-cli."""

import asyncio
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any, cast

import msgspec

from toolwire.errors import BadInput
from toolwire.request import JsonObject
from toolwire.tools.shell.limits import ProcessLimits
from toolwire.tools.shell.shells import confined_by, run_program
from toolwire.tools.spec import Effect, Tool, ToolContext, ToolFailed, ToolOutput, Workspace
from toolwire.wire.json_access import encode, parse

MOST_BYTES = 10_000_000
"""Of a list of tools, or of one stream of a call."""
_PATIENCE = 60.0
_NOTE = (
    "This tool was found by running `{discover}` in the project. "
    "Calling it runs `{call} {name}` there, with the arguments as JSON on standard input. "
    "On success the result is what the command prints; otherwise Stdout, Stderr, Error, "
    "Exit Code and Signal are reported."
)


class _Ended(msgspec.Struct, frozen=True):
    stdout: str
    stderr: str
    code: int | None
    signal: int | None


async def discover(
    discovery_command: str,
    call_command: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    context: ToolContext | None = None,
) -> tuple[Tool, ...]:
    """The tools that a project's command lists; it runs confined as the context has it."""
    context = context or ToolContext(
        workspace=Workspace(roots=(cwd,), temp=Path(gettempdir()), home=cwd)
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            ended = await _run(_words(discovery_command), b"", cwd, environ, context)
    except (OSError, TimeoutError) as error:
        raise BadInput(
            f"the discovery command cannot be run: {discovery_command}: {error}"
        ) from error
    if ended.code:
        output = ended.stderr.strip() or ended.stdout.strip()
        raise BadInput(f"the discovery command failed with code {ended.code}: {output[:500]}")
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
            words = [*_words(call), name]
            ended = await _run(words, encode(arguments), cwd, context.environ, context)
        except OSError as error:
            message = _report(_Ended("", "", None, None), str(error))
            raise ToolFailed(message, type="discovered_tool_execution_error") from error
        if ended.code or ended.signal or ended.stderr:
            raise ToolFailed(_report(ended, ""), type="discovered_tool_execution_error")
        return ToolOutput(text=ended.stdout)

    return Tool(
        name=name,
        description=f"{about}\n\n{note}" if about else note,
        parameters=cast(JsonObject, schema) if isinstance(schema, dict) else {"type": "object"},
        effect=Effect.OTHER,
        run=run,
    )


def _report(ended: _Ended, error: str) -> str:
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


async def _run(
    command: list[str], given: bytes, cwd: Path, environ: Mapping[str, str], context: ToolContext
) -> _Ended:
    """Run a command, confined as the context has it; nothing of it outlives this call."""
    ended, out, err = await run_program(
        command,
        given,
        directory=cwd,
        environ=environ,
        temp=context.workspace.temp,
        limits=ProcessLimits(wall=0, idle=0),
        most=MOST_BYTES,
        confined=await confined_by(context),
    )
    if ended.problem:
        raise OSError(ended.problem)
    return _Ended(out, err, ended.exit_code, ended.signal)
