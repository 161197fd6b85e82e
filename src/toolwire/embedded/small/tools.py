"""Short forms of the built-in tools and of their arguments."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, cast

import msgspec

from toolwire.prompted.json import closed_object
from toolwire.request import AnyTool, JsonObject, ToolSpec

MOST_CHOICES = 200
"""Paths offered as choices; with more, any path may be written."""
_LONG = 3
"""Minimum length of a search word."""
_plain = re.compile(r"[\w -]+").fullmatch


class KnownFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The project a small model works on."""

    root: str
    files: tuple[str, ...] = ()
    """Relative to the root, with `/` between the parts; the nearest first."""
    folders: tuple[str, ...] = ()
    more: bool = False
    """Whether there are more files than listed."""
    text: Callable[[str], str | None] = lambda _: None
    """Returns a file's current text; None if it is not text or too long."""


class Argument(msgspec.Struct, frozen=True, kw_only=True):
    """One argument: its short name, its real name, and what it refers to."""

    shown: str
    real: str
    kind: Literal["text", "path", "file", "folder"] = "text"


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """Short form of a tool."""

    about: str
    arguments: tuple[Argument, ...]
    then: str
    """Hint that follows its result."""
    planned: bool = False
    """Whether only the steps of a plan call it, never the model itself."""
    given: tuple[tuple[str, str], ...] = ()
    """Fixed arguments of the real tool."""


_READ = "If the names answer the whole request, reply. Else read a file next."
_REPLY = "If all is done, reply."
TOOLS: Mapping[str, Shown] = {
    "list_directory": Shown(
        about='names in a folder; "." is the project',
        then=_READ,
        arguments=(Argument(shown="path", real="path", kind="folder"),),
    ),
    "read_file": Shown(
        about="the text of one file",
        then="If this answers the whole request, reply with all facts that it asks for: values, "
        "names and numbers, and the file.",
        arguments=(Argument(shown="path", real="absolute_path", kind="file"),),
    ),
    "search_file_content": Shown(
        about="lines in all files that match a word or a regular expression",
        then="If these lines are the whole answer, reply with what they say. Else read the file.",
        arguments=(Argument(shown="pattern", real="pattern"),),
    ),
    "glob": Shown(
        about="files whose names match, such as **/*.py",
        then=_READ,
        arguments=(Argument(shown="pattern", real="pattern"),),
    ),
    "write_file": Shown(
        about="make a new file",
        then="",
        planned=True,
        arguments=(
            Argument(shown="path", real="file_path", kind="path"),
            Argument(shown="content", real="content"),
        ),
    ),
    "replace": Shown(
        about="put new in the place of old",
        then="",
        planned=True,
        arguments=(
            Argument(shown="path", real="file_path", kind="file"),
            Argument(shown="old", real="old_string"),
            Argument(shown="new", real="new_string"),
        ),
        given=(("instruction", "Make the change the user asked for."),),
    ),
    "run_shell_command": Shown(
        about="a shell command: programs, tests, git, counting",
        then=_REPLY,
        arguments=(Argument(shown="command", real="command"),),
    ),
}
LEFT_OUT = frozenset(
    {"read_many_files", "web_fetch", "google_web_search", "save_memory", "apply_patch"}
    | {"background", "todo", "ask_user"}
)
"""Built-in tools that are not offered to small models."""


def shown_tools(tools: Sequence[AnyTool], project: KnownFiles) -> tuple[ToolSpec, ...]:
    """The built-in tools in short form, other tools unchanged."""
    found: list[ToolSpec] = []
    for tool in tools:
        if not isinstance(tool, ToolSpec) or tool.name in LEFT_OUT:
            continue
        if tool.name not in TOOLS:
            found.append(tool)
        elif not TOOLS[tool.name].planned:
            found.append(_short(tool.name, project))
    return tuple(found)


def without_paths(tool: ToolSpec, seen: Collection[str]) -> ToolSpec:
    """The tool without the choice of paths that were seen already."""
    members = cast(JsonObject, tool.parameters.get("properties") or {})
    path = cast(JsonObject, members.get("path") or {})
    left = [it for it in cast(list[str], path.get("enum") or []) if it not in seen]
    if not left:
        return tool
    parameters = closed_object({**members, "path": {**path, "enum": left}})
    return msgspec.structs.replace(tool, parameters=parameters)


def to_real(
    name: str, arguments: JsonObject, project: KnownFiles, *, exact: bool = False
) -> JsonObject:
    """The real tool's arguments for those the model wrote, or for exact ones."""
    shown = TOOLS[name]
    known = {argument.shown: argument for argument in shown.arguments}
    found: JsonObject = {}
    for key, value in (arguments if exact else _meant(name, arguments, project)).items():
        argument = known.get(key)
        if argument is None:
            found[key] = value
        else:
            is_path = argument.kind != "text" and isinstance(value, str)
            found[argument.real] = _absolute(value, project.root) if is_path else value
    return found | {key: value for key, value in shown.given if key not in found}


def _meant(name: str, arguments: JsonObject, project: KnownFiles) -> JsonObject:
    """The arguments corrected by the files that exist."""
    if name == "run_shell_command":
        return {**arguments, "command": _started(str(arguments.get("command", "")), project)}
    if name == "search_file_content":
        return {**arguments, "pattern": _words(str(arguments.get("pattern", "")), project)}
    return arguments


_INTERPRETERS = {"py": "python3", "sh": "bash", "js": "node", "rb": "ruby", "pl": "perl"}


def _started(command: str, project: KnownFiles) -> str:
    """The command; a script of the project is started by its interpreter."""
    first = command.split(" ", 1)[0]
    program = _INTERPRETERS.get(first.rpartition(".")[2], "")
    known = first.removeprefix("./") in project.files
    return f"{program} {command}" if known and program else command


def _words(pattern: str, project: KnownFiles) -> str:
    """The pattern; alternatives of its words if they never occur together."""
    if " " not in pattern or _plain(pattern) is None:
        return pattern
    words = pattern.lower().split()
    together = " ".join(words)
    for path in project.files:
        text = project.text(path)
        if text is not None and together in " ".join(text.lower().split()):
            return pattern
    long = [word for word in words if len(word) >= _LONG]
    return "|".join(map(re.escape, long or words))


def to_shown(name: str, arguments: JsonObject, root: str) -> JsonObject:
    """The model's short arguments for those of the real tool."""
    shown = TOOLS[name]
    found: JsonObject = {}
    for argument in shown.arguments:
        if argument.real in arguments:
            value = arguments[argument.real]
            is_path = argument.kind != "text" and isinstance(value, str)
            found[argument.shown] = _relative(value, root) if is_path else value
    return found


def _short(name: str, project: KnownFiles) -> ToolSpec:
    shown = TOOLS[name]
    properties: JsonObject = {it.shown: _schema(it, project) for it in shown.arguments}
    return ToolSpec(name=name, description=shown.about, parameters=closed_object(properties))


def _schema(argument: Argument, project: KnownFiles) -> JsonObject:
    choices = {"file": project.files, "folder": (".", *project.folders)}.get(argument.kind, ())
    if choices and not project.more and len(choices) <= MOST_CHOICES:
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
