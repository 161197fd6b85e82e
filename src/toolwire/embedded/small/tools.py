"""The built-in tools as a small model is shown them: few, in few words, with short paths."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from toolwire.embedded.small import edits
from toolwire.prompted.json.schema import closed_object
from toolwire.request import AnyTool, JsonObject, ToolSpec

MOST_CHOICES = 200
"""Paths offered as choices; with more, any path may be written."""
_MOST_NEW = 600
"""Characters in the place of a line: a small model that writes more has lost itself."""
_LONG = 3
"""Letters of a word that is worth looking for."""
_MOST_OPEN = 4
"""Files that can be changed at a time: those the model saw last."""


_plain = re.compile(r"[\w -]+").fullmatch


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """A call that was held back: the tool, and the line it was to change."""

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
    """There are others, so that a path outside the list may be meant."""
    text: Callable[[str], str | None] = lambda _: None
    """What stands in a file now; None if it is no text, or too much of it."""


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
    then_change: str
    """The same where a change was asked for."""
    real: str = ""
    """The tool's own name, if it is shown under another one."""
    given: tuple[tuple[str, str], ...] = ()
    """Arguments the real tool wants and the model is not bothered with."""


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
            # First what is to be there: with that in mind the line is found more surely.
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
_LEFT_OUT = frozenset(
    {"read_many_files", "web_fetch", "google_web_search", "save_memory", "apply_patch"}
    | {"background", "todo", "ask_user"}
)
"""Built-in tools that cost more attention than a small model has."""


def shown_tools(tools: Sequence[AnyTool], ground: KnownFiles) -> tuple[ToolSpec, ...]:
    """What there is: the built-in tools in their short form, others as they are."""
    found: list[ToolSpec] = []
    for tool in tools:
        if isinstance(tool, ToolSpec) and tool.name not in _LEFT_OUT:
            ours = [name for name, it in TOOLS.items() if tool.name == (it.real or name)]
            found += [_short(name, ground) for name in ours] or [tool]
    return tuple(found)


def with_file(tool: ToolSpec, path: str) -> ToolSpec:
    """The tool that reads, for one file."""
    return msgspec.structs.replace(tool, parameters=closed_object({"path": _only(path)}))


def with_lines(
    tool: ToolSpec, ground: KnownFiles, seen: Sequence[str], without: Sequence[Refused] = ()
) -> ToolSpec | None:
    """The tool that changes lines, for the lines of the files that were seen; None without any."""
    files = [(path, text) for path in seen[:_MOST_OPEN] if (text := ground.text(path)) is not None]
    if not files:
        return None
    taken = {(it.path, it.line) for it in without}
    forms = [
        _line_change(path, [it for it in edits.choices(text) if (path, it) not in taken])
        for path, text in files
    ]
    parameters = forms[0] if len(forms) == 1 else {"type": "object", "anyOf": forms}
    return msgspec.structs.replace(tool, parameters=parameters)


def to_real(name: str, arguments: JsonObject, ground: KnownFiles) -> JsonObject:
    """The arguments the real tool takes, from those a model wrote."""
    shown = TOOLS["replace" if name == "append" else name]
    known = {argument.shown: argument for argument in shown.arguments}
    found: JsonObject = {}
    for key, value in _meant(name, arguments, ground).items():
        argument = known.get(key)
        if argument is None:
            found[key] = value
        else:
            is_path = argument.kind != "text" and isinstance(value, str)
            found[argument.real] = _absolute(value, ground.root) if is_path else value
    return found | {key: value for key, value in shown.given if key not in found}


def _meant(name: str, arguments: JsonObject, ground: KnownFiles) -> JsonObject:
    """What a model meant by its words, as far as the files tell."""
    path = str(arguments.get("path", ""))
    if name == "append":
        text = ground.text(path) or ""
        old, new = edits.addition(text, str(arguments.get("lines", "")))
        return {"path": path, "old": old, "new": new}
    if name == "replace" and (text := ground.text(path)) is not None:
        old, new = (str(arguments.get(key, "")) for key in ("old", "new"))
        old, new = edits.change(text, old, new)
        return {**arguments, "old": old, "new": new}
    if name == "search_file_content":
        return {**arguments, "pattern": _words(str(arguments.get("pattern", "")), ground)}
    return arguments


def _words(pattern: str, ground: KnownFiles) -> str:
    """Words that stand nowhere together are looked for one by one."""
    if " " not in pattern or _plain(pattern) is None:
        return pattern
    words = pattern.lower().split()
    together = " ".join(words)
    for path in ground.files:
        text = ground.text(path)
        if text is not None and together in " ".join(text.lower().split()):
            return pattern
    long = [word for word in words if len(word) >= _LONG]
    return "|".join(map(re.escape, long or words))


def refusal(name: str, arguments: JsonObject, ground: KnownFiles) -> Refused | None:
    """Why a call is better not made: it changes nothing, spoils a file, or writes over one."""
    path = str(arguments.get("path", ""))
    text = ground.text(path)
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
    """The arguments as the model wrote them, from those the real tool took."""
    shown = TOOLS[name]
    found: JsonObject = {}
    for argument in shown.arguments:
        if argument.real in arguments:
            value = arguments[argument.real]
            is_path = argument.kind != "text" and isinstance(value, str)
            found[argument.shown] = _relative(value, root) if is_path else value
    return found


def _short(name: str, ground: KnownFiles) -> ToolSpec:
    shown = TOOLS[name]
    properties: JsonObject = {it.shown: _schema(it, ground) for it in shown.arguments}
    return ToolSpec(name=name, description=shown.about, parameters=closed_object(properties))


def _line_change(path: str, lines: Sequence[str]) -> JsonObject:
    old: JsonObject = {"type": "string"}
    if lines:
        old["enum"] = list(lines)
    new: JsonObject = {"type": "string", "maxLength": _MOST_NEW}
    return closed_object({"path": _only(path), "new": new, "old": old})


def _only(choice: str) -> JsonObject:
    return {"type": "string", "enum": [choice]}


def _schema(argument: Argument, ground: KnownFiles) -> JsonObject:
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
