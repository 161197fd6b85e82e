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


def leaving_out(words: tuple[str, ...], hidden: Sequence[str]) -> tuple[str, ...] | None:
    """The words of a search without files of these names; None if it cannot leave them out."""
    # By name, since a folder can be written in many ways; of options that contradict each other,
    # the last one wins.
    names = tuple(dict.fromkeys(path.rstrip("/").rsplit("/", 1)[-1] for path in hidden))
    match words[0].rsplit("/", 1)[-1]:
        case "grep" | "egrep" | "fgrep":
            options = [
                option
                for name in names
                for option in (f"--exclude={_escaped(name)}", f"--exclude-dir={_escaped(name)}")
            ]
            return _before_operands(words, options)
        case "rg" if not any(word.startswith("--ig") for word in words):
            return _before_operands(words, [f"--glob=!{_escaped(name)}" for name in names])
        case "find":
            return _find(words, names)
        case "git" if "ls-files" in words:
            paths = [f":(exclude){path.rstrip('/')}" for path in hidden]
            more = () if "--" in words else ("--", ".")
            return (*words, *more, *paths)
        case _:
            return None


def _before_operands(words: tuple[str, ...], options: list[str]) -> tuple[str, ...]:
    at = words.index("--") if "--" in words else len(words)
    return (*words[:at], *options, *words[at:])


def _find(words: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    at = 1
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!", ","):
        at += 1
    while at < len(words) and words[at] in _FIND_GLOBALS:
        at += _FIND_GLOBALS[words[at]]
    left_out = [
        part
        for name in names
        for part in ("!", "-name", _escaped(name), "!", "-path", f"*/{_escaped(name)}/*")
    ]
    rest = ("(", *words[at:], ")") if words[at:] else ()
    return (*words[:at], *left_out, *rest)


def _escaped(path: str) -> str:
    return re.sub(r"([*?\[\]{}\\!])", r"\\\1", path)
