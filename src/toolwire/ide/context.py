"""What the user looks at in the IDE, as text for the model: whole at first, then what changed."""

from typing import Any, cast

import msgspec

from toolwire.mcp.lists import members, text
from toolwire.request import JsonObject
from toolwire.tools.files.encodings import printable

_MOST_FILES = 10
_MOST_SELECTED = 16 * 1024
_CUT = "... [TRUNCATED]"
_WHOLE = "Here is the user's editor context as a JSON object. This is for your information only."
_CHANGED = (
    "Here is a summary of changes in the user's editor context, in JSON format. "
    "This is for your information only."
)


class OpenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is open in the IDE."""

    path: str
    line: int = 0
    character: int = 0
    selected: str = ""

    @property
    def cursor(self) -> JsonObject | None:
        """Where the cursor is, if that is known."""
        return {"line": self.line, "character": self.character} if self.line else None


class IdeState(msgspec.Struct, frozen=True, kw_only=True):
    """What is open, and which file the user is in."""

    active: OpenFile | None = None
    others: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All open files."""
        return (*((self.active.path,) if self.active else ()), *self.others)


def read_state(params: JsonObject) -> IdeState:
    """The state of an `ide/contextUpdate`: the newest files, only the newest one active."""
    listed = members(params.get("workspaceState")).get("openFiles")
    files = [members(each) for each in cast(list[Any], listed)] if isinstance(listed, list) else []
    files = [one for one in files if text(one.get("path"))]
    files.sort(key=_newest, reverse=True)
    files = files[:_MOST_FILES]
    first = files[0] if files and files[0].get("isActive") is True else None
    active = None if first is None else _active(first)
    others = tuple(printable(text(one.get("path"))) for one in files if one is not first)
    return IdeState(active=active, others=others)


def _newest(file: JsonObject) -> float:
    when = file.get("timestamp")
    return float(when) if isinstance(when, int | float) else 0.0


def _active(file: JsonObject) -> OpenFile:
    cursor = members(file.get("cursor"))
    line, character = cursor.get("line"), cursor.get("character")
    selected = text(file.get("selectedText"))
    if len(selected) > _MOST_SELECTED:
        selected = selected[:_MOST_SELECTED] + _CUT
    return OpenFile(
        path=printable(text(file.get("path"))),
        line=line if isinstance(line, int) else 0,
        character=character if isinstance(character, int) else 0,
        selected=printable(selected),
    )


def context_text(before: IdeState | None, now: IdeState) -> str:
    """The state for the model: whole without an earlier one, else the changes; empty for none."""
    if before is None:
        shown = _whole(now) if now.paths else {}
        return _text(_WHOLE, shown) if shown else ""
    changes = _changes(before, now)
    return _text(_CHANGED, {"changes": changes}) if changes else ""


def _text(heading: str, shown: JsonObject) -> str:
    body = msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()
    return f"{heading}\n```json\n{body}\n```"


def _whole(now: IdeState) -> JsonObject:
    found: JsonObject = {}
    if now.active is not None:
        found["activeFile"] = _described(now.active)
    if now.others:
        found["otherOpenFiles"] = list(now.others)
    return found


def _described(file: OpenFile) -> JsonObject:
    found: JsonObject = {"path": file.path}
    if file.cursor:
        found["cursor"] = file.cursor
    if file.selected:
        found["selectedText"] = file.selected
    return found


def _changes(before: IdeState, now: IdeState) -> JsonObject:
    found: JsonObject = {}
    if opened := [path for path in now.paths if path not in before.paths]:
        found["filesOpened"] = opened
    if closed := [path for path in before.paths if path not in now.paths]:
        found["filesClosed"] = closed
    old, new = before.active, now.active
    if (old and old.path) != (new and new.path):
        found["activeFileChanged"] = {"path": None} if new is None else _described(new)
    elif old is not None and new is not None:
        if old.cursor != new.cursor and new.cursor:
            found["cursorMoved"] = {"path": new.path, "cursor": new.cursor}
        if old.selected != new.selected:
            found["selectionChanged"] = {"path": new.path, "selectedText": new.selected}
    return found
