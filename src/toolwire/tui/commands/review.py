"""Commands that show what happened: changes, transcript, plan; and copies of it."""

import asyncio
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from toolwire.errors import BadInput, ToolwireError, UnknownName
from toolwire.terminal_text import one_line
from toolwire.tui.commands.looks import save
from toolwire.tui.commands.restore import checkpoint_of, restore_files
from toolwire.tui.diffs import diff_lines, painted
from toolwire.tui.entries import changed_lines, view_options
from toolwire.tui.own_words import edited
from toolwire.tui.transcript import CallEntry, Said, source_of
from toolwire.tui.views.lists import ListItem, ListView, Picked
from toolwire.tui.views.pager import Pager, PagerBlock, PagerKeys
from toolwire.wire.repair import parse_arguments

if TYPE_CHECKING:
    from toolwire.tui.app import TerminalApp

_UNDOES = {"u": "undoes"}
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)^ {0,3}\1[`~]* *$", re.MULTILINE | re.DOTALL)


async def copy(app: "TerminalApp", argument: str) -> None:
    """Copies the last answer, the one before it by number, or the last code."""
    found = app.drawing.answers[::-1]
    number = int(argument) if argument.isdigit() else 1
    if argument not in ("", "code") and not argument.isdigit():
        raise BadInput(f"/copy {one_line(argument)}: write a number, or code")
    if not 1 <= number <= len(found):
        app.say(f"there are {len(found)} answers to copy" if found else "no answer to copy", "dim")
        return
    text = found[number - 1]
    if argument == "code":
        blocks = [block[1] for answer in found for block in reversed(_FENCE.findall(answer))]
        if not blocks:
            app.say("there is no code to copy", "dim")
            return
        text = blocks[0]
    app.say(app.copy_text(text), "dim")


class _Change(msgspec.Struct, frozen=True):
    """A call that changed files."""

    turn: int
    prompt: str
    path: str
    entry: CallEntry


def _changes(app: "TerminalApp") -> list[_Change]:
    found: list[_Change] = []
    turn, prompt = 0, ""
    for entry in app.drawing.entries:
        if isinstance(entry, Said):
            turn, prompt = turn + 1, entry.text
        elif isinstance(entry, CallEntry) and entry.finished.diff and entry.finished.success:
            found.append(_Change(turn, prompt, _path_of(entry, app.start.cwd), entry))
    return found


def _path_of(entry: CallEntry, folder: Path) -> str:
    """The file that a call changed, relative to the folder; from its diff if it names none."""
    arguments = parse_arguments(entry.finished.arguments).value or {}
    named = arguments.get("file_path") or arguments.get("path")
    if isinstance(named, str):
        path = Path(named)
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else named
    heads = [line[4:] for line in entry.finished.diff.split("\n") if line.startswith("+++ ")]
    return ", ".join(dict.fromkeys(head.split("\t")[0].removesuffix(" (now)") for head in heads))


async def diff(app: "TerminalApp", argument: str) -> None:
    """Shows all changes of the session, by file and by turn."""
    del argument
    changes = _changes(app)
    if not changes:
        app.say("no file was changed in this session", "dim")
        return
    key, message = "", ""
    while True:
        items = [ListItem(key="", cells=("everything", f"{len(changes)} changes"))]
        items += _grouped(changes, "file", [(one.path, one.path) for one in changes])
        turns = [(str(one.turn), f"turn {one.turn}: {one.prompt}") for one in changes]
        items += _grouped(changes, "turn", turns)
        heading = "changes of this session"
        picked: Picked = await app.open(
            ListView(
                app.surface, heading, items, actions=_UNDOES, enter="shows", chosen=key,
                message=message,
            )
        )  # fmt: skip
        if not picked.action:
            return
        key, message = picked.key, ""
        if picked.action == "u":
            message = await _undone(app, changes, key)
            continue
        kind, _, name = key.partition(":")
        shown = [
            one
            for one in changes
            if not kind or name == (one.path if kind == "file" else str(one.turn))
        ]
        await app.open(Pager(app.surface, _heading(kind, name), _blocks(app, shown), end=False))


async def _undone(app: "TerminalApp", changes: list[_Change], key: str) -> str:
    """Restores a file to before its first change, or all files to before a turn."""
    if app.working:
        return "a turn is running; undo when it has ended"
    kind, _, name = key.partition(":")
    mine = [one for one in changes if not kind or name in (one.path, str(one.turn))]
    first = min(one.turn for one in mine)
    only = frozenset([str(app.start.cwd / name)]) if kind == "file" else None
    try:
        await restore_files(app, checkpoint_of(app, first), only=only)
    except ToolwireError as error:
        return str(error)
    return f"undone: {name}" if kind == "file" else f"the files are as before turn {first}"


def _heading(kind: str, name: str) -> str:
    return f"changes of {kind} {name}" if kind else "all changes, in their order"


def _grouped(changes: list[_Change], kind: str, names: list[tuple[str, str]]) -> list[ListItem]:
    items: list[ListItem] = []
    for key, words in dict(names).items():
        mine = [one for one, (name, _) in zip(changes, names, strict=True) if name == key]
        stats = [one.entry.finished.stat for one in mine]
        added = sum(stat.model_added + stat.user_added for stat in stats if stat)
        removed = sum(stat.model_removed + stat.user_removed for stat in stats if stat)
        cells = (words if kind == "file" else words[:60], f"+{added} −{removed}")
        items.append(ListItem(key=f"{kind}:{key}", cells=cells))
    return items


def _blocks(app: "TerminalApp", changes: list[_Change]) -> list[PagerBlock]:
    painter, layout = app.drawing.painter, app.drawing.options.diff
    blocks: list[PagerBlock] = []
    for one in changes:
        stat = one.entry.finished.stat
        head = painter.line(
            (f"turn {one.turn}  ", "dim"),
            (one.path, "strong"),
            (f"  {changed_lines(stat)}" if stat else "", "dim"),
        )
        body = painted(diff_lines(one.entry.finished.diff), painter, layout=layout)
        blocks.append(PagerBlock((head, *body, ""), one.entry.finished.diff))
    return blocks


async def transcript(app: "TerminalApp", argument: str) -> None:
    """Shows the whole session: to search, fold, copy and open elsewhere."""
    del argument
    while True:
        blocks = [
            PagerBlock(tuple(rows), source_of(entries)) for entries, rows in app.drawing.blocks()
        ]
        blocks += [PagerBlock(tuple(rows), "\n".join(rows)) for rows in app.drawing.running()]

        keys = PagerKeys(copy=app.copy_text, opens=True)
        page = Pager(app.surface, "transcript", blocks, keys=keys)
        key = await app.open(page)
        if not key:
            return
        text = "\n\n".join(block.source for block in blocks)
        with app.screen.suspended():
            if key == "e":
                await asyncio.to_thread(edited, text, ".md")
            else:
                await asyncio.to_thread(_page, text, app.start.environ.get("PAGER", "") or "less")


def _page(text: str, pager: str) -> None:
    """Shows a text in the user's pager."""
    with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        try:
            subprocess.run([*shlex.split(pager), file.name], check=False)  # noqa: S603 - the user's own program
        except (OSError, ValueError) as error:
            os.write(2, f"cannot start {pager}: {error}\n".encode())


async def plan(app: "TerminalApp", argument: str) -> None:
    """Shows the model's list of steps."""
    del argument
    marks = {"done": "☑", "in_progress": "▸", "cancelled": "–"}
    for step in app.drawing.state.plan:
        app.say(f"{marks.get(step.status, '☐')} {one_line(step.text)}")
    if not app.drawing.state.plan:
        app.say("there is no plan", "dim")


async def verbose(app: "TerminalApp", argument: str) -> None:
    """Shows results whole, or shortened; the choice is saved."""
    if argument not in ("", "on", "off"):
        raise UnknownName("value", argument, ("on", "off"))
    whole = argument != "off"
    ui = msgspec.structs.replace(app.start.settings.ui, verbose=whole)
    app.drawing.set_options(view_options(ui, app.start.cwd))
    save(app, "ui.verbose", "true" if whole else "false")
    app.say("results are shown whole" if whole else "results are shortened", "dim")
