"""Runs one hook: a program below the watchdog, or an HTTP request."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

from toolwire.client.http.transport import HttpLimits, HttpTransport, Outgoing
from toolwire.client.redact import without_secrets
from toolwire.errors import ToolwireError
from toolwire.extensions.hooks.answers import Ran
from toolwire.extensions.hooks.definitions import Definition
from toolwire.tools.shell.environment import find_shell, is_powershell, shell_words
from toolwire.tools.shell.limits import ProcessLimits
from toolwire.tools.shell.shells import run_program

MOST_BYTES = 10_000_000
"""Of one stream of a hook."""


async def run_hook(
    hook: Definition, given: bytes, *, cwd: Path, environ: Mapping[str, str], temp: Path
) -> Ran:
    """How it ended; nothing that it started outlives it."""
    began = time.monotonic()
    try:
        if hook.url:
            found = await _posted(hook, given)
        else:
            found = await _started(hook, given, cwd, environ, temp)
    except (OSError, ToolwireError) as error:
        found = Ran(problem=f"cannot be run: {without_secrets(str(error))}")
    seconds = time.monotonic() - began
    return Ran(
        code=found.code, out=found.out, err=found.err, problem=found.problem, seconds=seconds
    )


async def _started(
    hook: Definition, given: bytes, cwd: Path, environ: Mapping[str, str], temp: Path
) -> Ran:
    words = hook.args
    if not words:
        shell = find_shell(environ)
        if not shell:
            return Ran(problem="cannot be run: no shell was found")
        # One process for a simple command: the shell becomes that program.
        plain = (shell, "-c", hook.command)
        words = shell_words(shell, hook.command) if is_powershell(shell) else plain
    ended, out, err = await run_program(
        words,
        given,
        directory=cwd,
        environ=environ,
        temp=temp,
        limits=ProcessLimits(wall=hook.timeout, idle=0),
        most=MOST_BYTES,
    )
    if ended.unstarted:
        return Ran(problem=f"cannot be run: {ended.problem}")
    if ended.problem:
        return Ran(problem=f"gave no answer within {hook.timeout:g} seconds and was ended")
    return Ran(code=ended.exit_code, out=out, err=err)


async def _posted(hook: Definition, given: bytes) -> Ran:
    limits = HttpLimits(connect=min(10.0, hook.timeout), read=hook.timeout, total=hook.timeout)
    transport = HttpTransport(limits)
    body = bytearray()
    headers = (("Content-Type", "application/json"), *hook.headers.items())
    try:
        async with (
            asyncio.timeout(hook.timeout),
            transport.open(
                Outgoing(method="POST", url=hook.url, headers=headers, body=given)
            ) as answer,
        ):
            async for chunk in answer.chunks:
                body += chunk
                if len(body) > MOST_BYTES:
                    return Ran(problem=f"answered with more than {MOST_BYTES:,} bytes")
    except TimeoutError:
        return Ran(problem=f"gave no answer within {hook.timeout:g} seconds")
    finally:
        await transport.aclose()
    text = body.decode("utf-8", "replace")
    if not 200 <= answer.status < 300:
        return Ran(problem=f"answered with status {answer.status}")
    return Ran(code=0, out=text)
