"""`run_shell_command`: one command in bash, with what it printed and what it left running."""

import asyncio
import errno
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec

from toolwire.request import JsonObject
from toolwire.tools.shell.environment import find_shell, is_powershell
from toolwire.tools.shell.limits import Ended, ProcessLimits
from toolwire.tools.shell.output import FILE_LIMIT, Spool, decoded_head, decoded_tail, plain_text
from toolwire.tools.shell.shells import (
    Confined,
    Shell,
    confined_by,
    failed_in_container,
    shells_of,
)
from toolwire.tools.spec import Effect, Permit, Tool, ToolContext, ToolFailed, ToolOutput
from toolwire.tools.typed import tool, words

_EMPTY = "Command cannot be empty."
_MARKER = "\n... [CONTENT TRUNCATED] ...\n"
_UNSAVED = "\n[Note: Could not save full output to file]"
_CANCELLED = "Command was cancelled by user before it could complete."
_RELEASED = (
    "\nThe user let this command run on in the background. The tool `background` reads its further "
    "output and stops it."
)
_LATER_MEMORY = 256 * 1024
_SNIFFED = 4096
_AT_ONCE = 1 << 16
_LIVE_BINARY = "[Binary output detected. Halting stream...]"
# What JavaScript's trim() takes away.
_WHITE = "\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff" + "".join(
    map(chr, range(0x2000, 0x200B))
)


# Neither docstring nor plain defaults: both would show in the schema, which has to be gemini-cli's.
class RunShellCommand(msgspec.Struct, frozen=True):
    command: Annotated[
        str, msgspec.Meta(description="Exact bash command to execute as `bash -c <command>`")
    ]
    description: Annotated[
        str | msgspec.UnsetType,
        msgspec.Meta(
            description="Brief description of the command for the user. Be specific and concise. "
            "Ideally a single sentence. Can be up to 3 sentences for clarity. No line breaks."
        ),
    ] = msgspec.UNSET
    directory: Annotated[
        str | msgspec.UnsetType,
        msgspec.Meta(
            description="(OPTIONAL) Directory to run the command in, if not the project root "
            "directory. Must be relative to the project root directory and must already exist."
        ),
    ] = msgspec.UNSET


class _Text:
    """A text of which only the start and the end may be in memory."""

    def __init__(self) -> None:
        self.start = ""
        self.end = ""
        self.whole = True

    def add(self, text: str) -> None:
        self.end += text
        if self.whole:
            self.start = self.end

    def gap(self) -> None:
        self.whole = False
        self.end = ""


def _check(arguments: JsonObject, context: ToolContext) -> str:
    command, directory = str(arguments["command"]), str(arguments.get("directory") or "")
    if not command.strip():
        return _EMPTY
    if "\0" in command:
        return "Command cannot contain a NUL character."
    if not directory:
        return ""
    if Path(directory).is_absolute():
        return "Directory cannot be absolute. Please refer to workspace directories by their name."
    named = [root for root in context.workspace.roots if root.name == directory]
    if not named:
        return f"Directory '{directory}' is not a registered workspace directory."
    if len(named) > 1:
        return (
            f"Directory name '{directory}' is ambiguous as it matches multiple workspace "
            "directories."
        )
    return ""


def _touches(arguments: JsonObject, context: ToolContext) -> tuple[Path, ...]:
    return (folder_of(arguments, context),)


def folder_of(arguments: JsonObject, context: ToolContext) -> Path:
    """The folder that a call runs its command in."""
    return _folder(str(arguments.get("directory") or ""), context)


def _folder(name: str, context: ToolContext) -> Path:
    """The folder that a command runs in: the root of that name, else the working directory."""
    first, *others = context.workspace.roots
    return next((root for root in others if root.name == name), first / name)


