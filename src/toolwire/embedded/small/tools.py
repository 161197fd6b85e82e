"""Short forms of the built-in tools and their results, and the commands that a request allows."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, cast

import msgspec

from toolwire.policy.shell import Command, Unproven, prove
from toolwire.policy.shell.commands import effects_of, inner_commands
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


_MOST_FOLDERS = 20
"""A folder is expanded as long as there are no more entries than this."""
_MOST_TOLD = 8
"""With more files, a small model only repeats their names."""
_MOST_ABOUT = 60
"""Characters of a folder's description."""
_NAMED = 3
"""File names shown for a folder without a description."""
_TELLING = ("__init__.py", "README.md", "lib.rs", "mod.rs", "doc.go", "index.ts", "index.js")
"""Files whose first words describe their folder."""
_TOP = "the top folder"

_first_words = re.compile(
    r"""\s*(?:[rR]?(?:\"{3}|'{3})|/\*+!?|//[/!]?|<!--|\#+(?!!))[ \t]*\n?[ \t*]*(\w.*)"""
).match
_no_description = re.compile(r"copyright|license|licence|spdx|coding[:=]|eslint", re.I).search


def by_folder(text: str, read: Callable[[str], str | None], limit: int) -> str:
    """The result of a file search, grouped by folder; `read` returns the text of a file."""
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


_MOST_FIGURES = 400
"""Characters of what is computed from a table or a log."""
_MOST_GROUPS = 12
_MOST_NAMED = 3
_MOST_TIMES = 6
_cron_line = re.compile(r"^(\d+)\s+(\d+)\s+\S+\s+\S+\s+\S+\s+(\S.*)$", re.MULTILINE).findall


def figures(text: str, words: str) -> str:
    """What a small model cannot compute: sums and extremes of a table, lines with a marked word."""
    found = _columns([line.split(",") for line in text.splitlines() if line.strip()])
    for word in dict.fromkeys(re.findall(r"\b[A-Z]{3,}\b|(?<=[\"'`])[^\"'`\n]+(?=[\"'`])", words)):
        count = sum(word in line for line in text.splitlines())
        if count:
            found.append(f"{word} in {count} of them")
    times = [f"{it[2]} at {int(it[1])}:{int(it[0]):02}" for it in _cron_line(text)]
    found += times[:_MOST_TIMES]
    found += [f"{name} does not occur in it" for name in marked_names(words) if name not in text]
    return "".join(f"; {it}" for it in found)[:_MOST_FIGURES]


def together(texts: Mapping[str, str]) -> str:
    """The sums of columns that several tables have in common; empty without any."""
    sums: dict[str, list[float]] = {}
    for text in texts.values():
        for name, numbers, _ in _numeric([it.split(",") for it in text.splitlines() if it.strip()]):
            sums.setdefault(name, []).append(sum(numbers))
    found = [f"{name} {sum(it):.10g}" for name, it in sums.items() if len(it) > 1]
    return f"(Sum of all files: {', '.join(found)})\n" if found else ""


def arithmetic(words: str) -> str:
    """The results of the four operations where a request has two numbers; empty otherwise."""
    found = re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w)", words)
    if len(found) != 2:
        return ""
    one, other = map(float, found)
    sums = [("+", one + other), ("-", one - other), ("*", one * other)]
    sums += [("/", one / other)] if other else []
    return f"\n({', '.join(f'{found[0]} {sign} {found[1]} = {it:.10g}' for sign, it in sums)})"


def marked_names(words: str) -> list[str]:
    """Names in a request that can only be identifiers, not paths."""
    found = re.findall(r"(?<![\w./-])[A-Za-z]\w*(?:_\w+)+(?![\w/]|\.\w|-\w)", words)
    return [*dict.fromkeys(found)][:_MOST_NAMED]


