"""Finds the companion of the IDE whose terminal this is: its file, its folder, its token."""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from stat import S_ISREG
from tempfile import gettempdir
from typing import TYPE_CHECKING, Any, cast

import msgspec

from toolwire.errors import ToolwireError

if TYPE_CHECKING:
    from toolwire.ide.companion import IdeConnection

PORT = "GEMINI_CLI_IDE_SERVER_PORT"
WORKSPACE = "GEMINI_CLI_IDE_WORKSPACE_PATH"
TOKEN = "GEMINI_CLI_IDE_AUTH_TOKEN"  # noqa: S105 - the name of a variable
_FILE = re.compile(r"gemini-ide-server-(\d+)-(\d+)\.json")
_LARGEST = 1 << 16


class Companion(msgspec.Struct, frozen=True, kw_only=True):
    """Where a companion listens."""

    port: int
    workspace: str
    """Folders of the IDE, separated as in PATH."""
    token: str = ""
    title: str = "the IDE"

    def __repr__(self) -> str:
        return f"Companion(port={self.port}, title={self.title!r})"


def folder_of(environ: Mapping[str, str]) -> Path:
    """Where companions announce themselves."""
    return Path(environ.get("TMPDIR") or gettempdir()) / "gemini" / "ide"


def find_companions(environ: Mapping[str, str], cwd: Path) -> tuple[list[Companion], str]:
    """The companions whose folders contain this one, the nearest first; without any, why."""
    found = list(_announced(folder_of(environ)))
    if environ.get(PORT, "").isdecimal():
        port = int(environ[PORT])
        found = [one for one in found if one.port == port] or _older(environ, port)
    if not found:
        return [], "no companion extension of an IDE runs in a parent process of this one"
    inside = [one for one in found if _contains(one.workspace, cwd)]
    if not inside:
        named = ", ".join(sorted({one.workspace for one in found}))
        return [], f"{cwd} is not in the folder that is open in the IDE: {named or 'none'}"
    return inside, ""


def _older(environ: Mapping[str, str], port: int) -> list[Companion]:
    """A companion that only variables announce."""
    workspace = environ.get(WORKSPACE, "")
    if not workspace:
        return []
    return [Companion(port=port, workspace=workspace, token=environ.get(TOKEN, ""))]


def _announced(folder: Path) -> Iterable[Companion]:
    """The companions of this process's ancestors, the nearest first."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return
    matches = [found for name in names if (found := _FILE.fullmatch(name))]
    if not matches:
        return
    ancestors = _ancestors()
    nearest = {pid: number for number, pid in enumerate(ancestors)}
    known = [found for found in matches if int(found[1]) in nearest]
    for found in sorted(known, key=lambda one: nearest[int(one[1])]):
        companion = _read(folder / found[0], int(found[2]))
        if companion is not None:
            yield companion


def _ancestors() -> list[int]:
    """The parents of this process, the nearest first."""
    from toolwire.tools.shell.process_table import newest_first  # noqa: PLC0415 - only if announced

    parents = {one.pid: one.parent for one in newest_first()}
    found: list[int] = []
    pid = os.getppid()
    while pid > 1 and pid not in found:
        found.append(pid)
        pid = parents.get(pid, 0)
    return found


def _read(file: Path, port: int) -> Companion | None:
    """A file of this user's own; others could lead edits to a server of theirs."""
    try:
        with file.open("rb") as opened:
            about = os.fstat(opened.fileno())
            own = sys.platform == "win32" or (about.st_uid == os.getuid())
            if not own or not S_ISREG(about.st_mode) or about.st_mode & 0o002:
                return None
            body: Any = json.loads(opened.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    table = cast(dict[str, Any], body)
    info = table.get("ideInfo")
    title = cast(dict[str, Any], info).get("displayName") if isinstance(info, dict) else ""
    token, workspace = table.get("authToken"), table.get("workspacePath")
    named = table.get("port")
    return Companion(
        port=named if isinstance(named, int) and 0 < named < 65536 else port,
        workspace=workspace if isinstance(workspace, str) else "",
        token=token if isinstance(token, str) else "",
        title=title if isinstance(title, str) and title else "the IDE",
    )


def _contains(workspace: str, cwd: Path) -> bool:
    folder = cwd.resolve()
    roots = (Path(each) for each in workspace.split(os.pathsep) if each)
    return any(root.is_absolute() and folder.is_relative_to(root.resolve()) for root in roots)


async def open_companion(
    enabled: str, environ: Mapping[str, str], cwd: Path, stack: AsyncExitStack
) -> tuple["IdeConnection | None", str]:
    """Connects to the companion of this terminal's IDE until the stack ends; also returns what the
    user reads about it.
    """
    if enabled == "never":
        return None, ""
    found, why = find_companions(environ, cwd)
    for companion in found:
        from toolwire.ide.companion import IdeConnection  # noqa: PLC0415 - only with a companion

        connection = IdeConnection(companion, cwd, environ)
        try:
            await connection.open()
        except (ToolwireError, TimeoutError) as error:
            # An IDE that crashed leaves its file.
            await connection.close()
            why = f"{companion.title} does not answer: {error}"
        else:
            stack.push_async_callback(connection.close)
            return connection, f"edits are also shown in {companion.title}"
    return None, f"no IDE is used: {why}" if enabled == "always" else ""
