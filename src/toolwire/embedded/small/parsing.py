"""Whether a file parses, and what a change of Python code would break."""

import ast
import builtins
import re
import subprocess
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as IniError
from importlib import import_module
from shutil import which

import msgspec

_MOST_CHECKED = 200_000
"""Characters of a file that another program checks."""
_decode = msgspec.json.Decoder().decode


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
