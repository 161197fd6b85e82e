"""The built-in tools as a small model is shown them: few, in few words, with short paths."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from toolwire.request import AnyTool, JsonObject, ToolSpec

MOST_CHOICES = 200
"""Paths offered as choices; with more, any path may be written."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """The project a small model works on."""

    root: str
    files: tuple[str, ...] = ()
    """Relative to the root, with `/` between the parts; the nearest first."""
    folders: tuple[str, ...] = ()
    more: bool = False
    """There are others, so that a path outside the list may be meant."""


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument: its short name, its real one, and what it names."""

    shown: str
    real: str
    kind: Literal["text", "path", "file", "folder"] = "text"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A tool in few words."""

    about: str
    arguments: tuple[Argument, ...]
    then: str
    """What to think of when its result is there."""
    given: tuple[tuple[str, str], ...] = ()
    """Arguments the real tool wants and the model is not bothered with."""


_FILE = Argument(shown="path", real="file_path", kind="file")

TOOLS: Mapping[str, Shown] = {
    "list_directory": Shown(
        about='names in a folder; "." is the project',
        then="If you need to know what is in a file, read it next.",
        arguments=(Argument(shown="path", real="path", kind="folder"),),
    ),
    "read_file": Shown(
        about="the text of one file",
        then="If this answers the request, reply.",
        arguments=(Argument(shown="path", real="absolute_path", kind="file"),),
    ),
    "search_file_content": Shown(
        about="lines that match a regular expression, in all files",
        then="If these lines are not the whole answer, read the file next.",
        arguments=(Argument(shown="pattern", real="pattern"),),
    ),
    "glob": Shown(
        about="files whose names match, such as **/*.py",
        then="If you need to know what is in a file, read it next.",
        arguments=(Argument(shown="pattern", real="pattern"),),
    ),
    "write_file": Shown(
        about="make a file, or write a whole file anew",
        then="If all is done, reply.",
        arguments=(
            Argument(shown="path", real="file_path", kind="path"),
            Argument(shown="content", real="content"),
        ),
    ),
    "replace": Shown(
        about="change a part of a file; old is text that stands in it",
        then="If all is done, reply.",
        arguments=(
            _FILE,
            Argument(shown="old", real="old_string"),
            Argument(shown="new", real="new_string"),
        ),
        given=(("instruction", "Make the change the user asked for."),),
    ),
    "run_shell_command": Shown(
        about="a shell command: tests, git, counting, moving, deleting",
        then="If all is done, reply.",
        arguments=(Argument(shown="command", real="command"),),
    ),
}
_LEFT_OUT = frozenset(
    {"read_many_files", "web_fetch", "google_web_search", "save_memory", "apply_patch"}
    | {"background", "todo", "ask_user"}
)
"""Built-in tools that cost more attention than a small model has."""


def shown_tools(tools: Sequence[AnyTool], ground: Ground) -> tuple[ToolSpec, ...]:
    """What is offered: the built-in tools in their short form, others as they are."""
    return tuple(
        _short(tool.name, TOOLS[tool.name], ground) if tool.name in TOOLS else tool
        for tool in tools
        if isinstance(tool, ToolSpec) and tool.name not in _LEFT_OUT
    )


def to_real(name: str, arguments: JsonObject, root: str) -> JsonObject:
    """The arguments the real tool takes, from those a model wrote."""
    shown = TOOLS[name]
    known = {argument.shown: argument for argument in shown.arguments}
    found: JsonObject = {}
    for key, value in arguments.items():
        argument = known.get(key)
        if argument is None:
            found[key] = value
        else:
            is_path = argument.kind != "text" and isinstance(value, str)
            found[argument.real] = _absolute(value, root) if is_path else value
    return found | {key: value for key, value in shown.given if key not in found}


def to_shown(name: str, arguments: JsonObject, root: str) -> JsonObject:
    """The arguments as the model wrote them, from those the real tool took."""
    shown = TOOLS[name]
    found: JsonObject = {}
    for argument in shown.arguments:
        if argument.real in arguments:
            value = arguments[argument.real]
            is_path = argument.kind != "text" and isinstance(value, str)
            found[argument.shown] = _relative(value, root) if is_path else value
    return found


def _short(name: str, shown: Shown, ground: Ground) -> ToolSpec:
    properties = {it.shown: _schema(it, ground) for it in shown.arguments}
    return ToolSpec(
        name=name,
        description=shown.about,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
    )


def _schema(argument: Argument, ground: Ground) -> JsonObject:
    choices = {"file": ground.files, "folder": (".", *ground.folders)}.get(argument.kind, ())
    if choices and not ground.more and len(choices) <= MOST_CHOICES:
        return {"type": "string", "enum": list(choices)}
    return {"type": "string"}


def _absolute(path: str, root: str) -> str:
    if path == root or path.startswith(f"{root}/"):
        return path
    short = path.removeprefix("./").rstrip("/")
    if short in ("", "."):
        return root
    return short if short.startswith("/") else f"{root}/{short}"


def _relative(path: str, root: str) -> str:
    if path.rstrip("/") == root:
        return "."
    return path.removeprefix(f"{root}/")
