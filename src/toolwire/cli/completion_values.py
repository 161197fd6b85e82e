"""What may follow an incomplete command line, without loading any command.

The script of a shell calls `toolwire __complete WORDS…`. The answer comes from `completions.json`,
which `make docs` generates, from the names of sessions, and from tables in the settings files.
"""

import json
import os
import sys
from collections.abc import Iterable
from typing import Any, cast

_TABLE = "completions.json"
_SESSIONS = 30
_LISTS = ("tools", "servers")
"""Kinds of values that are separated by commas."""


def beside(name: str) -> str:
    """Returns the text of a file of this package."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123 - pathlib is slow to load
        return file.read()


def answer(words: list[str]) -> None:
    """Print what may follow the words, of which the last is incomplete: `value<TAB>meaning`."""
    lines = (f"{value}\t{meaning}" if meaning else value for value, meaning in complete(words))
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def complete(words: list[str]) -> list[tuple[str, str]]:
    """Returns the values that begin like the last word; `:files` and `:folders` for paths."""
    *before, last = words or [""]
    table = json.loads(beside(_TABLE))
    node, option, count = _reached(table["tree"], before)
    name, equals, rest = last.partition("=")
    if option is not None:
        return _begun(_values(option, table, last), last)
    if equals and (given := node["options"].get(name)) and given.get("values") is not None:
        found = _values(given["values"], table, rest)
        return _begun(((f"{name}={value}", meaning) for value, meaning in found), last)
    if last.startswith("-"):
        return _begun(((name, one["help"]) for name, one in node["options"].items()), last)
    found = [] if count else [(name, one["help"]) for name, one in node["commands"].items()]
    kinds = node["arguments"]
    if kinds and count < len(kinds):
        found += _values(kinds[count], table, last)
    elif kinds and node["many"]:
        found += _values(kinds[-1], table, last)
    return _begun(found, last)


def _reached(node: dict[str, Any], words: list[str]) -> tuple[dict[str, Any], Any, int]:
    """Returns the command, the kind of value its last option expects, and how many arguments."""
    count, pending = 0, None
    for word in words:
        if pending is not None:
            pending = None
        elif word.startswith("-") and word != "-":
            given = node["options"].get(word)
            pending = given.get("values") if given else None
        elif not count and word in node["commands"]:
            node = node["commands"][word]
        else:
            count += 1
    return node, pending, count


def _begun(found: Iterable[tuple[str, str]], last: str) -> list[tuple[str, str]]:
    return [pair for pair in found if pair[0].startswith(last) or pair[0].startswith(":")]


def _values(kind: Any, table: dict[str, Any], last: str) -> list[tuple[str, str]]:
    """Returns the values of a kind: a list, or the name of one."""
    if isinstance(kind, list):
        return [(str(one), "") for one in cast(list[object], kind)]
    if kind in ("files", "folders"):
        return [(f":{kind}", "")]
    found = [(name, "") for name in table["names"].get(kind, ())]
    if kind == "sessions":
        found = _sessions()
    elif kind in ("providers", "servers", "models"):
        found += [(name, "") for name in _configured(kind)]
    if kind in _LISTS and "," in last:
        above = last.rpartition(",")[0]
        return [(f"{above},{name}", meaning) for name, meaning in found]
    return found


def _sessions() -> list[tuple[str, str]]:
    """Returns the ids of this user's sessions, the newest first."""
    from toolwire.storage.paths import state_paths

    found: list[tuple[float, str]] = []
    try:
        for folder in state_paths(os.environ).sessions.iterdir():
            for file in folder.glob("*.sqlite"):
                found.append((file.stat().st_mtime, file.stem))
    except OSError:
        pass
    found.sort(reverse=True)
    return [(name, _when(at)) for at, name in found[:_SESSIONS]]


def _when(at: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def _configured(kind: str) -> list[str]:
    """Returns names of tables in the user's and the project's settings; none if unreadable."""
    import tomllib
    from pathlib import Path

    from toolwire.storage.paths import state_paths

    group = {"servers": "mcp_servers"}.get(kind, kind)
    found: dict[str, None] = {}
    for file in (state_paths(os.environ).config / "config.toml", Path(".toolwire/config.toml")):
        try:
            names = tomllib.loads(file.read_text("utf-8")).get(group, {})
        except (OSError, ValueError):
            continue
        found |= dict.fromkeys(cast(dict[str, object], names) if isinstance(names, dict) else ())
    return list(found)