def _columns(rows: list[list[str]]) -> list[str]:
    found: list[str] = []
    for name, numbers, at in _numeric(rows):
        head, *rest = rows
        low, high = (pick(range(len(rest)), key=numbers.__getitem__) for pick in (min, max))
        total = f"sum {sum(numbers):.10g}"
        found.append(
            f"{name}: highest {rest[high][at].strip()} ({rest[high][0].strip()}), lowest "
            f"{rest[low][at].strip()} ({rest[low][0].strip()}), {total}"
        )
        groups: dict[str, float] = {}
        for row, value in zip(rest, numbers, strict=True):
            groups[row[0].strip()] = groups.get(row[0].strip(), 0.0) + value
        if 1 < len(groups) < len(rest) and len(groups) <= _MOST_GROUPS:
            found.append(f"by {head[0]}: {', '.join(f'{it} {groups[it]:.10g}' for it in groups)}")
    return found


def _numeric(rows: list[list[str]]) -> list[tuple[str, list[float], int]]:
    """The columns of a table that contain numbers only: name, numbers and position."""
    head, *rest = rows or [[]]
    if len(head) < 2 or not rest or any(len(row) != len(head) for row in rest):
        return []
    found: list[tuple[str, list[float], int]] = []
    for at, name in enumerate(head):
        numbers = [value for row in rest if (value := _number(row[at])) is not None]
        if at and len(numbers) == len(rest):
            found.append((name.strip(), numbers, at))
    return found


def _number(text: str) -> float | None:
    """The number that a cell contains; None for any other text."""
    try:
        return float(text.strip().lstrip("$€£"))
    except ValueError:
        return None


def _folders(paths: list[str]) -> Mapping[str, list[str]]:
    """Files grouped by folder; the largest folders are expanded as long as all fit."""
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
        # The remaining entries are the folder's direct files.
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


_asks = re.compile(
    r"(?:(?:at|by|for|from|in|of|on|to|under|with|and|so|but|hi|hello|hey|please|ok)[ ,]+)*"
    r"(?:who|whom|whose|which|what|whats|where|when|why|how|is|are|was|were|do|does|did|has|have|had"
    r"|am|should|shall|may|might|must"
    r"|(?:can|could|would|will)(?! (?:you|u)\b)(?:n't)?)\b",
    re.IGNORECASE,
).match
REMOVES = re.compile(
    r"\b(?:delet\w*|remov\w*|rm|rmdir|eras\w*|drop\w*|rid of|clean\w*|clear\w*|wip(?:e|ing)"
    r"|discard\w*|trash|throw\w*|purg\w*|prun\w*|uninstall\w*|unlink\w*|tak(?:e|ing)\b.*\bout)\b",
    re.IGNORECASE,
)
removes = REMOVES.search
_harsh = re.compile(
    r"(?:^git(?: -\S+)* |-|\b(?:os|shutil|fs|Path)\b.*?\.?)"
    r"(delete|reset|clean|checkout|restore|stash|revert|rebase|push|rmtree|remove|unlink|rename"
    r"|truncate)\b"
).search
_placeholder = re.compile(r"<\w+>").search
runs = re.compile(
    r"\b(?:run|runs|execut\w+|start|launch|call|try|test|tests|invoke|output|exit code|prints?"
    r"|build)\b",
    re.IGNORECASE,
).search


_orders = re.compile(
    r"(?:^|[.,;:!]|\b(?:and|then|please|pls|just|now|should|must|shall|also|to|it))\s*"
    r"(?:(?:please|pls|also|then|just|now)\s+)*"
    r"(?:add|adjust|append|archive|bump|change|collect|combine|comment|concatenate|convert|copy"
    r"|correct|create|cut|decrease|delete|disable|divide|duplicate|enable|extract|gather|join"
    r"|double|drop|edit|erase|exchange|extend|fill|fix|generate|halve|implement|increase|insert"
    r"|lower|make|merge|modify|move|multiply|put|raise|record|refactor|remove|rename|repair"
    r"|replace|rewrite|save|set|sort|split|store|swap|switch|translate|turn|update|write)\b",
    re.IGNORECASE,
).search