@tool(
    "run_shell_command",
    Effect.EXECUTE,
    words("run_shell_command"),
    title="Shell",
    check=_check,
    touches=_touches,
)
async def run_shell_command(args: RunShellCommand, context: ToolContext) -> ToolOutput:
    """Run the command; leave its background running, and nothing else."""
    settings, shells = context.settings, shells_of(context.owner)
    most = settings.output_characters
    name = re.sub(r"[^\w.-]", "_", Path(context.call_id or "shell").name).lstrip(".") or "shell"
    file = context.workspace.temp / f"{name}.output"
    out, err = Spool(4 * most, file), Spool(4 * most, file.with_suffix(".stderr"))
    if file.exists():  # an old one: to free a large file takes long
        await asyncio.to_thread(file.unlink, missing_ok=True)
    confined = await confined_by(context)
    began = time.time()
    shell = _start(args, context, confined, out, err)
    finished = False
    try:
        limits = ProcessLimits(
            wall=settings.shell_seconds,
            idle=settings.shell_idle_seconds,
            live=context.live_seconds,
        )
        ended, released = await shells.awaited(shell, limits, _screen(context, out))
        finished = True
    except asyncio.CancelledError as error:
        await shell.end()
        error.add_note(await _cancelled(out, err, most))
        raise
    finally:
        if not finished:
            await shell.end()
        elif shell.running:
            later = Spool(_LATER_MEMORY, file.with_suffix(".background"))
            shells.keep(shell, later)
    if ended.unstarted:
        raise _not_started(ended.unstarted, args, context)
    note = ""
    if confined is not None and confined.container:
        found = await failed_in_container(confined, ended, began)
        note = f"\n{found}" if found else ""
    elif confined is not None:
        note = await asyncio.to_thread(_blocked, confined, context, args, ended, (out, err))
    if released:
        note += _RELEASED
    return await _report(args, context, shell, ended, (out, err), most, note)


def _start(
    args: RunShellCommand, context: ToolContext, confined: Confined | None, out: Spool, err: Spool
) -> Shell:
    permit = context.permit or Permit()
    environ = {**context.environ, "GEMINI_CLI": "1", "TERM": "xterm-256color", "PAGER": "cat"}
    environ |= dict(permit.environ)
    directory = _folder(args.directory or "", context)
    command = permit.command or args.command
    command = command.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    # Never a shell of the workspace, even if that is on the search path.
    program = find_shell(environ, context.workspace.roots)
    if sys.platform == "win32" and not program:
        raise ToolFailed(
            "no shell was found; the user may install Git for Windows or PowerShell",
            type="shell_execute_error",
        )
    try:
        return Shell(
            command,
            directory=directory,
            environ=environ,
            out=out,
            err=err,
            confined=confined,
            program=program,
        )
    except OSError as error:
        reason = errno.errorcode.get(error.errno or 0, "EIO")
        raise _not_started(reason, args, context) from error


def _not_started(reason: str, args: RunShellCommand, context: ToolContext) -> ToolFailed:
    directory = _folder(args.directory or "", context)
    text = f"spawn bash {reason}"
    if reason == "ENOENT" and not directory.is_dir():
        text += f"\nThere is no directory {directory}; leave `directory` out to run in the root."
    elif reason == "E2BIG":
        text += "\nThe command is too long; write it to a file and run that."
    return ToolFailed(text, type="shell_execute_error")


def _screen(context: ToolContext, out: Spool) -> Callable[[str], None]:
    def live(text: str) -> None:
        binary = b"\0" in out.head[:_SNIFFED]
        context.emit(_LIVE_BINARY if binary else plain_text(text))

    return live


