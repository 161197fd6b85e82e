"""Edits: a small model names a line or a function of a file and rewrites it."""

import json
import re
from collections import Counter
from collections.abc import Sequence

import msgspec

from toolwire.embedded.small.parsing import problem
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
