"""Changing one value in a TOML text; comments, order and spacing of the rest stay as they are."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

import msgspec

from toolwire.config.schema import dotted
from toolwire.errors import BadInput

Path: TypeAlias = tuple[str, ...]

_SPACE = re.compile(r"[ \t]*")
_PART = re.compile(r"[A-Za-z0-9_-]+|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?:"{0,2})'
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"[^#\r\n]*")
_BETWEEN = re.compile(r"[^\"'#\[\]{}]+|#[^\n]*")
_END_OF_LINE = re.compile(r"[^\n]*(?:\n|\Z)")


class _Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A header or a pair, with its line end; comments and empty lines are none."""

    start: int
    end: int
    section: Path
    """The header it is under; its own, for a header."""
    path: Path = ()
    """The whole path of a pair; empty for a header."""
    value: tuple[int, int] = (0, 0)
    array: bool = False
    """It is, or is under, a `[[header]]`."""


def assign(text: str, path: Path, value: object) -> str:
    """The text with the value at the path, put where a person would."""
    before = tomllib.loads(text)
    wanted = _with(before, path, value)
    statements = list(_statements(text))
    changed = _replaced(text, statements, path, wanted)
    if changed is None:
        changed = _inserted(text, statements, path, rendered(value))
    return _checked(changed, wanted, path)


def remove(text: str, path: Path) -> str:
    """The text without the line of that path; a path that is not there is an error."""
    wanted = _without(tomllib.loads(text), path)
    if wanted is None:
        raise BadInput(f"{dotted(*path)} is not set there")
    statements = list(_statements(text))
    for one in statements:
        if one.path == path and not one.array:
            return _checked(text[: one.start] + text[one.end :], wanted, path)
    changed = _replaced(text, statements, path, wanted)
    return _checked(text if changed is None else changed, wanted, path)


def split_path(text: str) -> Path:
    """`models."a/b".context` as its parts."""
    parts, end = _key(text, 0) if _PART.match(text) else ((), 0)
    if not parts or end != len(text):
        raise BadInput(
            f"{text!r} is not the path of a setting; write a.b, and names with other signs in "
            'quotes: models."provider/model".context'
        )
    return parts