def _first(data: bytes, enough: int) -> str:
    """At least that many characters from the start, if there are; mostly no more is decoded."""
    text = plain_text(decoded_head(data[: enough + enough // 4]))
    return text if len(text) >= enough else plain_text(decoded_head(data))


def _last(data: bytes, enough: int) -> str:
    text = plain_text(decoded_tail(data[-(enough + enough // 4) :]))
    return text if len(text) >= enough else plain_text(decoded_tail(data))


def _output(out: Spool, err: Spool, most: int) -> _Text:
    """Output of both streams, standard output first, as far as it is in memory."""
    text = _Text()
    for spool in (out, err):
        if spool.total and text.end and not text.end.endswith("\n"):
            text.add("\n")
        if spool.whole:
            text.add(plain_text(decoded_head(spool.head, whole=True)))
        else:
            text.add(_first(spool.head, most // 5))
            text.gap()
            text.add(_last(spool.tail, most - most // 5))
    text.end = text.end.rstrip(_WHITE)
    text.start = text.start.lstrip(_WHITE)
    if text.whole:
        text.start = text.end = text.end.lstrip(_WHITE)
    return text


async def _gathered(out: Spool, err: Spool, most: int) -> _Text:
    if out.total + err.total < _AT_ONCE:
        return _output(out, err, most)
    return await asyncio.to_thread(_output, out, err, most)


async def _cancelled(out: Spool, err: Spool, most: int) -> str:
    output = await _gathered(out, err, most)
    text = output.end if output.whole else output.start + _MARKER + output.end
    if text:
        return f"{_CANCELLED} Below is the output before it was cancelled:\n{text}"
    return f"{_CANCELLED} There was no output before it was cancelled."


async def _report(
    args: RunShellCommand,
    context: ToolContext,
    shell: Shell,
    ended: Ended,
    spools: tuple[Spool, Spool],
    most: int,
    note: str,
) -> ToolOutput:
    output = await _gathered(*spools, most)
    shown = output.end or "(empty)" if output.whole else output.end
    text = _Text()
    text.add(f"Command: {args.command}\nDirectory: {args.directory or '(root)'}\nOutput: ")
    if output.whole:
        text.add(shown)
    else:
        text.add(output.start)
        text.gap()
        text.add(output.end)
    text.add(f"\n{_facts(shell, ended)}{note}")
    if context.permit is not None and context.permit.note:
        text.add(f"\n{context.permit.note}")
    display = (
        output.end if output.whole else f"{output.start[:2000]}{_MARKER}{output.end[-8000:]}"
    ) or (_fate(ended))
    if text.whole and len(text.end) <= most:
        return ToolOutput(text=text.end, display=display)
    lines = context.settings.output_lines
    await asyncio.to_thread(_save, *spools)
    return ToolOutput(text=_cut(text, most, lines, spools[0]), display=display)


def _blocked(
    confined: Confined,
    context: ToolContext,
    args: RunShellCommand,
    ended: Ended,
    spools: tuple[Spool, Spool],
) -> str:
    """A line that explains a denial, if the sandbox plausibly caused one."""
    if sys.platform == "win32":
        return ""
    from toolwire.tools.shell.sandbox import session  # noqa: PLC0415 - only when it is on

    failed = bool(ended.exit_code or ended.signal)
    # Many programs print their errors on standard output.
    tails = (spool.last(_SNIFFED) for spool in (spools if failed else spools[1:]))
    output = "\n".join(plain_text(decoded_tail(tail)) for tail in tails)
    directory = str(_folder(args.directory or "", context))
    walls = session.walls_of(confined, directory)
    note = session.explained(output, failed=failed, walls=walls)
    return f"\n{note}" if note else ""


def _facts(shell: Shell, ended: Ended) -> str:
    background = ", ".join(map(str, ended.background))
    return "\n".join(
        (
            f"Error: {ended.problem or '(none)'}",
            f"Exit Code: {'(none)' if ended.exit_code is None else ended.exit_code}",
            f"Signal: {ended.signal or '(none)'}",
            f"Background PIDs: {background or '(none)'}",
            f"Process Group PGID: {shell.pid or '(none)'}",
        )
    )


def _fate(ended: Ended) -> str:
    if ended.problem:
        return f"Command failed: {ended.problem}"
    if ended.signal:
        return f"Command terminated by signal: {ended.signal}"
    return f"Command exited with code: {ended.exit_code}" if ended.exit_code else ""


def _save(out: Spool, err: Spool) -> None:
    out.save()
    out.append_file(err)


def _cut(text: _Text, most: int, lines: int, saved: Spool) -> str:
    """The first fifth and the last four fifths, and where the whole is."""
    if lines:
        start, end = _wrapped(text.start, text, lines), _wrapped(text.end, text, lines)
        kept = "\n".join(start[: lines // 5]), "\n".join(end[-(lines - lines // 5) :])
    else:
        kept = text.start[: most // 5], text.end[-(most - most // 5) :]
    shown = _MARKER.join(kept)
    if not saved.file.exists():
        return shown + _UNSAVED
    what = "The full output has been"
    if saved.unsaved:
        what = f"The first {FILE_LIMIT:,} bytes of the output, not the whole, have been"
    heading = words("run_shell_command.cut").replace("{what}", what)
    return heading.replace("{file}", str(saved.file)) + shown


def _wrapped(part: str, text: _Text, lines: int) -> list[str]:
    """Lines of a part; a text of few long lines is cut every 120 characters."""
    found = part.split("\n")
    if not text.whole or len(found) > lines:
        return found
    return [
        line[start : start + 120] for line in found for start in range(0, max(len(line), 1), 120)
    ]


_BASH, _POWERSHELL = "bash -c <command>", "powershell -NoProfile -Command <command>"


def for_powershell(tool: Tool) -> Tool:
    """The tool as a model sees it where PowerShell runs the commands."""
    shown = msgspec.json.encode(tool.parameters).decode()
    shown = shown.replace(_BASH, _POWERSHELL).replace("bash command", "PowerShell command")
    first, _, rest = tool.description.partition("\n")
    begins = first.split(". ")[0].replace(_BASH, _POWERSHELL)
    return msgspec.structs.replace(
        tool, description=f"{begins}.\n{rest}", parameters=msgspec.json.decode(shown)
    )


TOOL = run_shell_command
if sys.platform == "win32" and is_powershell(find_shell(os.environ)):
    TOOL = for_powershell(TOOL)
