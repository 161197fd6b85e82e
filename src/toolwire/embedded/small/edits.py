"""Edits: a small model names a line or a function of a file and rewrites it."""

import ast
import builtins
import json
import re
import subprocess
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as IniError
from importlib import import_module
from shutil import which

import msgspec

from toolwire.prompted.json import closed_object
from toolwire.request import JsonObject

MOST_LINES = 300
"""Longer files offer no choice of lines; the text to change is written freely."""
_MOST_TOGETHER = 3
"""Lines named together where a single one is not unique."""
_MOST_REWRITTEN = 24
"""Lines of a function that is rewritten as a whole; a longer one is changed line by line."""
_MOST_CHANGES = 4
_LONGEST_NEW = 900
_LONGEST_FILE = 2000
_MOST_CHECKED = 200_000
"""Characters of a file that another program checks."""

_decode = msgspec.json.Decoder().decode
_indent = re.compile(r"[ \t]*").match
_titled = re.compile(r"\s*(?:async |export |public )*(?:def|class|function|func|fn)\s+(\w+)").match
_shell_function = re.compile(r"\s*[\w-]+\s*\(\)\s*\{").match
_opens = re.compile(r"[:{(\[]\s*\Z").search
_closes = re.compile(r"\s*[})\]]").match


def choices(text: str, begin: int = 0, end: int | None = None) -> tuple[str, ...]:
    """The lines of a range that can be named, each unique; empty for files that are too long."""
    lines = text.split("\n")
    shown = range(begin, len(lines) if end is None else min(end, len(lines)))
    if len(shown) > MOST_LINES or "\r" in text:
        return ()
    found: list[str] = []
    for at in shown:
        if not lines[at].strip():
            continue
        for size in range(1, _MOST_TOGETHER + 1):
            some = lines[at : at + size]
            if len(some) == size and len(_places(lines, some)) == 1:
                found.append("\n".join(some))
                break
    return tuple(found)


def window(text: str, words: str, limit: int) -> tuple[int, int]:
    """The range of lines that matters most for a request, within a number of characters."""
    lines = text.split("\n")
    if len(text) <= limit:
        return 0, len(lines)
    names = {word.lower() for word in re.findall(r"\w{3,}", words)}
    inside = [names & {it.lower() for it in re.findall(r"\w+", line)} for line in lines]
    counts = Counter(name for some in inside for name in some)
    best = max(range(len(lines)), key=lambda at: sum(1 / counts[name] for name in inside[at]))
    begin = next(
        (at for at in range(best, max(best - 40, -1), -1) if _is_function(lines[at])), best
    )
    begin, end, size = max(begin - 2, 0), begin, 0
    for at in range(begin, len(lines)):
        size += len(lines[at]) + 1
        if size > limit and at > best:
            break
        end = at + 1
    return begin, end


def change(text: str, old: str, new: str) -> tuple[str, str]:
    """The text to find, unique in the file, and its replacement."""
    lines = text.split("\n")
    named = old.split("\n")
    places = _places(lines, named)
    if "\r" in text or len(places) != 1:
        return old, new
    begin, end = places[0], places[0] + len(named)
    if not new.strip():
        return _unique(lines, begin, end, [])
    fresh = _indented(new.removesuffix("\n").split("\n"), named[0])
    if len(named) == 1 and _has_body(named[0], fresh):
        end = _block_end(lines, begin, closing=_closes(fresh[-1]) is not None)
        renamed = fresh[1:] == lines[begin + 1 : end]
        if not renamed and title(fresh[0]) not in ("", title(named[0])):
            # A definition with another name is added next to it.
            fresh = [*lines[begin:end], "", *fresh]
        elif _falls_through(fresh):
            # New lines precede the rest of the block, which was not rewritten.
            fresh += [line for line in lines[begin + 1 : end] if line not in fresh]
    return _unique(lines, begin, end, fresh)


def addition(text: str, more: str) -> tuple[str, str]:
    """The text to find and its replacement for an addition at the end."""
    lines = text.rstrip("\n").split("\n")
    last = len(lines) - 1
    fresh = [lines[last], *more.rstrip("\n").split("\n")]
    return _unique(text.split("\n"), last, last + 1, fresh)


