"""Names to tools: built-in, installed and discovered ones; allow and deny lists; nearest names."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import cast

from toolwire.errors import BadInput, UnknownName
from toolwire.request import ToolSpec
from toolwire.tools.spec import DEFAULT_SETTINGS, Tool, ToolSettings

_METADATA = (".dist-info", ".egg-info")
_FILE = "entry_points.txt"


def declared(group: str, folders: Iterable[str]) -> bool:
    """Whether a package in these folders of modules may declare such an entry point."""
    return any(_declares(group.encode(), folder or os.curdir) for folder in folders)


def _declares(group: bytes, folder: str) -> bool:
    try:
        changed = os.stat(folder).st_mtime_ns  # noqa: PTH116 - one for every folder
        return _declares_since(group, folder, changed)
    except NotADirectoryError:
        # An archive of modules, which only the standard library looks into.
        return True
    except OSError:
        return False


@lru_cache(maxsize=64)
def _declares_since(group: bytes, folder: str, changed: int) -> bool:
    """Whether a package declares it; asked once until one is installed or removed."""
    del changed
    names = os.listdir(folder)  # noqa: PTH208 - names are enough for most
    return any(
        group in _content(f"{folder}/{name}/{_FILE}") for name in names if name.endswith(_METADATA)
    )


def _content(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - one for every package
            return file.read()
    except OSError:
        return b""


ORIGINAL = (
    "list_directory",
    "read_file",
    "search_file_content",
    "glob",
    "replace",
    "write_file",
    "web_fetch",
    "read_many_files",
    "run_shell_command",
    "save_memory",
    "google_web_search",
)
"""The tools of gemini-cli, in the order it declares them."""
ADDED = ("apply_patch", "background", "todo", "ask_user")
"""Ours beyond those."""
NEEDS_APPROVAL = ("replace", "write_file", "run_shell_command")
"""Tools that gemini-cli does not offer if no user can approve a call."""
ENTRY_POINTS = "toolwire.tools"

_CLASSES = {
    "LSTool": "list_directory",
    "ReadFileTool": "read_file",
    "GrepTool": "search_file_content",
    "RipGrepTool": "search_file_content",
    "GlobTool": "glob",
    "EditTool": "replace",
    "SmartEditTool": "replace",
    "WriteFileTool": "write_file",
    "WebFetchTool": "web_fetch",
    "ReadManyFilesTool": "read_many_files",
    "ShellTool": "run_shell_command",
    "MemoryTool": "save_memory",
    "WebSearchTool": "google_web_search",
}
"""gemini-cli's settings may name a tool by its class."""


class Registry:
    """Tools by name, in the order they are offered."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        self._aliases: dict[str, str] = {}
        self.take(tools)

    def take(self, tools: Iterable[Tool]) -> None:
        """Replaces all tools in place: every holder of the registry sees them from now on."""
        found: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in found:
                raise BadInput(f'two tools are called "{tool.name}"; rename or exclude one')
            found[tool.name] = tool
        aliases: dict[str, str] = {}
        for tool in found.values():
            for alias in tool.aliases:
                aliases.setdefault(alias, tool.name)
        self._tools, self._aliases = found, aliases

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """The tool of that name or alias."""
        return self._tools.get(name) or self._tools.get(self._aliases.get(name, ""))

    def need(self, name: str) -> Tool:
        """The tool of that name; an error names the nearest."""
        found = self.get(name)
        if found is None:
            raise UnknownName("tool", name, self.names)
        return found

    def specs(self) -> tuple[ToolSpec, ...]:
        """All tools as a request offers them."""
        return tuple(tool.spec for tool in self)

    def with_tools(self, more: Iterable[Tool]) -> "Registry":
        """These tools and more; a name that is taken stays with the tool that has it."""
        return Registry((*self, *(tool for tool in more if tool.name not in self._tools)))

    def without(self, names: Iterable[str]) -> "Registry":
        """These tools without some."""
        gone = set(names)
        return Registry(tool for tool in self if tool.name not in gone)

    def permitted(self, core: Sequence[str] = (), exclude: Sequence[str] = ()) -> "Registry":
        """What an allow list (empty allows all) and a deny list leave.

        An entry with a prefix, `run_shell_command(git)`, allows the tool and leaves the command to
        the policy; a deny list drops a tool only by its bare name.
        """
        allowed = {plain(entry) for entry in core}
        denied = {plain(entry) for entry in exclude if "(" not in entry}
        return Registry(
            tool
            for tool in self
            if (not core or tool.name in allowed) and denied.isdisjoint((tool.name, *tool.aliases))
        )

    def aliases_of(self, tool: Tool) -> tuple[str, ...]:
        """The aliases that mean this tool and no other."""
        return tuple(
            alias
            for alias in tool.aliases
            if alias not in self._tools and self._aliases.get(alias) == tool.name
        )

    def unknown(self, name: str) -> str:
        """Error for a call of a tool that does not exist.

        The first line is gemini-cli's own, over the tools it would have.
        """
        name = name or "undefined_tool_name"
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}…"
        text = (
            f'Tool "{name}" not found in registry. '
            "Tools must use the exact names that are registered."
        )
        near = nearest(name, [known for known in self.names if known not in ADDED])
        if len(near) == 1:
            text += f' Did you mean "{near[0]}"?'
        elif near:
            text += ' Did you mean one of: "' + '", "'.join(near) + '"?'
        closest = nearest(name, self.names, 1)
        if closest and closest[0] not in near:
            text += f'\nThe nearest name is "{closest[0]}".'
        return text


_LONGEST_NAME = 200
"""Characters of an unknown name that are compared and shown."""


def plain(entry: str) -> str:
    """The tool's name of an entry such as `ShellTool(git status)`."""
    name = entry.partition("(")[0].strip()
    return _CLASSES.get(name, name)