def rendered(value: object) -> str:
    """A value as TOML writes it on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return msgspec.json.encode(str(value)).decode().replace("\x7f", "\\u007f")
        case list() | tuple():
            return f"[{', '.join(map(rendered, cast(list[object], value)))}]"
        case dict():
            table = cast(dict[str, object], value)
            inside = ", ".join(f"{dotted(name)} = {rendered(one)}" for name, one in table.items())
            return f"{{ {inside} }}" if inside else "{}"
        case _:
            return str(value)


def _checked(text: str, wanted: dict[str, Any], path: Path) -> str:
    try:
        if _without_empty(tomllib.loads(text)) == _without_empty(wanted):
            return text
    except tomllib.TOMLDecodeError:
        pass
    raise BadInput(f"{dotted(*path)} cannot be changed by itself in this file; edit it by hand")


def _without_empty(table: dict[str, Any]) -> dict[str, Any]:
    """Returns the tables that are not empty: a table goes with its last dotted key."""
    inner = {
        name: _without_empty(cast(dict[str, Any], value)) if isinstance(value, dict) else value
        for name, value in table.items()
    }
    return {name: value for name, value in inner.items() if value != {}}


def _with(table: dict[str, Any], path: Path, value: object) -> dict[str, Any]:
    if len(path) == 1:
        # What a TOML reader gives for the text we write.
        return {**table, path[0]: tomllib.loads(f"value = {rendered(value)}")["value"]}
    inner = table.get(path[0], {})
    if not isinstance(inner, dict):
        raise BadInput(f"{path[0]} is not a table there; edit the file by hand")
    return {**table, path[0]: _with(cast(dict[str, Any], inner), path[1:], value)}


def _without(table: dict[str, Any], path: Path) -> dict[str, Any] | None:
    if path[0] not in table:
        return None
    if len(path) == 1:
        return {name: value for name, value in table.items() if name != path[0]}
    inner = table[path[0]]
    rest = _without(cast(dict[str, Any], inner), path[1:]) if isinstance(inner, dict) else None
    return None if rest is None else {**table, path[0]: rest}


def _replaced(
    text: str, statements: list[_Statement], path: Path, wanted: dict[str, Any]
) -> str | None:
    """The text with a new value in the pair that holds the path, itself or in an inline table."""
    for one in statements:
        if one.path and not one.array and path[: len(one.path)] == one.path:
            value: Any = wanted
            for name in one.path:
                value = value[name]
            return text[: one.value[0]] + rendered(value) + text[one.value[1] :]
    return None


def _inserted(text: str, statements: list[_Statement], path: Path, value: str) -> str:
    beside = _neighbour(statements, path)
    if beside is not None:
        name = dotted(*path[len(beside.section) :])
        indent = _SPACE.match(text, beside.start) if beside.path else None
        return _line_at(text, beside.end, f"{indent[0] if indent else ''}{name} = {value}")
    if len(path) == 1:
        return _first(text, statements, f"{dotted(*path)} = {value}")
    gap = "\n" if text.strip() else ""
    text = _line_at(text, len(text), f"{gap}[{dotted(*path[:-1])}]")
    return _line_at(text, len(text), f"{dotted(path[-1])} = {value}")


def _neighbour(statements: list[_Statement], path: Path) -> _Statement | None:
    """The statement that a new pair follows: of its table, as dotted keys or under its header."""
    found = None
    for one in statements:
        shared = path[: len(path) - 1]
        in_table = one.section == shared and (one.path or shared)
        dotted_beside = (
            len(one.path) > len(one.section) + 1
            and path[: len(one.section) + 1] == one.path[: len(one.section) + 1]
        )
        if (in_table or dotted_beside) and not one.array:
            found = one
    return found


def _first(text: str, statements: list[_Statement], line: str) -> str:
    """A pair above all headers, and above the comment that belongs to the first of them."""
    if not statements:
        return _line_at(text, len(text), line)
    lines = text[: statements[0].start].splitlines(keepends=True)
    while lines and lines[-1].lstrip().startswith("#"):
        lines.pop()
    at = sum(map(len, lines))
    return _line_at(text, at, f"{line}\n")


def _line_at(text: str, at: int, line: str) -> str:
    end = "\r\n" if "\r\n" in text else "\n"
    before = text[:at]
    if before and not before.endswith("\n"):
        before += end
    return before + line.replace("\n", end) + end + text[at:]


def _statements(text: str) -> Iterator[_Statement]:
    section: Path = ()
    array = False
    at = 0
    while at < len(text):
        start = at
        at = _after(_SPACE, text, at)
        if text[at : at + 1] == "[":
            array = text.startswith("[[", at)
            section, at = _key(text, _after(_SPACE, text, at + 1 + array))
            end = _after(_END_OF_LINE, text, at)
            yield _Statement(start=start, end=end, section=section, array=array)
        elif _PART.match(text, at):
            name, at = _key(text, at)
            value = _after(_SPACE, text, text.index("=", at) + 1)
            stop = _value_end(text, value)
            end = _after(_END_OF_LINE, text, stop)
            path = (*section, *name)
            yield _Statement(
                start=start, end=end, section=section, path=path, value=(value, stop), array=array
            )
        else:
            end = _after(_END_OF_LINE, text, at)
        at = end


def _key(text: str, at: int) -> tuple[Path, int]:
    parts: list[str] = []
    while (part := _PART.match(text, at)) is not None:
        quoted = part[0][0] in "\"'"
        parts.append(tomllib.loads(f"key = {part[0]}")["key"] if quoted else part[0])
        at = part.end()
        dot = _DOT.match(text, at)
        if dot is None or not _PART.match(text, dot.end()):
            break
        at = dot.end()
    return tuple(parts), at


def _value_end(text: str, at: int) -> int:
    string = _STRING.match(text, at)
    if string is not None:
        return string.end()
    if text[at] not in "[{":
        scalar = _SCALAR.match(text, at)
        return at + len(scalar[0].rstrip()) if scalar else at
    depth = 0
    while at < len(text):
        if text[at] in "[{]}":
            depth += 1 if text[at] in "[{" else -1
            at += 1
            if depth == 0:
                return at
        else:
            at = _after(_STRING if text[at] in "\"'" else _BETWEEN, text, at)
    return at


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
