"""`background`: list, read and stop what shell commands left running."""

import asyncio
from typing import Annotated, Literal

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.shell.output import Spool, decoded_tail, plain_text
from toolwire.tools.shell.shells import Shell, shells_of
from toolwire.tools.spec import Effect, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words

LINES = 200
_CHARACTERS = 40_000


class Background(msgspec.Struct, frozen=True):
    action: Annotated[Literal["list", "read", "stop"], msgspec.Meta(description="What to do.")]
    pgid: Annotated[
        int,
        msgspec.Meta(
            description="Process Group PGID that run_shell_command returned; for read and stop."
        ),
    ] = 0
    lines: Annotated[int, msgspec.Meta(ge=1, description="How many of the last lines to read.")] = (
        LINES
    )


def _check(arguments: JsonObject, context: ToolContext) -> str:
    if arguments.get("action") != "list" and not arguments.get("pgid"):
        return f'"pgid" is needed to {arguments.get("action")}; {_known(context)}'
    return ""


def _known(context: ToolContext) -> str:
    running = shells_of(context.owner).running()
    if not running:
        return "no background shell is running"
    return f"running: {', '.join(map(str, running))}"


# To stop is to change something; the policy lets it, since it reaches only what an allowed
# run_shell_command of this session started.
@tool("background", Effect.EXECUTE, words("background"), title="Background", check=_check)
async def background(args: Background, context: ToolContext) -> ToolOutput:
    """List, read or stop."""
    if args.action == "list":
        return await _list(context)
    found = shells_of(context.owner).get(args.pgid)
    if found is None:
        raise ToolFailed(f"no background shell has PGID {args.pgid}; {_known(context)}")
    shell, spool = found
    if args.action == "stop":
        ended_before = not shell.running
        await shell.end()
        state = "had already ended" if ended_before else "was stopped with all it started"
    else:
        state = "is running" if shell.running else "has ended"
    return ToolOutput(text=await asyncio.to_thread(_report, shell, spool, state, args.lines))


async def _list(context: ToolContext) -> ToolOutput:
    running = shells_of(context.owner).running()
    if not running:
        return ToolOutput(text="No background shells are running.")
    lines = [
        f"- [PGID {pid}] PIDs {', '.join(map(str, members))}: `{shell.command}`"
        for pid, (shell, _) in running.items()
        if (members := await asyncio.to_thread(shell.members))
    ]
    return ToolOutput(text="\n".join(lines) or "No background shells are running.")


def _report(shell: Shell, spool: Spool, state: str, lines: int) -> str:
    text = decoded_tail(spool.head if spool.whole else spool.tail)
    text = plain_text(text).rstrip("\n")
    found = text.split("\n")
    shown = "\n".join(found[-lines:])[-_CHARACTERS:]
    heading = f"Background shell {shell.pid} (`{shell.command}`) {state}.\n"
    if len(shown) == len(text) and spool.whole:
        return f"{heading}Output since its call returned: {shown or '(empty)'}"
    spool.save()
    where = "" if spool.unsaved else f" The full output is in: {spool.file}"
    return f"{heading}Last output since its call returned.{where}\n{shown}"


TOOL = background