def prefixes(entries: Iterable[str], name: str) -> tuple[str, ...] | None:
    """Command prefixes that entries name for a tool; None if one names it without any prefix."""
    found: list[str] = []
    for entry in entries:
        if plain(entry) != name:
            continue
        _, bracket, rest = entry.partition("(")
        if not bracket:
            return None
        found.append(rest.strip().removesuffix(")").strip())
    return tuple(found)


def nearest(name: str, known: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The known names with the fewest letters to change; the first registered wins a tie."""
    return tuple(sorted(known, key=lambda one: distance(name, one))[:most])


def distance(one: str, other: str) -> int:
    """Letters to insert, delete or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        above, row[0] = row[0], number
        for position, opposite in enumerate(other, 1):
            best = min(row[position] + 1, row[position - 1] + 1, above + (letter != opposite))
            above, row[position] = row[position], best
    return row[-1]


def builtin(name: str, settings: ToolSettings = DEFAULT_SETTINGS) -> Tool:
    """A built-in tool in the form that the settings select; loads its module."""
    if name not in (*ORIGINAL, *ADDED):
        raise UnknownName("built-in tool", name, (*ORIGINAL, *ADDED))
    module = import_module(f"toolwire.tools.builtin.{name}")
    return module.tool_for(settings) if hasattr(module, "tool_for") else module.TOOL


def builtins(settings: ToolSettings = DEFAULT_SETTINGS, *, added: bool = True) -> Registry:
    """All built-in tools, those of gemini-cli first; `added` leaves ours in."""
    names = (*ORIGINAL, *(ADDED if added else ()))
    return Registry(builtin(name, settings) for name in names)


def installed() -> tuple[Tool, ...]:
    """Tools of installed packages, from the entry-point group `toolwire.tools`.

    An entry point names a tool, or several in a list or tuple.
    """
    if not declared(ENTRY_POINTS, sys.path):
        return ()
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, and often not needed

    found: list[Tool] = []
    for point in entry_points(group=ENTRY_POINTS):
        loaded: object = point.load()
        several = isinstance(loaded, list | tuple)
        for one in cast(tuple[object, ...], loaded) if several else (loaded,):
            if not isinstance(one, Tool):
                raise BadInput(f"entry point {point.name} ({point.value}) is not a tool")
            found.append(one)
    return tuple(found)


def headless(registry: Registry, mode: str) -> Registry:
    """The tools that gemini-cli offers in a mode in which no user can approve."""
    gone = {"default": NEEDS_APPROVAL, "auto_edit": ("run_shell_command",)}.get(mode, ())
    return registry.without(gone)
