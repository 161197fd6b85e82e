"""Searches written anew so that they leave out files which may not simply be read."""

import re
from collections.abc import Sequence

_FIND_GLOBALS = {
    "-maxdepth": 2,
    "-mindepth": 2,
    "-depth": 1,
    "-xdev": 1,
    "-mount": 1,
    "-regextype": 2,
}


def leaving_out(words: tuple[str, ...], tree: str, hidden: Sequence[str]) -> tuple[str, ...] | None:
    """The words of a search below `tree` without some paths below it; None if it cannot."""
    match words[0].rsplit("/", 1)[-1]:
        case "grep" | "egrep" | "fgrep":
            names = dict.fromkeys(path.rstrip("/").rsplit("/", 1)[-1] for path in hidden)
            options = [
                option
                for name in names
                for option in (f"--exclude={_escaped(name)}", f"--exclude-dir={_escaped(name)}")
            ]
            return (words[0], *options, *words[1:])
        case "rg":
            globs = [f"--glob=!{_escaped(path.rstrip('/'))}" for path in hidden]
            return (words[0], *globs, *words[1:])
        case "find":
            return _find(words, tree, hidden)
        case "git" if "ls-files" in words:
            paths = [f":(exclude){path.rstrip('/')}" for path in hidden]
            more = () if "--" in words else ("--", ".")
            return (*words, *more, *paths)
        case _:
            return None


def _find(words: tuple[str, ...], tree: str, hidden: Sequence[str]) -> tuple[str, ...]:
    at = 1
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!", ","):
        at += 1
    while at < len(words) and words[at] in _FIND_GLOBALS:
        at += _FIND_GLOBALS[words[at]]
    start = "" if tree == "/" else tree.rstrip("/")
    left_out = [
        part for path in hidden for part in ("!", "-path", f"{start}/{_escaped(path.rstrip('/'))}")
    ]
    below = [
        part
        for path in hidden
        if path.endswith("/")
        for part in ("!", "-path", f"{start}/{_escaped(path)}*")
    ]
    rest = ("(", *words[at:], ")") if words[at:] else ()
    return (*words[:at], *left_out, *below, *rest)


def _escaped(path: str) -> str:
    return re.sub(r"([*?\[\]{}\\!])", r"\\\1", path)