def units(text: str, begin: int = 0, end: int | None = None) -> tuple[str, ...]:
    """The lines that can be named; a short function only by its first line, to be rewritten."""
    found = choices(text, begin, end)
    lines = text.split("\n")
    inner: set[int] = set()
    for at, line in enumerate(lines):
        if _is_function(line) and at not in inner:
            end = _block_end(lines, at, closing=True)
            if end - at <= _MOST_REWRITTEN:
                inner |= set(range(at + 1, end))
    if not inner:
        return found
    return tuple(it for it in found if _places(lines, it.split("\n"))[0] not in inner)


def apply(text: str, changes: Sequence[tuple[str, str]]) -> str:
    """The text after changes of its lines, each with what is named and what replaces it."""
    for old, new in changes:
        found, put = change(text, old, new)
        if found and text.count(found) == 1:
            text = text.replace(found, put, 1)
    return text


def substitute(text: str, old: str, new: str) -> str:
    """The text with another word or phrase everywhere; unchanged if it does not occur."""
    if not old:
        return text
    before = r"(?<!\w)" if old[0].isalnum() else ""
    behind = r"(?!\w)" if old[-1].isalnum() else ""
    whole = re.compile(f"{before}{re.escape(old)}{behind}")
    if whole.search(text):
        return whole.sub(lambda _: new, text)
    return text.replace(old, new) if text.count(old) == 1 else text


class _Pair(msgspec.Struct):
    old: str
    new: str


def change_schema(text: str, begin: int = 0, end: int | None = None) -> JsonObject:
    """The form of a change: lines to replace, lines to add, or nothing."""
    new: JsonObject = {"type": "string", "maxLength": _LONGEST_NEW}
    old: JsonObject = {"type": "string", "maxLength": _LONGEST_NEW}
    lines = units(text, begin, end)
    if lines:
        old["enum"] = list(lines)
    # The new text first: the model then finds the line more reliably.
    change = closed_object({"new": new, "old": old})
    several: JsonObject = {
        "type": "array",
        "items": change,
        "minItems": 1,
        "maxItems": _MOST_CHANGES,
    }
    forms = [
        closed_object({"changes": several}),
        closed_object({"add": new}),
        closed_object({"nothing": {"const": True}}),
    ]
    return {"anyOf": forms}


def text_schema(path: str) -> JsonObject:
    """The form of a whole file; that of a JSON file is the value itself, so that it parses."""
    if path.endswith(".json"):
        return closed_object({"text": {"type": ["object", "array"]}})
    return closed_object({"text": {"type": "string", "maxLength": _LONGEST_FILE}})


def written(path: str, found: object) -> str:
    """The text of a file that was given in that form."""
    if not isinstance(found, str):
        return f"{json.dumps(found, indent=2, ensure_ascii=False)}\n" if found else ""
    text = found if not found or found.endswith("\n") else f"{found}\n"
    if path.endswith(".toml") and problem(path, text):
        # Words without quotes.
        text = re.sub(
            r"(?m)^(\s*[\w.-]+\s*=\s*)(?!true$|false$)([A-Za-z/][^\"'\n]*?)\s*$", r'\1"\2"', text
        )
    return text


def changed(text: str, found: JsonObject) -> str:
    """The text after a change of that form."""
    if "add" in found:
        more = str(found["add"]).strip("\n")
        if not more.strip():
            return text
        name = title(more.partition("\n")[0])
        same = [it for it in text.split("\n") if name and title(it) == name]
        if len(same) == 1:
            return apply(text, [(same[0], more)])
        gap = "\n\n\n" if re.match(r"(async )?(def|class) ", more) else "\n"
        return f"{text.rstrip()}{gap if text.strip() else ''}{more}\n"
    pairs = _pairs(found)
    if len(pairs) == 1 and (whole := _whole(text, pairs[0])):
        return whole
    return apply(text, [(it.old, it.new) for it in pairs])


def _whole(text: str, pair: _Pair) -> str:
    """The whole new text, where lines that stay were written in the place of one that goes."""
    others = [it for it in text.split("\n") if it.strip() and it != pair.old]
    fresh = [it for it in pair.new.split("\n") if it.strip()]
    if len(fresh) < 2 or fresh != others:
        return ""
    begin = text.find(pair.old)
    return text[:begin] + text[begin + len(pair.old) :].removeprefix("\n")


def _pairs(found: JsonObject) -> list[_Pair]:
    try:
        return msgspec.convert(found.get("changes", []), list[_Pair])
    except msgspec.ValidationError:
        return []


