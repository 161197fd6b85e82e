"""The front matter of Markdown files: the part of YAML that people write there; pure."""

import re
from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = str | list[str] | dict[str, str]

_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:\r?\n)?^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.M)
_KEY = re.compile(r"([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+(.*)|)$")
_COMMENT = re.compile(r"(?:^|[ \t])#.*$")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/"}


def split_front(text: str) -> tuple[dict[str, Value] | None, str]:
    """The members of the front matter, None if there is none, and the rest of the text.

    ValueError names a line that is neither a member nor part of one.
    """
    front = _FRONT.match(text)
    if front is None:
        return None, text
    return _members(front[1].replace("\r\n", "\n").split("\n")), text[front.end() :]


def without_comments(text: str) -> str:
    """JSON text without `//` and `/* */`, which other programs accept in their settings."""
    parts = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
    return parts.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)


def text_of(members: Mapping[str, Value], name: str) -> str:
    """A member as text: a list is joined with commas, a table is none."""
    found = members.get(name, "")
    if isinstance(found, list):
        return ", ".join(found)
    return found if isinstance(found, str) else ""


def _members(lines: list[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        if not _plain(line).strip():
            at += 1
            continue
        member = _KEY.match(line)
        if member is None:
            raise ValueError(f"line {at + 2} of the front matter is not `name: value`: {line[:60]}")
        below = at + 1
        while below < len(lines) and (not lines[below].strip() or _belongs(lines[below])):
            below += 1
        found[member[1]] = _value((member[2] or "").strip(), lines[at + 1 : below])
        at = below
    return found


def _belongs(line: str) -> bool:
    return line[:1] in (" ", "\t") or line.startswith("- ") or line == "-"


def _value(first: str, below: list[str]) -> Value:
    if first[:1] in ("|", ">") and re.fullmatch(r"[|>][+-]?\d?[+-]?([ \t]+#.*)?", first):
        return _block(first, below)
    if first[:1] in ("'", '"'):
        return _quoted(" ".join((first, *(line.strip() for line in below if line.strip()))))
    first = _plain(first).strip()
    if first.startswith("["):
        whole = " ".join((first, *(_plain(line).strip() for line in below))).strip()
        return [_scalar(one) for one in _split(whole.strip("[]")) if one.strip()]
    rest = [line for line in map(_plain, below) if line.strip()]
    if first:
        return " ".join((first, *(line.strip() for line in rest)))
    if rest and all(line.strip().startswith("-") for line in rest):
        return [_scalar(line.strip()[1:]) for line in rest]
    table: dict[str, str] = {}
    for line in rest:
        member = _KEY.match(line.strip())
        if member is None:
            raise ValueError(f"not `name: value`: {line.strip()[:60]}")
        table[member[1]] = _scalar(member[2] or "")
    return table if rest else ""


def _plain(line: str) -> str:
    return _COMMENT.sub("", line)


def _scalar(text: str) -> str:
    text = text.strip()
    return _quoted(text) if text[:1] in ("'", '"') else _plain(text).strip()


def _quoted(text: str) -> str:
    mark = text[0]
    if mark == "'":
        end = re.match(r"'((?:[^']|'')*)'", text)
        if end is None:
            raise ValueError("a quotation mark is not closed")
        return end[1].replace("''", "'")
    end = re.match(r'"((?:[^"\\]|\\.)*)"', text)
    if end is None:
        raise ValueError("a quotation mark is not closed")
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), end[1])


def _split(text: str) -> list[str]:
    """The members of a list in one line; commas in quotes belong to a member."""
    return re.findall(r"""\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,])+""", text)


def _block(mark: str, below: list[str]) -> str:
    depth = min((len(line) - len(line.lstrip()) for line in below if line.strip()), default=0)
    lines = [line[depth:].rstrip() for line in below]
    while lines and not lines[-1]:
        lines.pop()
    if mark[0] == "|":
        text = "\n".join(lines)
    else:
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", "\n".join(lines))
        text = re.sub(r"\n\n", "\n", text)
    return text
