"""Surroundings, sent once at the start: date, system, directories, folder tree."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import TypeAlias
from unicodedata import category

import msgspec

from toolwire.messages import Message, Text
from toolwire.tools.files.paths import real
from toolwire.tools.search.ignore import rules_for
from toolwire.tools.search.walk import Listing, breadth_first
from toolwire.tools.spec import ToolFailed, Workspace

MOST_ITEMS = 200
ACKNOWLEDGED = "Got it. Thanks for the context!"
_NAME = "This is toolwire. We are setting up the context for our chat."
_FOLDED = frozenset({"node_modules", ".git", "dist"})
"""Folders that are listed but never opened, regardless of ignore rules."""
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_UNKEPT = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Controls, halves of characters, and line ends."""
_MORE = (
    " Folders or files indicated with ... contain more items not shown, were ignored, "
    f"or the display limit ({MOST_ITEMS} items) was reached."
)

Hides: TypeAlias = Callable[[Path], object]
"""Whether a path may not even be named."""


def _shown(path: Path) -> bool:
    del path
    return False


def surroundings(
    workspace: Workspace,
    *,
    today: date,
    system: str,
    respect_git_ignore: bool = True,
    hides: Hides = _shown,
) -> tuple[Message, Message]:
    """The environment as the first user message, and the model's acknowledgement.

    `system` is `linux`, `darwin` or `win32`. Compute it once and store it with the session: another
    date or a new file would change every byte that follows.
    """
    trees = [
        folder_tree(root, workspace, git=respect_git_ignore, hides=hides)
        for root in workspace.roots
    ]
    text = _text(workspace.roots, trees, today, system)
    return (
        Message(role="user", parts=(Text(text),)),
        Message(role="assistant", parts=(Text(ACKNOWLEDGED),)),
    )


def _text(roots: tuple[Path, ...], trees: list[str], today: date, system: str) -> str:
    lines = [
        _NAME,
        f"Today's date is {long_date(today)} (formatted according to the user's locale).",
        f"My operating system is: {system}",
        _directories(roots),
        "Here is the folder structure of the current working directories:",
        "",
        *trees,
    ]
    return "\n".join(lines).strip()


def long_date(day: date) -> str:
    """`Friday, December 5, 2025`, the same under every locale."""
    return f"{_DAYS[day.weekday()]}, {_MONTHS[day.month - 1]} {day.day}, {day.year}"


def _directories(roots: tuple[Path, ...]) -> str:
    if len(roots) == 1:
        return f"I'm currently working in the directory: {roots[0]}"
    named = "\n".join(f"  - {root}" for root in roots)
    return f"I'm currently working in the following directories:\n{named}"


def folder_tree(
    root: Path, workspace: Workspace, *, git: bool = True, hides: Hides = _shown
) -> str:
    """The tree below one directory, at most 200 items, the nearest levels first."""
    found = real(root)
    try:
        if found is None:
            raise NotADirectoryError(str(root))
        rules = rules_for(found, workspace)
        listings = breadth_first(found, workspace, rules, git=git, skipped=_FOLDED)
        folders, complete = _collected(_visible(each, found, hides) for each in listings)
    except (OSError, ToolFailed):
        return f'Error: Could not read directory "{root}". Check path and permissions.'
    more = "" if complete else _MORE
    lines = "\n".join(_drawn("", "", folders))
    top = str(root).rstrip("/")
    return f"Showing up to {MOST_ITEMS} items (files + folders).{more}\n\n{top}/\n{lines}"


def _visible(listing: Listing, root: Path, hides: Hides) -> Listing:
    above = root / listing.path
    files, folders = (
        tuple(entry for entry in entries if not hides(above / entry.name))
        for entries in (listing.files, listing.folders)
    )
    return msgspec.structs.replace(listing, files=files, folders=folders)


class _Folder(msgspec.Struct, frozen=True, kw_only=True):
    """One directory of the tree."""

    files: tuple[str, ...] = ()
    folders: tuple[tuple[str, bool], ...] = ()
    """Names, and whether their contents are left out."""
    more_files: bool = False
    more_folders: bool = False


def _collected(listings: Iterator[Listing]) -> tuple[dict[str, _Folder], bool]:
    """The directories by path, and whether the listing is complete."""
    room, complete = MOST_ITEMS, True
    found: dict[str, _Folder] = {}
    for listing in listings:
        if room <= 0:
            # The rest was not read; the folders above it are shown without marks.
            break
        files = [entry.name for entry in listing.files if not entry.ignored]
        shown = tuple(files[:room])
        room -= len(shown)
        folders = tuple(
            (entry.name, bool(entry.ignored) or entry.name in _FOLDED)
            for entry in listing.folders[:room]
        )
        room -= len(folders)
        folder = _Folder(
            files=shown,
            folders=folders,
            more_files=len(files) > len(shown),
            more_folders=len(listing.folders) > len(folders),
        )
        left_out = folder.more_files or folder.more_folders
        complete = complete and not left_out and not any(folded for _, folded in folders)
        found[listing.path] = folder
    return found, complete


def _drawn(path: str, indent: str, folders: dict[str, _Folder]) -> Iterator[str]:
    folder = folders.get(path, _Folder())
    lines: list[tuple[str, str]] = [(name, "") for name in folder.files]
    if folder.more_files:
        lines.append(("...", ""))
    for name, folded in folder.folders:
        below = "" if folded else f"{path}/{name}".lstrip("/")
        lines.append((f"{name}/..." if folded else f"{name}/", below))
    if folder.more_folders:
        lines.append(("...", ""))
    for at, (line, below) in enumerate(lines):
        last = at == len(lines) - 1
        yield f"{indent}{'└───' if last else '├───'}{_one_line(line)}"
        if below:
            yield from _drawn(below, indent + ("    " if last else "│   "), folders)


def _one_line(name: str) -> str:
    """The name without line ends and undecodable bytes: a session can store neither."""
    if name.isprintable():
        return name
    return "".join("\ufffd" if category(letter) in _UNKEPT else letter for letter in name)
