"""Servers that a project brings: data until their whole definition was approved."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from toolwire.errors import BadInput
from toolwire.mcp.entry import (
    Configured,
    ServerEntry,
    cleaned_name,
    definition,
    of_json,
    read_entry,
)
from toolwire.storage.private_files import ApprovalStore

FILE = ".mcp.json"
_LARGEST = 1 << 20


def read_file(folder: Path, notice: Callable[[str], None]) -> dict[str, ServerEntry]:
    """The servers of `.mcp.json`; an entry that cannot be read is reported and left out."""
    path = folder / FILE
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return {}
    if len(data) > _LARGEST:
        notice(f"{path} is larger than {_LARGEST} bytes and is not read")
        return {}
    try:
        return read_json(data.decode("utf-8"), FILE, notice)
    except (BadInput, UnicodeDecodeError) as error:
        notice(f"{path}: {error}")
        return {}


def read_json(text: str, origin: str, notice: Callable[[str], None]) -> dict[str, ServerEntry]:
    """The servers of a document with `mcpServers`."""
    try:
        document: Any = json.loads(text)
    except ValueError as error:
        raise BadInput(f"{origin} is not JSON: {error}") from error
    listed: Any = cast(Any, document).get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(listed, dict):
        raise BadInput(f"{origin} has no object mcpServers")
    found: dict[str, ServerEntry] = {}
    for given, table in cast(dict[str, Any], listed).items():
        name = cleaned_name(given)
        if name != given:
            notice(f"the MCP server {given!r} of {origin} is called {name}")
        try:
            if not isinstance(table, dict):
                raise BadInput(f"mcpServers.{given} in {origin} is not an object")
            found[name] = read_entry(name, of_json(cast(dict[str, object], table)), origin)
        except BadInput as error:
            notice(str(error))
    return found


class Approvals:
    """Answers about servers of projects, each bound to the whole definition."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store

    def answer(self, folder: Path, name: str, entry: ServerEntry) -> bool | None:
        """Whether the server may start; None if it was not asked about as it is now."""
        return self._store.answer(folder, f"mcp:{name}", definition(entry))

    def keep(self, folder: Path, name: str, entry: ServerEntry, *, allowed: bool) -> None:
        """Stores an answer."""
        self._store.keep(folder, f"mcp:{name}", definition(entry), allowed=allowed)


def combined(
    own: Mapping[str, ServerEntry],
    project: Mapping[str, tuple[ServerEntry, str]],
    approvals: Approvals,
    folder: Path,
    notice: Callable[[str], None],
) -> dict[str, Configured]:
    """The user's servers first, then those of the project; on a clash the user's wins."""
    found = {name: Configured(entry=entry, origin="user") for name, entry in own.items()}
    for name, (entry, origin) in project.items():
        if name in found:
            notice(f"the MCP server {name} of {origin} is ignored: you have one of that name")
            continue
        approved = approvals.answer(folder, name, entry) is True
        found[name] = Configured(entry=entry, origin=origin, approved=approved)
    return found