_starts_program = re.compile(
    r"(?:^|[.,;:!?]|\b(?:and|then|please|pls|just|to))\s*(?:please\s+|pls\s+)?"
    r"(?:run|execute|start|launch|invoke)\b"
    r"|\b(?:python3?|node|bash|sh|make|pytest|npm|cargo|ruby|perl)\s+[\w./-]*\.\w+|(?:^|\s)\./\w"
    r"|\bexit (?:code|status)\b|\bgit\b|\b(?:which|what|current) branch\b"
    r"|\b(?:last|latest|recent|newest) commits?\b",
    re.IGNORECASE,
).search
_about_project = re.compile(
    r"\b(?:files?|folders?|director(?:y|ies)|projects?|repo(?:sitory)?|here|code|scripts?|modules?"
    r"|functions?|class(?:es)?|tests?|settings?|config\w*|logs?|pages?|lines?|docs?|readme|licen[cs]e"
    r"|version|we|our|us)\b|[\w-]+\.\w+|/|_",
    re.IGNORECASE,
).search


def starts_program(words: str) -> bool:
    """Whether the request wants a program or git to run, also where it is a question."""
    return _starts_program(words) is not None


def about_project(words: str) -> bool:
    """Whether the request speaks of files or of the project."""
    return _about_project(words) is not None


def is_order(words: str) -> bool:
    """Whether the request orders a change, and is not a question."""
    return not is_question(words) and _orders(words) is not None


def is_question(words: str) -> bool:
    """Whether the request is phrased as a question, and not as a polite order."""
    return _asks(words.strip()) is not None


def is_named(path: str, words: str) -> bool:
    """Whether the request contains the path, its name, or the end of a pattern."""
    bare = path.rstrip("/")
    name = bare.rpartition("/")[2]
    folder = bare.partition("/")[0] if "/" in bare else ""
    options = {bare, name, name.lstrip("*"), name.rpartition(".")[0], f".{name.rpartition('.')[2]}"}
    return any(
        re.search(rf"(?<!\w){re.escape(it)}(?!\w)", words, re.IGNORECASE)
        for it in {*options, folder} - {"", "."}
    )


def forbidden(command: str, words: str, project: KnownFiles) -> str:
    """Why the request does not allow the command; empty if it does.

    A command deletes or overwrites only what the request names. To a question, it runs only what
    certainly changes nothing, or what the request quotes or asks to run.
    """
    if _placeholder(command):
        return "it names a file of an example"
    script = prove(command)
    if isinstance(script, Unproven):
        unclear = re.search(r"\b(rm|rmdir|mv|dd|truncate|shred|unlink)\b|>", command)
        return "it may delete or overwrite files" if unclear else ""
    strict = is_question(words) and not runs(words)
    for one in script.commands():
        found = _harm(one, words, project, strict=strict)
        if found:
            return found
    return ""


def _harm(command: Command, words: str, project: KnownFiles, *, strict: bool) -> str:
    known = {*project.files, *project.folders}
    written = tuple(it.target.text for it in command.redirects if it.operator in (">", ">|", "&>"))
    spelled = tuple(word.text for word in command.words)
    removed: tuple[str, ...] = ()
    if spelled:
        for inner in inner_commands(spelled):
            effects = effects_of(inner)
            harsh = _harsh(" ".join(inner))
            if harsh is not None and not re.search(rf"\b{harsh[1]}", words, re.IGNORECASE):
                return f"the request does not say {harsh[1]}"
            removed += effects.removes
            written += effects.writes
            unclear = not effects.known or effects.opaque or effects.changes or effects.writes
            if strict and unclear and " ".join(spelled) not in words:
                return "the request is a question"
    if removed and not (removes(words) or re.search(r"\b(mov|renam|put|go|call)", words)):
        return "the request does not say that anything shall be deleted"
    for path in removed:
        if not is_named(path, words):
            return f"the request does not name {path}"
    for path in written:
        bare = path.removeprefix("./")
        if bare in known and bare in project.files and not is_named(bare, words):
            return f"it would overwrite {path}, which the request does not name"
    return ""
