"""Short forms of the built-in tools for small models: few, brief, with relative paths."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from toolwire.embedded.small import edits
from toolwire.prompted.json import closed_object
from toolwire.request import AnyTool, JsonObject, ToolSpec

MOST_CHOICES = 200
"""Paths offered as choices; with more, any path may be written."""
_MOST_NEW = 600
"""Characters that may replace a line; longer texts are loops."""
_LONG = 3
"""Minimum length of a search word."""
_MOST_OPEN = 4
"""Files that can be changed at a time: the most recently seen."""


_plain = re.compile(r"[\w -]+").fullmatch


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A refused call: the tool, and the line it would change."""

    name: str
    path: str
    line: str = ""


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
    then_change: str
    """Hint after a request for a change."""
    real: str = ""
    """The real tool's name, if it differs."""
    given: tuple[tuple[str, str], ...] = ()
    """Fixed arguments of the real tool."""


_FILE = Argument(shown="path", real="file_path", kind="file")
_READ = "If the names answer the whole request, reply. Else read a file next."
_READ_AND_CHANGE = "Read the file that must be changed next."
_CHANGE = "Now do what the request asks for."
_REPLY = "If all is done, reply."

TOOLS: Mapping[str, Shown] = {
    "list_directory": Shown(
        about='names in a folder; "." is the project',
        then=_READ,
        then_change=_READ_AND_CHANGE,
        arguments=(Argument(shown="path", real="path", kind="folder"),),
    ),
    "read_file": Shown(
        about="the text of one file",
        then="If this answers the whole request, reply, and name the file.",
        then_change=_CHANGE,
        arguments=(Argument(shown="path", real="absolute_path", kind="file"),),
    ),
    "search_file_content": Shown(
        about="lines in all files that match a word or a regular expression",
        then="If these lines are not the whole answer, read the file next.",
        then_change=_CHANGE,
        arguments=(Argument(shown="pattern", real="pattern"),),
    ),
    "glob": Shown(
        about="files whose names match, such as **/*.py",
        then=_READ,
        then_change=_READ_AND_CHANGE,
        arguments=(Argument(shown="pattern", real="pattern"),),
    ),
    "write_file": Shown(
        about="make a new file",
        then=_REPLY,
        then_change=_REPLY,
        arguments=(
            Argument(shown="path", real="file_path", kind="path"),
            Argument(shown="content", real="content"),
        ),
    ),
    "replace": Shown(
        about="put new in the place of the line old, after reading the file; "
        "new may be several lines, or empty",
        then=_REPLY,
        then_change=_REPLY,
        arguments=(
            _FILE,
            # The new text first: the model then finds the line more reliably.
            Argument(shown="new", real="new_string"),
            Argument(shown="old", real="old_string"),
        ),
        given=(("instruction", "Make the change the user asked for."),),
    ),
    "append": Shown(
        about="add lines at the end of a file, such as a function",
        real="replace",
        then=_REPLY,
        then_change=_REPLY,
        arguments=(_FILE, Argument(shown="lines", real="lines")),
    ),
    "run_shell_command": Shown(
        about="a shell command: tests, git, counting, moving, deleting",
        then=_REPLY,
        then_change=_REPLY,
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
        if isinstance(tool, ToolSpec) and tool.name not in LEFT_OUT:
            ours = [name for name, it in TOOLS.items() if tool.name == (it.real or name)]
            found += [_short(name, project) for name in ours] or [tool]
    return tuple(found)


def with_file(tool: ToolSpec, path: str) -> ToolSpec:
    """The read tool, limited to one file."""
    return msgspec.structs.replace(tool, parameters=closed_object({"path": _only(path)}))


def with_lines(
    tool: ToolSpec, project: KnownFiles, seen: Sequence[str], without: Sequence[Refused] = ()
) -> ToolSpec | None:
    """The line edit tool, limited to the lines of seen files; None without any."""
    files = [(path, text) for path in seen[:_MOST_OPEN] if (text := project.text(path)) is not None]
    if not files:
        return None
    taken = {(it.path, it.line) for it in without}
    forms = [
        _line_change(path, [it for it in edits.choices(text) if (path, it) not in taken])
        for path, text in files
    ]
    parameters = forms[0] if len(forms) == 1 else {"type": "object", "anyOf": forms}
    return msgspec.structs.replace(tool, parameters=parameters)


def to_real(name: str, arguments: JsonObject, project: KnownFiles) -> JsonObject:
    """The real tool's arguments for those the model wrote."""
    shown = TOOLS["replace" if name == "append" else name]
    known = {argument.shown: argument for argument in shown.arguments}
    found: JsonObject = {}
    for key, value in _meant(name, arguments, project).items():
        argument = known.get(key)
        if argument is None:
            found[key] = value
        else:
            is_path = argument.kind != "text" and isinstance(value, str)
            found[argument.real] = _absolute(value, project.root) if is_path else value
    return found | {key: value for key, value in shown.given if key not in found}


def _meant(name: str, arguments: JsonObject, project: KnownFiles) -> JsonObject:
    """The arguments corrected by the files that exist."""
    path = str(arguments.get("path", ""))
    if name == "append":
        text = project.text(path) or ""
        old, new = edits.addition(text, str(arguments.get("lines", "")))
        return {"path": path, "old": old, "new": new}
    if name == "replace" and (text := project.text(path)) is not None:
        old, new = (str(arguments.get(key, "")) for key in ("old", "new"))
        old, new = edits.change(text, old, new)
        return {**arguments, "old": old, "new": new}
    if name == "search_file_content":
        return {**arguments, "pattern": _words(str(arguments.get("pattern", "")), project)}
    return arguments


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


def refusal(name: str, arguments: JsonObject, project: KnownFiles) -> Refused | None:
    """Why a call is refused: it changes nothing, breaks a file, or overwrites one."""
    path = str(arguments.get("path", ""))
    text = project.text(path)
    if text is None or name not in ("replace", "write_file"):
        return None
    if name == "write_file":
        return Refused(name=name, path=path) if text.strip() else None
    old, new = (str(arguments.get(key, "")) for key in ("old", "new"))
    found, put = edits.change(text, old, new)
    after = text.replace(found, put, 1)
    broken = edits.is_sound(path, text) and not edits.is_sound(path, after)
    return Refused(name=name, path=path, line=old) if broken or after == text else None


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


def _line_change(path: str, lines: Sequence[str]) -> JsonObject:
    old: JsonObject = {"type": "string"}
    if lines:
        old["enum"] = list(lines)
    new: JsonObject = {"type": "string", "maxLength": _MOST_NEW}
    return closed_object({"path": _only(path), "new": new, "old": old})


def _only(choice: str) -> JsonObject:
    return {"type": "string", "enum": [choice]}


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
