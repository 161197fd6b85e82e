"""Commands of a task: setup and check, confined like those of the agent, with their output kept."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from toolwire.app.toolbox import sandbox_of, workspace_of
from toolwire.client.redact import known_secrets, redaction
from toolwire.config import Settings
from toolwire.errors import ToolwireError
from toolwire.ids import new_id
from toolwire.tools.shell.environment import clean_environment
from toolwire.tools.shell.limits import ProcessLimits
from toolwire.tools.shell.output import Spool, decoded_head, decoded_tail, plain_text
from toolwire.tools.shell.shells import Shell, confined_by, end_shells, failed_in_container
from toolwire.tools.spec import ToolContext

_MEMORY = 256 * 1024
_PROBE_SECONDS = 20.0


class SandboxDied(ToolwireError):
    """Commands can no longer be started in the sandbox."""

    kind = "sandbox"


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    code: int
    """Its exit code; 128 and the signal for one that a signal ended."""
    seconds: float
    output: str
    """The end of what it printed."""
    timed_out: bool = False
    out_of_memory: str = ""
    """That its container had too little memory; empty if it had not."""


class CommandWorkspace(msgspec.Struct, frozen=True, kw_only=True):
    """Where commands run, and what they cannot reach."""

    folder: Path
    temp: Path
    environ: Mapping[str, str]
    hidden: tuple[Path, ...] = ()
    container: str = ""


class Commands:
    """Runs the commands of tasks with the settings of a host."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def run(
        self,
        command: str,
        within: CommandWorkspace,
        *,
        seconds: float = 0.0,
        log: Path | None = None,
    ) -> Ran:
        """Runs a command and ends all that it leaves; SandboxDied if it cannot start."""
        context = self._context(within)
        within.temp.mkdir(parents=True, exist_ok=True)
        name = new_id("command_")
        out = Spool(_MEMORY, within.temp / f"{name}.out")
        err = Spool(_MEMORY, within.temp / f"{name}.err")
        began, since = time.monotonic(), time.time()
        try:
            confined = await confined_by(context)
            shell = Shell(
                command,
                directory=within.folder,
                environ=context.environ,
                out=out,
                err=err,
                confined=confined,
            )
            try:
                ended = await shell.finish(ProcessLimits(wall=seconds), lambda text: None)
            finally:
                await shell.end()
            memory = await failed_in_container(confined, ended, since)
        except (OSError, ToolwireError) as error:
            raise SandboxDied(f"a command cannot be started: {error}") from error
        finally:
            await end_shells(context.owner)
            out.close()
            err.close()
        if ended.unstarted:
            raise SandboxDied(f"a command cannot be started: {ended.unstarted}")
        if log is not None:
            body = redaction()(_log(out, err)) + (f"{memory}\n".encode() if memory else b"")
            await asyncio.to_thread(log.write_bytes, body)
        code = 124 if ended.problem else ended.exit_code
        return Ran(
            code=128 + (ended.signal or 0) if code is None else code,
            seconds=time.monotonic() - began,
            output=_tail((out, err)),
            timed_out=bool(ended.problem),
            out_of_memory=memory,
        )

    async def probe(self, within: CommandWorkspace) -> None:
        """Raises SandboxDied if commands no longer start there."""
        if not within.folder.is_dir():
            raise SandboxDied(f"the workspace is gone: {within.folder}")
        ran = await self.run("true", within, seconds=_PROBE_SECONDS)
        if ran.code:
            raise SandboxDied(f"the sandbox answers with code {ran.code}: {ran.output[-200:]}")

    def _context(self, within: CommandWorkspace) -> ToolContext:
        spec = sandbox_of(self._settings, within.folder)
        hidden = tuple(map(str, within.hidden))
        allowed = self._settings.tools.environment
        return ToolContext(
            workspace=workspace_of(within.folder, within.environ, within.temp),
            owner=new_id(),
            environ=clean_environment(within.environ, known_secrets(), allowed),
            settings=self._settings.tools,
            sandbox=msgspec.structs.replace(spec, hidden=hidden, container=within.container),
        )


def _log(out: Spool, err: Spool) -> bytes:
    parts = (
        spool.head if spool.whole else spool.head + b"\n[...]\n" + spool.tail
        for spool in (out, err)
    )
    return b"".join(parts)


def _tail(spools: Sequence[Spool]) -> str:
    texts = (
        decoded_head(spool.head, whole=True) if spool.whole else decoded_tail(spool.tail)
        for spool in spools
    )
    return plain_text("".join(texts))[-4000:]