def misplaced(text: str, found: JsonObject) -> str:
    """Another line of the text that a change resembles more than the line it replaces."""
    lines = {it: _words(it) for it in text.split("\n") if it.strip()}
    for it in _pairs(found):
        if "\n" in it.old or title(it.old) or not it.new.strip():
            continue
        old = _words(it.old)
        # Of a line that is repeated in its replacement, only what is added counts.
        new = _words(it.new) - (old if it.old in it.new else set())
        best = max(lines, key=lambda line: len(lines[line] & new), default="")
        shared = len(lines[best] & new)
        if shared > len(old & new) + 1 and 2 * shared >= len(new):
            return best
    return ""


def _words(line: str) -> set[str]:
    return {*re.findall(r"\w+", line)}


def span(before: str, after: str) -> tuple[str, str]:
    """The smallest unique range of changed lines, and its replacement."""
    old, new = before.split("\n"), after.split("\n")
    begin = 0
    while begin < min(len(old), len(new)) and old[begin] == new[begin]:
        begin += 1
    tail = 0
    while tail < min(len(old), len(new)) - begin and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if begin == len(old) - tail:
        # Lines that are only inserted are found by the line before or after them.
        begin, tail = (begin - 1, tail) if begin else (begin, max(tail - 1, 0))
    return _unique(old, begin, len(old) - tail, new[begin : len(new) - tail])


def problem(path: str, text: str) -> str:
    """Why the text cannot be parsed as the file's type; empty if it can or the type is unknown."""
    check = _PARSERS.get(path.rpartition(".")[2].lower())
    if check is None or not text.strip():
        return ""
    try:
        with warnings.catch_warnings():
            # Warnings about the user's files are not shown.
            warnings.simplefilter("ignore")
            return check(text)
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError, IniError) as error:
        return " ".join(str(error).split())[:200] or "it cannot be parsed"


def damage(path: str, before: str, after: str) -> str:
    """What a change would break: the syntax, a name, or the value that a function returns."""
    found = problem(path, after)
    if found:
        return "" if problem(path, before) else found
    if not path.endswith(".py") or problem(path, before):
        return ""
    old, new = ast.parse(before), ast.parse(after)
    unknown = sorted(_undefined(new) - _undefined(old))
    if unknown:
        return f"{unknown[0]} is not defined"
    twice = sorted(_repeated(new) - _repeated(old))
    if twice:
        return f"{twice[0]} is defined twice"
    ends = _functions(old)
    for name, function in _functions(new).items():
        if name in ends and _returns(ends[name]) and not _returns(function):
            return f"{name} no longer returns a value at its end; write the whole function"
    return ""


def _python(text: str) -> str:
    ast.parse(text)
    return ""


def _json(text: str) -> str:
    _decode(text)
    return ""


def _toml(text: str) -> str:
    tomllib.loads(text)
    return ""


def _ini(text: str) -> str:
    ConfigParser(interpolation=None, strict=False, allow_no_value=True).read_string(text)
    return ""


def _yaml(text: str) -> str:
    try:
        yaml = import_module("yaml")
    except ImportError:
        tab = re.search(r"^ *\t", text, re.MULTILINE)
        return "" if tab is None else "a tab in the indentation"
    try:
        for _ in yaml.parse(text):
            pass
    except yaml.YAMLError as error:
        return " ".join(str(error).split())[:200]
    return ""


def _by(*command: str) -> Callable[[str], str]:
    """Parses with another program, which reads the text and runs nothing."""

    def check(text: str) -> str:
        program = which(command[0])
        if program is None or len(text) > _MOST_CHECKED:
            return ""
        try:
            ran = subprocess.run(  # noqa: S603 - fixed words, and the text is only parsed
                [program, *command[1:]],
                input=text.encode(),
                capture_output=True,
                timeout=10,
                check=False,
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        lines = [it for it in ran.stderr.decode(errors="replace").splitlines() if it.strip()]
        wrong = next((it for it in lines if "Error" in it), lines[0] if lines else "")
        return (wrong[:200] or "it cannot be parsed") if ran.returncode else ""

    return check


_PARSERS: Mapping[str, Callable[[str], str]] = {
    "py": _python,
    "json": _json,
    "toml": _toml,
    "yaml": _yaml,
    "yml": _yaml,
    "ini": _ini,
    "cfg": _ini,
    "sh": _by("bash", "-n"),
    "bash": _by("bash", "-n"),
    "js": _by("node", "--check", "-"),
    "cjs": _by("node", "--check", "-"),
}


def _undefined(tree: ast.Module) -> set[str]:
    """Names that are used and bound nowhere in the module; empty with a star import."""
    used: set[str] = set()
    bound = {*dir(builtins), "__file__", "__name__", "__doc__", "__path__"}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name):
                bound.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                bound.add(node.name)
            case ast.arg():
                bound.add(node.arg)
            case ast.alias():
                if node.name == "*":
                    return set()
                bound.add((node.asname or node.name).partition(".")[0])
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                bound.add(node.name or "")
            case ast.MatchMapping():
                bound.add(node.rest or "")
            case _:
                pass
    return used - bound


