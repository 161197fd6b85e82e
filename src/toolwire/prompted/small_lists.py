"""A long list of files as a small model is shown it: by folders, and what each says of itself."""

import re
from collections.abc import Callable, Mapping

_MOST_FOLDERS = 20
"""A folder is opened if there are then no more than that."""
_MOST_TOLD = 8
"""With more of them, a small model only says their names."""
_MOST_ABOUT = 60
"""Characters of what a folder says of itself."""
_NAMED = 3
"""Names that stand for the files of a folder that says nothing."""
_TELLING = ("__init__.py", "README.md", "lib.rs", "mod.rs", "doc.go", "index.ts", "index.js")
"""Files whose first words are about the folder they are in."""
_TOP = "the top folder"

_first_words = re.compile(
    r"""\s*(?:[rR]?(?:\"{3}|'{3})|/\*+!?|//[/!]?|<!--|\#+(?!!))[ \t]*\n?[ \t*]*(\w.*)"""
).match
_no_description = re.compile(r"copyright|license|licence|spdx|coding[:=]|eslint", re.I).search


def by_folder(text: str, read: Callable[[str], str | None], limit: int) -> str:
    """The result of a search for files, told by folders; `read` gives the text of a file."""
    head, *paths = text.splitlines()
    lines = [f"{head.partition(' within ')[0]}, by folder:"]
    size = len(lines[0])
    folders = sorted(_folders([*filter(None, paths)]).items(), key=lambda it: (-len(it[1]), it[0]))
    for folder, inside in folders[:_MOST_TOLD]:
        about = _about(folder, read) or f"such as {', '.join(sorted(inside)[:_NAMED])}"
        line = f"{folder} ({len(inside)}): {about}"
        size += len(line) + 1
        if size > limit:
            break
        lines.append(line)
    left = len(folders) - len(lines) + 1
    return "\n".join([*lines, f"and {left} other folders"] if left else lines)


def _folders(paths: list[str]) -> Mapping[str, list[str]]:
    """Files by the folder they are told under: the fullest ones are opened as long as all fit."""
    found: dict[str, list[str]] = {"": paths}
    closed: set[str] = set()
    while openable := found.keys() - closed:
        fullest = max(openable, key=lambda folder: (len(found[folder]), folder))
        opened = _opened(fullest, found[fullest])
        if len(found) - 1 + len(opened) > _MOST_FOLDERS:
            closed.add(fullest)
            continue
        del found[fullest]
        found.update(opened)
        # What is left under its own name are the files right in it.
        closed.add(fullest)
    return {folder or _TOP: inside for folder, inside in found.items()}


def _opened(folder: str, inside: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in inside:
        first, deeper, rest = name.partition("/")
        under = f"{folder}{first}/" if deeper else folder
        found.setdefault(under, []).append(rest or name)
    return found


def _about(folder: str, read: Callable[[str], str | None]) -> str:
    for name in _TELLING if folder != _TOP else ():
        found = _first_words(read(folder + name) or "")
        if found is not None and not _no_description(found[1]):
            words = re.split(r"\"{3}|'{3}|\*/|-->", found[1])[0].strip()
            return (
                words if len(words) <= _MOST_ABOUT else f"{words[:_MOST_ABOUT].rsplit(' ', 1)[0]} …"
            )
    return ""