def _repeated(tree: ast.Module) -> set[str]:
    """Functions that are defined more than once in the same body; of properties, that is usual."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            inside = [it for it in node.body if isinstance(it, ast.FunctionDef)]
            names = [it.name for it in inside if not it.decorator_list]
            found |= {name for name in names if names.count(name) > 1}
    return found


def _functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _returns(function: ast.FunctionDef) -> bool:
    """Whether the function cannot end without returning or raising."""
    return _leaves(function.body)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    match body[-1]:
        case ast.Return(value=value):
            return value is not None
        case ast.Raise():
            return True
        case ast.If(body=inner, orelse=other):
            return bool(other) and _leaves(inner) and _leaves(other)
        case ast.With(body=inner):
            return _leaves(inner)
        case ast.Try(body=inner, handlers=handlers):
            return _leaves(inner) and all(_leaves(it.body) for it in handlers)
        case ast.While(test=ast.Constant(value=True)):
            return True
        case _:
            return False


def _places(lines: Sequence[str], some: Sequence[str]) -> list[int]:
    size = len(some)
    last = len(lines) - size
    return [at for at in range(last + 1) if list(lines[at : at + size]) == list(some)]


def _unique(lines: list[str], begin: int, end: int, fresh: list[str]) -> tuple[str, str]:
    """Extends the change by surrounding lines until the text to find is unique."""
    text = "\n".join(lines)
    before, after = begin, end
    if not fresh:
        # A removed line includes its line break.
        before, after = (begin, end + 1) if end < len(lines) else (max(begin - 1, 0), end)
    while True:
        old = "\n".join(lines[before:after])
        if text.find(old) == text.rfind(old) or (before == 0 and after == len(lines)):
            return old, "\n".join([*lines[before:begin], *fresh, *lines[end:after]])
        before, after = max(before - 1, 0), min(after + 1, len(lines))


def _indented(fresh: list[str], named: str) -> list[str]:
    """Adds the named line's indentation if it is missing."""
    indent = _width(named)
    if not indent or _width(fresh[0]):
        return fresh
    return [f"{indent}{line}" if line.strip() else line for line in fresh]


def _has_body(named: str, fresh: Sequence[str]) -> bool:
    """Whether a line that opens a block was rewritten together with the block."""
    if _opens(named) is None:
        return False
    if len(fresh) == 1:
        return _opens(fresh[0]) is None
    inner = next((line for line in fresh[1:] if line.strip()), "")
    return _opens(fresh[0]) is not None and len(_width(inner)) > len(_width(fresh[0]))


def _falls_through(fresh: Sequence[str]) -> bool:
    """Whether the block ends inside an inner one, so that more lines must follow."""
    if len(fresh) < 2 or _closes(fresh[-1]) is not None:
        return False
    return len(_width(fresh[-1])) > len(_width(fresh[1]))


def _is_function(line: str) -> bool:
    """Whether the line opens a function; a class is changed by its members."""
    found = _titled(line) or _shell_function(line)
    return found is not None and "class " not in found[0] and _opens(line) is not None


def title(line: str) -> str:
    """The name of the function or class that the line defines; empty for any other line."""
    found = _titled(line)
    return found.group(1) if found is not None else ""


def _block_end(lines: Sequence[str], begin: int, *, closing: bool) -> int:
    outer = len(_width(lines[begin]))
    end = begin + 1
    for at in range(begin + 1, len(lines)):
        line = lines[at]
        if not line.strip():
            continue
        if len(_width(line)) <= outer:
            return at + 1 if closing and _closes(line) is not None else end
        end = at + 1
    return end


def _width(line: str) -> str:
    found = _indent(line)
    return found.group() if found is not None else ""
